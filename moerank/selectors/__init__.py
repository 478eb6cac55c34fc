"""Comparison solvers: the published feature-selection methods, one file each."""

from moerank.selectors.fenchel_rank import FenchelRank as FenchelRank
from moerank.selectors.fs_bfs import FSBFS as FSBFS
from moerank.selectors.fs_ed import FSED as FSED
from moerank.selectors.fsm_rank_subgradient import FSMRankSubgradient as FSMRankSubgradient
from moerank.selectors.fsm_svm import FSMSVM as FSMSVM
from moerank.selectors.gas import GAS as GAS
from moerank.selectors.greedy_rank_rls import GreedyRankRLS as GreedyRankRLS
from moerank.selectors.hcas import HCAS as HCAS
from moerank.selectors.lambda_mart_gain import LambdaMARTGain as LambdaMARTGain
from moerank.selectors.lambda_mart_rfe import LambdaMARTRFE as LambdaMARTRFE
from moerank.selectors.lambda_mart_shap import LambdaMARTSHAP as LambdaMARTSHAP
from moerank.selectors.ngas import NGAS as NGAS
from moerank.selectors.nonconvex import NonconvexRanker as NonconvexRanker
from moerank.selectors.single import SingleFeatures as SingleFeatures
from moerank.selectors.xgas import XGAS as XGAS
