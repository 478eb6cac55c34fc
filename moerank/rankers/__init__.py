"""Rankers: learning to rank with all features or a given subset; each is a fitness backend for the search."""

from moerank.rankers.adapter import RankerAdapter
from moerank.rankers.base import FitnessBackend, LinearRanker, as_feature_table, as_ranking_data
from moerank.rankers.fsm_rank import FSMRank
from moerank.rankers.population import FittedPopulation, Population, population_scores, require_weights
from moerank.rankers.rank_rls import RankRLS
from moerank.rankers.rank_svm import RankSVM

__all__ = [
    "FitnessBackend",
    "LinearRanker",
    "RankSVM",
    "RankRLS",
    "FSMRank",
    "RankerAdapter",
    "FittedPopulation",
    "Population",
    "as_feature_table",
    "as_ranking_data",
    "population_scores",
    "require_weights",
]
