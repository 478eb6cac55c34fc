"""Comparison solvers: the published feature-selection methods, one file each."""

from moerank.selectors.fenchel_rank import FenchelRank
from moerank.selectors.fs_bfs import FSBFS
from moerank.selectors.fs_ed import FSED
from moerank.selectors.fsm_rank_subgradient import FSMRankSubgradient
from moerank.selectors.fsm_svm import FSMSVM
from moerank.selectors.gas import GAS
from moerank.selectors.greedy_rank_rls import GreedyRankRLS
from moerank.selectors.nonconvex import NonconvexRanker
from moerank.selectors.single import SingleFeatures

__all__ = [
    "FSBFS",
    "FSED",
    "FSMRankSubgradient",
    "FSMSVM",
    "FenchelRank",
    "GAS",
    "GreedyRankRLS",
    "NonconvexRanker",
    "SingleFeatures",
]
