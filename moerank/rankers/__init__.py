"""Rankers: learning to rank with all features or a given subset; each is a fitness backend for the search."""

from moerank.rankers.ada_rank import AdaRank
from moerank.rankers.adapter import RankerAdapter
from moerank.rankers.arguments import Validation, as_feature_table, as_ranking_data, as_validation_data
from moerank.rankers.base import LinearBackend, LinearRanker, Ranker
from moerank.rankers.bl_mart import BaggedLambdaMART
from moerank.rankers.crr import CombinedRegressionRanking
from moerank.rankers.estimator import ConstantFeatureWarning, RankingEstimator, varying_in_queries
from moerank.rankers.f_rank import FRank
from moerank.rankers.fsm_rank import FSMRank
from moerank.rankers.kernel_map import RankFourier, RankNystrom
from moerank.rankers.lambda_mart import LambdaMART
from moerank.rankers.list_net import ListNet
from moerank.rankers.path import LargestWeightsPath, SelectionPath, nested_masks, train_on_subsets
from moerank.rankers.population import (
    AnyRanker,
    FitnessBackend,
    FittedPopulation,
    LinearPopulation,
    Population,
    Scorer,
    require_weights,
    side_by_side,
    train_population,
)
from moerank.rankers.rank_boost import RankBoost
from moerank.rankers.rank_rls import RankRLS
from moerank.rankers.rank_svm import RankSVM
from moerank.rankers.rank_svm_kernel import KernelRankSVM
from moerank.rankers.rank_svm_struct import RankSVMStruct
from moerank.rankers.rank_svm_tron import RankSVMTRON
from moerank.rankers.svm_map import SVMMAP

__all__ = [
    "FitnessBackend",
    "ConstantFeatureWarning",
    "LargestWeightsPath",
    "LinearBackend",
    "LinearRanker",
    "Ranker",
    "RankingEstimator",
    "SelectionPath",
    "RankSVM",
    "RankSVMTRON",
    "KernelRankSVM",
    "RankNystrom",
    "RankFourier",
    "RankRLS",
    "FSMRank",
    "RankBoost",
    "FRank",
    "AdaRank",
    "LambdaMART",
    "BaggedLambdaMART",
    "RankSVMStruct",
    "ListNet",
    "SVMMAP",
    "CombinedRegressionRanking",
    "AnyRanker",
    "RankerAdapter",
    "FittedPopulation",
    "LinearPopulation",
    "Population",
    "Scorer",
    "Validation",
    "as_feature_table",
    "as_ranking_data",
    "as_validation_data",
    "require_weights",
    "side_by_side",
    "nested_masks",
    "train_on_subsets",
    "train_population",
    "varying_in_queries",
]
