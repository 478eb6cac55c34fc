"""Comparison solvers: the published feature-selection methods, one file each."""

from moerank.selectors.cegb import CEGB as CEGB
from moerank.selectors.filter import PermutationImportance as PermutationImportance
from moerank.selectors.filter import SingleFeatures as SingleFeatures
from moerank.selectors.fs_bfs import FSBFS as FSBFS
from moerank.selectors.fs_ed import FSED as FSED
from moerank.selectors.fsm import FSMSVM as FSMSVM
from moerank.selectors.fsm import FSMRankSubgradient as FSMRankSubgradient
from moerank.selectors.gas import GAS as GAS
from moerank.selectors.gas import HCAS as HCAS
from moerank.selectors.gas import NGAS as NGAS
from moerank.selectors.gas import XGAS as XGAS
from moerank.selectors.greedy import GreedyAdditive as GreedyAdditive
from moerank.selectors.greedy import GreedyRankRLS as GreedyRankRLS
from moerank.selectors.sparse_rankers import FenchelRank as FenchelRank
from moerank.selectors.sparse_rankers import NonconvexRanker as NonconvexRanker
from moerank.selectors.tree_filters import ILMART as ILMART
from moerank.selectors.tree_filters import LambdaMARTGain as LambdaMARTGain
from moerank.selectors.tree_filters import LambdaMARTPermutation as LambdaMARTPermutation
from moerank.selectors.tree_filters import LambdaMARTRFE as LambdaMARTRFE
from moerank.selectors.tree_filters import LambdaMARTSHAP as LambdaMARTSHAP
