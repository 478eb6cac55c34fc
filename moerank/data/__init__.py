"""Ranking data: the structure, its preference pairs, files and embedded problems."""

from moerank.data.describe import DataDescription, describe
from moerank.data.digits import load_digits_fold
from moerank.data.folds import load_fold, split_fold
from moerank.data.letor import load_letor
from moerank.data.normalise import centre_in_queries, query_level_norm
from moerank.data.pairs import PreferencePairs
from moerank.data.planted import PlantedProblem, load_planted_fold, make_planted
from moerank.data.ranking_data import RankingData

__all__ = [
    "DataDescription",
    "PlantedProblem",
    "PreferencePairs",
    "RankingData",
    "centre_in_queries",
    "describe",
    "load_digits_fold",
    "load_fold",
    "load_letor",
    "load_planted_fold",
    "make_planted",
    "query_level_norm",
    "split_fold",
]
