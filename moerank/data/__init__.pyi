"""Ranking data: documents and their preference pairs, readers of files, and embedded problems."""

from .costs import FeatureCosts as FeatureCosts
from .describe import describe as describe
from .folds import load_digits_fold as load_digits_fold
from .folds import load_fold as load_fold
from .folds import load_planted_fold as load_planted_fold
from .folds import load_web_fold as load_web_fold
from .folds import make_planted as make_planted
from .folds import make_web as make_web
from .preparation import PER_QUERY as PER_QUERY
from .preparation import UNSCALED as UNSCALED
from .preparation import FittedScaling as FittedScaling
from .preparation import MissingRule as MissingRule
from .preparation import Scaling as Scaling
from .ranking_data import Fold as Fold
from .ranking_data import RankingData as RankingData
from .ranking_data import remembered as remembered
from .read.letor import load_letor as load_letor
from .read.table import load_table as load_table
from .read.table import load_table_fold as load_table_fold
from .scaling import centre_in_queries as centre_in_queries
from .scaling import fit_scaling as fit_scaling
from .scaling import query_level_norm as query_level_norm
from .shop import load_shop_fold as load_shop_fold
from .shop import make_shop as make_shop
