"""Ranking data: documents and their preference pairs, readers of files, and embedded problems."""

from moerank.data.costs import FeatureCosts as FeatureCosts
from moerank.data.describe import describe as describe
from moerank.data.folds import load_digits_fold as load_digits_fold
from moerank.data.folds import load_fold as load_fold
from moerank.data.folds import load_planted_fold as load_planted_fold
from moerank.data.folds import load_web_fold as load_web_fold
from moerank.data.folds import make_planted as make_planted
from moerank.data.folds import make_web as make_web
from moerank.data.ranking_data import RankingData as RankingData
from moerank.data.read.letor import load_letor as load_letor
from moerank.data.read.table import load_table as load_table
from moerank.data.read.table import load_table_fold as load_table_fold
from moerank.data.scaling import PER_QUERY as PER_QUERY
from moerank.data.scaling import UNSCALED as UNSCALED
from moerank.data.scaling import FittedScaling as FittedScaling
from moerank.data.scaling import MissingRule as MissingRule
from moerank.data.scaling import Scaling as Scaling
from moerank.data.scaling import centre_in_queries as centre_in_queries
from moerank.data.scaling import fit_scaling as fit_scaling
from moerank.data.scaling import query_level_norm as query_level_norm
from moerank.data.shop import load_shop_fold as load_shop_fold
from moerank.data.shop import make_shop as make_shop
