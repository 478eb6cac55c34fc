"""The ranker that serves: trained on the features of each member of a front, whatever ranker the search asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from moerank.checks import check_at_least, unknown
from moerank.data import RankingData
from moerank.rankers import LambdaMART, Population, make_ranker
from moerank.stages.cross_fitting import CrossFitting
from moerank.stages.front import Front
from moerank.stages.staged_search import StagedSearch
from moerank.stages.subsets import train_on_each

__all__ = ["RefitPlan", "Served", "read_refit", "refit_front"]


@dataclass(frozen=True)
class RefitPlan:
    """What is trained on the members of the front, and whether it takes part in a search of its own before.

    Attributes
    ----------
    ranker : estimator
        Not fitted yet.
    named : bool
        Whether it was given by its name, which leaves all parameters open.
    evaluations : int
        Feature subsets that the ranker itself judges; 0 for none.
    """

    ranker: Any
    named: bool = False
    evaluations: int = 0


def read_refit(value: object, random_state: int = 0) -> RefitPlan | None:
    """Read what `MOFSRank` was given as `refit`; None stays None.

    A ranker that draws and has no seed of its own is given `random_state`.

    Raises
    ------
    ValueError
        For the name of no ranker, the nearest one being suggested, for what can neither be fitted nor predict, and for
        an unknown key or a wrong value in a mapping.

    Examples
    --------
    >>> read_refit("lambdamart")
    RefitPlan(ranker=LambdaMART(), named=True, evaluations=0)
    >>> read_refit({"ranker": "lambdamart", "evaluation": 200})
    Traceback (most recent call last):
        ...
    ValueError: unknown setting of refit 'evaluation'; did you mean 'evaluations'?
    """
    if value is None:
        return None
    given: Mapping[str, Any] = value if isinstance(value, Mapping) else {"ranker": value}
    for key in given:
        if key not in ("ranker", "evaluations"):
            raise ValueError(unknown("setting of refit", key, ("ranker", "evaluations")))
    named, evaluations = given.get("ranker"), given.get("evaluations", 0)
    check_at_least(0, evaluations=evaluations)
    is_ranker = hasattr(named, "fit") and hasattr(named, "predict") and not isinstance(named, type)
    if not isinstance(named, str) and not is_ranker:
        raise ValueError(f"refit: the ranker must be a name or an estimator with fit and predict, not {named!r}")
    ranker: Any = make_ranker(named) if isinstance(named, str) else clone(named)
    if ranker.get_params().get("random_state", 0) is None:
        ranker.set_params(random_state=random_state)
    return RefitPlan(ranker, isinstance(named, str), evaluations)


@dataclass(frozen=True, eq=False)
class Served:
    """What is left of a front when another ranker serves.

    Attributes
    ----------
    ranker : estimator
        With the parameters that were used; the number of trees of LambdaMART is the largest there may be.
    front : Front
        The members with its rankers. The objectives stay those of the search.
    reference : Population
        The ranker on all features.
    """

    ranker: Any
    front: Front
    reference: Population


def refit_front(
    plan: RefitPlan, stages: StagedSearch, front: Front, validation: RankingData | None, *, tune: bool
) -> Served:
    """Train a ranker on the features of each member of a front, and on all features.

    The steps, by the names that the progress hears:

    1. "refit_tuning": parameters are chosen from the published grid of the ranker by validation MAP with all features,
       if `tune` or the ranker is known by its name alone. Without validation data, or a grid, they stay as they are.
    2. "refit_search": with `plan.evaluations` the search goes on from the front, judged by the ranker itself; see
       `CrossFitting`. LambdaMART has the number of trees then that validation chooses with all features.
    3. "refit": the ranker is trained on the features of each member. LambdaMART has as many trees as validation chooses
       for each.
    """
    train, ranker = stages.train, plan.ranker
    tell = stages.progress or (lambda stage, share, number, n_eval: None)
    if validation is not None and (tune or plan.named) and hasattr(ranker, "tune"):
        ranker = ranker.tune(train, validation, progress=lambda share: tell("refit_tuning", share, 0, 0))
    if isinstance(ranker, LambdaMART):
        ranker = clone(ranker).set_params(n_trees=plan.ranker.n_trees)
    F, masks = front.F, front.feature_mask
    if plan.evaluations:
        of_all = ranker.stopped(train, validation) if isinstance(ranker, LambdaMART) and validation else ranker
        backend = CrossFitting(of_all, stages.metric, masks, stages.random_state, stages.workers)
        F, masks = stages.select_again(backend, front, plan.evaluations)
    rankers = train_on_each(
        ranker,
        train,
        np.concatenate([masks, np.ones((1, train.n_features), bool)]),
        validation,
        workers=stages.workers,
        progress=lambda share, number: tell("refit", share, number, number),
    )
    members, last = np.arange(len(masks)), np.array([len(masks)])
    return Served(ranker, Front(F, masks, rankers.take(members)), rankers.take(last))
