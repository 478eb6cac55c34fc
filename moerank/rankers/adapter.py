"""Adapters that train any scikit-learn style ranker on feature subsets, alone or as the backend of a search."""

import inspect
from collections.abc import Callable, Mapping, MutableMapping
from copy import copy
from dataclasses import asdict
from types import SimpleNamespace
from typing import Annotated, Any, TypeAlias, TypeGuard, cast

import numpy as np
from pydantic import TypeAdapter

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import Parameters
from moerank.data import RankingData
from moerank.metrics import Metric
from moerank.rankers.arguments import refuse_weights
from moerank.rankers.base import RankingEstimator
from moerank.rankers.model import Forest, finite_scores, linear_weights
from moerank.rankers.population import (
    AnyRanker,
    FitnessBackend,
    FittedPopulation,
    Population,
    population_of,
    train_population,
)
from moerank.rankers.rank_rls import RankRLS
from moerank.scikit_learn import BaseEstimator, clone
from moerank.solvers import make_backend, read_solver
from moerank.training.masks import read_masks

# Names that libraries give to the number of threads of a ranker.
THREADS = ("n_jobs", "thread_count")


class RankerAdapter(BaseEstimator):
    """Train a population with any ranker, one individual after the other.

    Parameters
    ----------
    ranker : estimator
        An object with ``fit(X, y)`` and ``predict(X)``; a higher prediction ranks higher. If ``fit`` has a parameter
        ``group`` (LightGBM, XGBoost), it gets the number of documents of each query; otherwise a parameter ``qid`` or
        ``group_id`` (CatBoost) gets the query of each document. You set its own parameters as ``ranker__…``.

    Notes
    -----
    Every individual is a clone that is trained on its own columns of X. It uses one thread unless the ranker sets a
    number, because individuals are small and many, and sums over several threads may differ in their last bits. A
    ranker with a ``coef_`` of one number per feature, by which its `predict` scores, counts as linear: the population
    is then an array of weights, without the intercept, which moves no document. All others make a `FittedPopulation`,
    which can score documents but has no weights for the ensemble stage to add up. An individual with constant features
    only, on which the rankers of this package refuse to train, scores every document alike. A `pair_mask` is refused,
    because training on documents cannot leave out single pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> train = RankingData([[0.1, 0.5], [0.9, 0.4], [0.5, 0.6]], y=[0, 2, 1], qid=0)
    >>> subsets = np.array([[True, True], [False, True]])
    >>> W = RankerAdapter(Ridge(alpha=0.1)).fit_population(train, feature_mask=subsets)
    >>> (W != 0).tolist()
    [[True, True], [False, True]]
    """

    def __init__(self, ranker: AnyRanker) -> None:
        self.ranker = ranker

    def fit_population(
        self,
        train: RankingData,
        *,
        pair_mask: Mask | None = None,
        feature_mask: Mask | None = None,
        start: Matrix | None = None,
    ) -> Matrix | FittedPopulation:
        """Train one ranker for each row of `feature_mask`; see `FitnessBackend`. `start` is ignored.

        Returns
        -------
        ndarray, shape (n_individuals, n_features), or FittedPopulation

        Raises
        ------
        ValueError
            For a `pair_mask`, or a wrong `feature_mask`.
        """
        if pair_mask is not None:
            raise ValueError(
                f"{type(self.ranker).__name__} is trained on documents, so it cannot choose "
                "preference pairs by a pair_mask; use instance_selection=False, or a backend that "
                "is trained on pairs, such as RankSVM"
            )
        usable = read_masks(train, None, feature_mask).features & varying_for(self.ranker, train)
        rankers = [train_on(self.ranker, train, mask) for mask in usable]
        trained = population_of(rankers, usable, train.X)
        return trained if isinstance(trained, FittedPopulation) else trained.coefs


class ForeignRanker(RankingEstimator):
    """A ranker or selector of another package as an estimator of this one.

    It has ``fit`` and ``predict``, as in `RankerAdapter`. It uses the features that its ``get_support()`` returns, or
    all; a pipeline uses the features that its selectors leave, up to the first step that mixes features. It is linear
    if it has a ``coef_`` of one number per feature, by which its `predict` scores.
    """

    _additive = False

    ranker: AnyRanker

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self.ranker_: Any = train_on(self.ranker, train, np.ones(train.n_features, bool))
        self.support_ = np.isin(
            np.arange(train.n_features), _columns_used(self.ranker_, train.n_features)
        )
        weights = linear_weights(self.ranker_, train.X)
        if weights is not None:
            self.coef_ = np.asarray(weights, float)

    def _scores(self, X: Vector) -> Vector:
        return finite_scores(
            np.asarray(self.ranker_.predict(X), float).reshape(-1), type(self.ranker_).__name__
        )


def _columns_used(trained: object, n_features: int) -> Integers:
    """Return the columns that a fitted ranker uses."""
    from sklearn.base import OneToOneFeatureMixin

    columns = np.arange(n_features)
    for _, step in getattr(trained, "steps", [("", trained)]):  # the steps of a pipeline
        if hasattr(step, "get_support"):
            columns = columns[step.get_support()]
        elif not (isinstance(step, OneToOneFeatureMixin) or step in ("passthrough", None)):
            break
    return columns


def with_features(estimator: Any) -> RankingEstimator:
    """Return the estimator itself if it is one of this package, otherwise a `ForeignRanker` around it."""
    return estimator if isinstance(estimator, RankingEstimator) else ForeignRanker(estimator)


def trains_together(ranker: object) -> TypeGuard[FitnessBackend]:
    """Return whether a ranker trains all sets of features at once, as a backend does that adds no interactions."""
    return isinstance(ranker, FitnessBackend) and not getattr(ranker, "interactions", 0)


def train_on_subsets(
    ranker: object,
    train: RankingData,
    feature_mask: Mask,
    validation: RankingData | None = None,
    *,
    metric: Metric | None = None,
    workers: int = 1,
    progress: Callable[[float, int], object] | None = None,
    finished: MutableMapping[str, Any] | None = None,
) -> Population:
    """Train a ranker on the features of each row of `feature_mask`; equal rows are trained once.

    A fitness backend trains all subsets at once, others one by one in `workers` threads with the same result. A ranker
    without features, or with constant features only, scores every document alike. `validation` chooses the number of
    trees of `LambdaMART` by `metric`, see `LambdaMART.stopped`. `progress` gets the finished share and the number of
    rankers. `finished` caches the trees of LambdaMART by subset, so that training can resume.

    >>> from moerank.rankers import RankBoost
    >>> train = RankingData([[0.1, 0.5], [0.9, 0.4], [0.5, 0.6]], y=[0, 2, 1], qid=0)
    >>> population = train_on_subsets(RankBoost(n_rounds=5), train, np.array([[True, False], [True, True]]))
    >>> population.scores(train.X).argmax(axis=0).tolist()
    [1, 1]
    """
    distinct, rows = np.unique(feature_mask, axis=0, return_inverse=True)
    rows = rows.ravel()
    if trains_together(ranker):
        n_empty = np.count_nonzero(~distinct.any(axis=1))  # 0 or 1, and it sorts first
        trained = train_population(ranker, train, feature_mask=distinct[n_empty:])
        return trained.take(rows - n_empty)
    usable = distinct & varying_for(ranker, train)
    keys = [np.packbits(mask).tobytes().hex() for mask in usable]
    rankers = [_cached_ranker(finished, key) for key in keys]
    from sklearn.utils.parallel import Parallel, delayed

    missing = [subset for subset, entry in enumerate(rankers) if entry is None]
    pool = Parallel(workers, backend="threading", return_as="generator")
    training = pool(
        delayed(train_on)(ranker, train, usable[subset], validation, metric) for subset in missing
    )
    n_finished = len(usable) - len(missing)
    for subset, trained_ranker in zip(missing, training, strict=True):
        rankers[subset] = trained_ranker
        n_finished += 1
        if finished is not None and trained_ranker is not None:
            finished[keys[subset]] = asdict(trained_ranker.forest_)
        if progress is not None:
            progress(n_finished / len(usable), n_finished)
    return population_of(rankers, usable, train.X).take(rows)


def _cached_ranker(finished: Mapping[str, Any] | None, key: str) -> Any:
    """Return the ranker with the stored trees of this key, or None; wrong entries are a ValueError."""
    if not finished or key not in finished:
        return None
    forest = TypeAdapter(Forest).validate_python(finished[key])
    return SimpleNamespace(forest_=forest, predict=forest.scores)


def check_ranker(**rankers: object) -> None:
    """Raise a ValueError for a parameter that is neither an estimator nor None."""
    for name, ranker in rankers.items():
        if not (ranker is None or (hasattr(ranker, "fit") and hasattr(ranker, "predict"))):
            raise ValueError(
                f"{name} must be an estimator with fit and predict, or None, not {ranker!r}"
            )


RankerOrNone: TypeAlias = Annotated[AnyRanker | None, check_ranker]


def train_on(
    ranker: Any,
    train: RankingData,
    mask: Mask,
    validation: RankingData | None = None,
    metric: Metric | None = None,
) -> AnyRanker | None:
    """Return a clone of a ranker trained on the features of `mask`, shape (n_features,); None if there are none.

    With validation data LambdaMART has the number of trees that `LambdaMART.stopped` chooses.
    """
    refuse_weights(train, ranker)
    if not mask.any():
        return None
    ranker = clone(ranker, safe=False)  # plain objects are copied
    if isinstance(ranker, RankingEstimator):  # copies, because data sets remember their parts
        part = copy(train).with_features(mask)
        held_out = None if validation is None else copy(validation).with_features(mask)
        if held_out is not None and hasattr(ranker, "stopped"):
            return ranker.stopped(part, held_out, metric)
        if metric is not None:
            ranker._early_stopping_metric = metric
        return ranker._learn(part, held_out)
    parameters = ranker.get_params(deep=False) if hasattr(ranker, "get_params") else {}
    threads = {name: 1 for name in THREADS if parameters.get(name, 1) is None}
    if threads:
        ranker = ranker.set_params(**threads)
    return ranker.fit(train.X[:, mask], train.y, **_query_argument(ranker, train))


def _query_argument(ranker: AnyRanker, train: RankingData) -> Parameters:
    """Return the keyword argument that passes the queries to the ``fit`` of a ranker."""
    parameters = inspect.signature(ranker.fit).parameters
    if "group" in parameters:
        return {"group": np.diff(train.offsets)}
    return {name: train.qid for name in ("qid", "group_id") if name in parameters}


def varying_for(ranker: object, train: RankingData) -> Mask:
    """Return the features that a ranker is trained on, shape (n_features,): all for a ranker of another package.

    Raises a ValueError if the data have weights that the ranker does not use.
    """
    refuse_weights(train, ranker)
    if not isinstance(ranker, RankingEstimator):
        return np.ones(train.n_features, bool)
    estimator = clone(ranker)
    estimator._look_at(train)
    return estimator.varying_


def as_backend(ranker: FitnessBackend | AnyRanker | str | None) -> FitnessBackend:
    """Return a ranker itself if it is a fitness backend, otherwise a `RankerAdapter` around it; RankRLS for None.

    A string names a backend of the table of solvers. Raises a ValueError for another string, and for an object with
    neither ``fit_population`` nor both ``fit`` and ``predict``, and for a search, which has a backend of its own.

    >>> from moerank.rankers import ListNet, RankRLS
    >>> as_backend(RankRLS()), as_backend(ListNet(n_epochs=5))
    (RankRLS(), RankerAdapter(ranker=ListNet(n_epochs=5)))
    >>> as_backend("additive[n_bins=32]")
    AdditiveRLS(n_bins=32)
    """
    if ranker is None:
        return RankRLS()
    if isinstance(ranker, str):
        name, parameters = read_solver(ranker)
        return cast(FitnessBackend, make_backend(name, **parameters))
    if not (isinstance(ranker, type) or hasattr(ranker, "backend")):
        if callable(getattr(ranker, "fit_population", None)):
            return cast(FitnessBackend, ranker)
        if all(callable(getattr(ranker, method, None)) for method in ("fit", "predict")):
            return RankerAdapter(cast(AnyRanker, ranker))
    raise ValueError(
        "backend must be a ranker with fit_population, or with fit and predict, or a name, "
        f"not {ranker!r:.80}"
    )
