"""moerank: feature selection for learning to rank by evolutionary multi-objective optimisation.

Everything public is here, and loaded when it is first used: ``import moerank as mr`` takes no time, ``mr.MOFSRank``
loads what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from moerank.version import VERSION

__version__ = VERSION

_HOME = {
    "RankingData": "moerank.data",
    "describe": "moerank.data",
    "load_digits_fold": "moerank.data",
    "load_fold": "moerank.data",
    "load_letor": "moerank.data",
    "load_planted_fold": "moerank.data",
    "make_planted": "moerank.data",
    "query_level_norm": "moerank.data",
    "MAP": "moerank.metrics",
    "MeanNDCG": "moerank.metrics",
    "NDCG": "moerank.metrics",
    "Precision": "moerank.metrics",
    "make_metric": "moerank.metrics",
    "AdaRank": "moerank.rankers",
    "BaggedLambdaMART": "moerank.rankers",
    "CombinedRegressionRanking": "moerank.rankers",
    "FRank": "moerank.rankers",
    "FSMRank": "moerank.rankers",
    "KernelRankSVM": "moerank.rankers",
    "LambdaMART": "moerank.rankers",
    "ListNet": "moerank.rankers",
    "RankBoost": "moerank.rankers",
    "RankFourier": "moerank.rankers",
    "RankNystrom": "moerank.rankers",
    "RankRLS": "moerank.rankers",
    "RankSVM": "moerank.rankers",
    "RankSVMStruct": "moerank.rankers",
    "RankSVMTRON": "moerank.rankers",
    "RankerAdapter": "moerank.rankers",
    "SVMMAP": "moerank.rankers",
    "FSBFS": "moerank.selectors",
    "FSED": "moerank.selectors",
    "FSMRankSubgradient": "moerank.selectors",
    "FSMSVM": "moerank.selectors",
    "FenchelRank": "moerank.selectors",
    "GAS": "moerank.selectors",
    "GreedyRankRLS": "moerank.selectors",
    "NonconvexRanker": "moerank.selectors",
    "SingleFeatures": "moerank.selectors",
    "Ensemble": "moerank.stages",
    "FeatureSelection": "moerank.stages",
    "InstanceSelection": "moerank.stages",
    "MOFSRank": "moerank.mofsrank",
    "make_solver": "moerank.solvers",
    "Study": "moerank.studies.study",
}

if TYPE_CHECKING:
    from moerank.data import (
        RankingData,
        describe,
        load_digits_fold,
        load_fold,
        load_letor,
        load_planted_fold,
        make_planted,
        query_level_norm,
    )
    from moerank.metrics import MAP, NDCG, MeanNDCG, Precision, make_metric
    from moerank.mofsrank import MOFSRank
    from moerank.rankers import (
        SVMMAP,
        AdaRank,
        BaggedLambdaMART,
        CombinedRegressionRanking,
        FRank,
        FSMRank,
        KernelRankSVM,
        LambdaMART,
        ListNet,
        RankBoost,
        RankerAdapter,
        RankFourier,
        RankNystrom,
        RankRLS,
        RankSVM,
        RankSVMStruct,
        RankSVMTRON,
    )
    from moerank.selectors import (
        FSBFS,
        FSED,
        FSMSVM,
        GAS,
        FenchelRank,
        FSMRankSubgradient,
        GreedyRankRLS,
        NonconvexRanker,
        SingleFeatures,
    )
    from moerank.solvers import make_solver
    from moerank.stages import Ensemble, FeatureSelection, InstanceSelection
    from moerank.studies.study import Study

__all__ = [
    "AdaRank",
    "BaggedLambdaMART",
    "CombinedRegressionRanking",
    "Ensemble",
    "FRank",
    "FSBFS",
    "FSED",
    "FSMRank",
    "FSMRankSubgradient",
    "FSMSVM",
    "FeatureSelection",
    "FenchelRank",
    "GAS",
    "GreedyRankRLS",
    "InstanceSelection",
    "KernelRankSVM",
    "LambdaMART",
    "ListNet",
    "MAP",
    "MOFSRank",
    "MeanNDCG",
    "NDCG",
    "NonconvexRanker",
    "Precision",
    "RankBoost",
    "RankFourier",
    "RankNystrom",
    "RankRLS",
    "RankSVM",
    "RankSVMStruct",
    "RankSVMTRON",
    "RankerAdapter",
    "RankingData",
    "SVMMAP",
    "SingleFeatures",
    "Study",
    "__version__",
    "describe",
    "load_digits_fold",
    "load_fold",
    "load_letor",
    "load_planted_fold",
    "make_metric",
    "make_planted",
    "make_solver",
    "query_level_norm",
]


if not TYPE_CHECKING:  # or else every name would do

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module 'moerank' has no attribute {name!r}")
        return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
