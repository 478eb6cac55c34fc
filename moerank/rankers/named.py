"""The rankers by the names of the table of solvers, for those who train one that is named."""

from __future__ import annotations

from typing import Any

from moerank.checks import unknown
from moerank.rankers.ada_rank import AdaRank
from moerank.rankers.base import RankingEstimator
from moerank.rankers.boosting import FRank, RankBoost
from moerank.rankers.crr import CombinedRegressionRanking
from moerank.rankers.cutting_plane import SVMMAP, RankSVMStruct
from moerank.rankers.kernel import KernelRankSVM, RankFourier, RankNystrom
from moerank.rankers.lambda_mart import BaggedLambdaMART, LambdaMART
from moerank.rankers.list_net import ListNet
from moerank.rankers.rank_rls import RankRLS
from moerank.rankers.rank_svm import RankSVM, RankSVMTRON

__all__ = ["RANKERS", "make_ranker"]

RANKERS: dict[str, tuple[type[RankingEstimator], dict[str, Any]]] = {
    "ranksvm-primal": (RankSVM, {}),
    "ranksvm-struct": (RankSVMStruct, {}),
    "ranksvm-tron": (RankSVMTRON, {}),
    "rankrls": (RankRLS, {}),
    "listnet": (ListNet, {}),
    "adarank-map": (AdaRank, {"measure": "map"}),
    "adarank-ndcg": (AdaRank, {"measure": "ndcg"}),
    "svm-map": (SVMMAP, {}),
    "crr": (CombinedRegressionRanking, {}),
    "ranksvm-kernel": (KernelRankSVM, {}),
    "rank-nystrom": (RankNystrom, {}),
    "rank-fourier": (RankFourier, {}),
    "rankboost": (RankBoost, {}),
    "frank": (FRank, {}),
    "lambdamart": (LambdaMART, {}),
    "bl-mart": (BaggedLambdaMART, {}),
}
"""Class and fixed arguments of each ranker."""


def make_ranker(name: str, **parameters: Any) -> Any:
    """Return a ranker by its name, not fitted yet.

    Parameters
    ----------
    name : str
        One of `RANKERS`.
    **parameters
        Arguments of its class.

    Raises
    ------
    ValueError
        For a name that does not exist; the message suggests the nearest one.

    Examples
    --------
    >>> make_ranker("rankrls", alpha=0.1)
    RankRLS(alpha=0.1)
    """
    if name not in RANKERS:
        raise ValueError(unknown("ranker", name, RANKERS))
    kind, fixed = RANKERS[name]
    return kind(**{**parameters, **fixed})
