"""moerank: feature selection for learning to rank by evolutionary multi-objective optimisation.

Everything public is here, and loaded when it is first used: ``import moerank as mr`` takes no time, ``mr.MOFSRank``
loads what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

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
    "FSMRank": "moerank.rankers",
    "RankRLS": "moerank.rankers",
    "RankSVM": "moerank.rankers",
    "Ensemble": "moerank.stages",
    "FeatureSelection": "moerank.stages",
    "InstanceSelection": "moerank.stages",
    "MOFSRank": "moerank.mofsrank",
    "make_solver": "moerank.solvers",
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
    from moerank.rankers import FSMRank, RankRLS, RankSVM
    from moerank.solvers import make_solver
    from moerank.stages import Ensemble, FeatureSelection, InstanceSelection

__all__ = [
    "MAP",
    "NDCG",
    "Ensemble",
    "FSMRank",
    "FeatureSelection",
    "InstanceSelection",
    "MOFSRank",
    "MeanNDCG",
    "Precision",
    "RankRLS",
    "RankSVM",
    "RankingData",
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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'moerank' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
