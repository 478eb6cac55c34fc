"""FS-BFS: features combined into few new ones, by best-first search and coordinate ascent (Dang and Croft, 2010)."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import Count, NotNegative
from moerank.data import RankingData
from moerank.kernels.scores import linear_scores
from moerank.metrics import NDCG, Metric, as_metric
from moerank.rankers import (
    LinearPopulation,
    Population,
    SelectionPath,
    nested_masks,
    train_on_subsets,
)
from moerank.rankers.base import MetricOrNone
from moerank.rankers.population import batch_of
from moerank.scikit_learn import check_is_fitted
from moerank.selectors.filter import Filter

FIRST_STEP = 0.001
FIRST_SHARE = 0.05
DOUBLINGS = 25


def coordinate_ascent(
    data: RankingData, metric: Metric, features: Sequence[int], restarts: int, tolerance: float
) -> tuple[Vector, float]:
    """Return weights of some features that rank `data` well, with Σ |w| = 1, and their metric.

    From equal weights, the weight of one feature after the other is changed by ±s, ±3s, ±7s … ±(2²⁵ − 1)s, or set to
    0, whichever ranks best, if that is better than before. The first step s is 0.001, or a twentieth of the weight
    where 0.001 is more than half of it. A search ends with a pass that gains less than `tolerance`, or nothing. There
    is one search for each of the first `restarts` features, which begins its passes with this feature.

    A search along a feature is one evaluation of the metric for 51 individuals. The constants are those of RankLib,
    which tries the decreases only where no increase helps, and shuffles the features for each restart.

    D. Metzler, W. B. Croft: Linear feature-based models for information retrieval. Information Retrieval 10, 2007.
    """
    X = np.ascontiguousarray(data.X64[:, features])
    starts = range(min(restarts, X.shape[1]))
    results = [_ascend(data, X, metric, start, tolerance) for start in starts]
    return max(results, key=lambda result: result[1])


def _ascend(
    data: RankingData, X: Matrix, metric: Metric, start: int, tolerance: float
) -> tuple[Vector, float]:
    """Return the result of one search over the columns of X, whose passes begin with column `start`."""

    def rank() -> tuple[Vector, float]:
        table = linear_scores(X, w[None])
        return table[:, 0], float(metric.batch(data, table)[0])

    n_features = X.shape[1]
    w = np.full(n_features, 1.0 / n_features)
    scores, value = rank()
    gain = np.inf
    while gain > 0.0 and gain >= tolerance:
        before = value
        for f in [*range(start, n_features), *range(start)]:
            changes = _changes(w, f)
            values = metric.batch(data, scores[:, None] + X[:, f, None] * changes)
            best = int(np.argmax(values))
            if values[best] > value:
                w[f] += changes[best]
                w /= np.abs(w).sum()
                scores, value = rank()
        gain = value - before
    return w, value


def _changes(w: Vector, f: int) -> Vector:
    """Return the changes of weight f that are tried."""
    size = abs(w[f])
    step = FIRST_SHARE * size if 0.0 < 0.5 * size < FIRST_STEP else FIRST_STEP
    up = step * (2.0 ** np.arange(1, DOUBLINGS + 1) - 1.0)
    changes = np.concatenate([up, -up, [-w[f]]])
    return changes[(w[f] + changes != 0) | (np.abs(w).sum() > size)]


Subset: TypeAlias = tuple[int, ...]


class FSBFS(Filter):
    """Partition the features, make each part one new feature, and train a ranker on the new features.

    The value of a subset of features is the metric on the training data of their best weighted sum, found by
    coordinate ascent. Best-first search finds a subset of large value, its sum becomes the next new feature, and its
    members leave; the search goes on among the others until none is left.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Number of new features to use, in the order in which they were found; fewer if there are fewer.
    ranker : estimator, optional
        Trained on the new features, such as ``RankBoost()`` or ``LambdaMART()``. Default: ``RankSVM()``.
    metric : Metric or its name, default NDCG(10)
        Measure of a ranking.
    max_size : int, default 4
        Largest number of members of a subset, ≥ 1.
    patience : int, default 5
        Subsets looked at in a row without an improvement before the search ends, ≥ 1.
    restarts : int, default 5
        Restarts of coordinate ascent, ≥ 1, at most one for each feature of a subset. 1 takes a third of the time.
    tolerance : float, default 0.001
        Least improvement that counts, in both searches, ≥ 0.

    Attributes
    ----------
    subsets_ : list of tuple of int
        Columns of X that each new feature is made of. Every feature that varies is in one of them.
    combinations_ : ndarray, shape (n_subsets, n_features)
        The weights of each new feature, Σ |w| = 1.
    values_ : ndarray, shape (n_subsets,)
        The metric of each new feature on the training data.
    coef_ : ndarray, shape (n_features,)
        The weights of the original features, if the ranker is linear.
    support_ : ndarray of bool, shape (n_features,)
        Members of the first subsets with a weight in their combination.

    Notes
    -----
    About n_features · max_size · patience / 2 evaluations of a subset for each new feature, each of some dozens of line
    searches with the metric of 51 individuals; a value is computed once for all searches. With more than a few hundred
    features this takes hours: lower `max_size`, `patience` and `restarts`, or begin with fewer. The papers leave some
    points open: here a search begins with the best single feature that is left, the defaults of max_size and patience
    are ours, and the tolerance and the rule to count `patience` are those of R. Kohavi, G. H. John: Wrappers for
    feature subset selection. Artificial Intelligence 97, 1997.

    References
    ----------
    V. Dang, W. B. Croft: Feature selection for document ranking using best first search and coordinate ascent. SIGIR
    workshop on feature generation and selection for information retrieval, 2010.

    Examples
    --------
    >>> X = [[0.0, 0.9, 0.2], [0.5, 0.6, 0.2], [0.4, 0.5, 0.3], [0.9, 0.8, 0.1]]
    >>> FSBFS(1, metric=NDCG(3)).fit(X, y=[0, 1, 2, 0], qid=0).subsets_
    [(1,), (0, 2)]
    """

    metric: MetricOrNone = None
    max_size: Count = 4
    patience: Count = 5
    restarts: Count = 5
    tolerance: NotNegative = 0.001

    def path(self, train: RankingData) -> SelectionPath:
        """Return the rankers of the first new features that have at most 1, 2, … members together.

        Parameters
        ----------
        train : RankingData
            The data that the selector was fitted to.
        """
        check_is_fitted(self, "combinations_")
        n_members = np.cumsum((self.combinations_ != 0).sum(axis=1))
        sizes = np.searchsorted(n_members, np.arange(1, train.n_features + 1), side="right")
        return SelectionPath(*self._train_first(train, sizes))

    def _arrange(self, train: RankingData, validation: RankingData | None) -> None:
        self.subsets_, self.combinations_, self.values_ = self._once(train, None)

    def _arrangement(self, train: RankingData, validation: RankingData | None) -> Any:
        """Return the subsets, their combinations (n_subsets, n_features) and their values."""
        metric = as_metric(self.metric, NDCG(10))
        results = {}

        def value(subset: Subset) -> float:
            if subset not in results:
                results[subset] = coordinate_ascent(
                    train, metric, subset, self.restarts, self.tolerance
                )
            return results[subset][1]

        remaining = np.flatnonzero(self.varying_).tolist()
        subsets = []
        while remaining:
            start = max(remaining, key=lambda feature: value((feature,)))
            subset = best_first(
                (start,), remaining, value, self.patience, self.max_size, self.tolerance
            )
            subsets.append(subset)
            remaining = [feature for feature in remaining if feature not in subset]
        combinations = np.zeros((len(subsets), train.n_features))
        for row, subset in zip(combinations, subsets, strict=True):
            row[list(subset)] = results[subset][0]
        return subsets, combinations, np.array([results[subset][1] for subset in subsets])

    def _train_first(self, train: RankingData, sizes: Integers) -> tuple[Mask, Population]:
        new = train.remember(
            ("new features", self.combinations_.tobytes()),
            lambda: train.with_table(linear_scores(train.X, self.combinations_)),
        )
        n_new = new.n_features
        masks = nested_masks(np.arange(n_new), n_new, sizes.clip(max=n_new))
        population = train_on_subsets(self._chosen_ranker(), new, masks)
        members = (masks[:, :, None] & (self.combinations_ != 0)).any(axis=1)
        if population.coefs is None:
            scores = partial(_scores_of_combinations, population, self.combinations_)
            return members, batch_of(scores, len(masks), train.n_features)
        return members, LinearPopulation(population.coefs @ self.combinations_)


def _scores_of_combinations(population: Population, combinations: Matrix, X: Matrix) -> Matrix:
    """Return the scores that rankers of new features give to documents by the original ones."""
    return population.scores(linear_scores(X, combinations))


def best_first(
    start: Subset,
    features: Iterable[int],
    value: Callable[[Subset], float],
    patience: int,
    max_size: int,
    tol: float,
) -> Subset:
    """Return the best subset that best-first search comes across.

    The most valuable subset not visited yet is visited next, and its neighbours with one feature more or less join the
    list; of equal values the smaller subset and then the earlier features come first. The search ends
    with an empty list, or when `patience` subsets in a row did not raise the best value by more than `tol`.
    """

    def entry(subset: Subset) -> tuple[float, int, Subset]:
        return -value(subset), len(subset), subset

    best, stale, seen = start, 0, {start}
    waiting = [entry(start)]
    while waiting and stale < patience:
        subset = heapq.heappop(waiting)[2]
        if value(subset) > value(best) + tol:
            best, stale = subset, 0
        else:
            stale += 1
        for feature in features:
            neighbour = tuple(sorted({feature}.symmetric_difference(subset)))
            if 0 < len(neighbour) <= max_size and neighbour not in seen:
                seen.add(neighbour)
                heapq.heappush(waiting, entry(neighbour))
    return best
