"""Which member of a front serves, and what validation has to say against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from moerank.rankers import Population, SelectionPath
from moerank.statistics import mean_and_error, smallest_within_error

__all__ = ["Final", "advice_against", "best_of_each_size", "choose_member", "knee"]

Final: TypeAlias = Literal["auto", "train", "validation", "one-se", "knee"]
"""By what the final member of the front is chosen; see `MOFSRank`."""

Values = NDArray[np.float64]


def choose_member(rule: Final, sizes: NDArray[np.int64], means: Values, per_query: Callable[[], Values]) -> int:
    """Return which member of a front is chosen.

    Parameters
    ----------
    rule : str
        "one-se" is the smallest within one paired standard error of the best, "knee" the one at the front's bend; any
        other rule is the best, the smallest of equals.
    sizes : ndarray of int, shape (n_members,), ascending
        Number of features of each member.
    means : ndarray, shape (n_members,)
        The metric, larger is better, on the queries by which to choose.
    per_query : callable
        Returns its value in each of these queries, shape (n_queries, n_members); asked for "one-se" alone.

    Examples
    --------
    >>> sizes, per_query = np.array([1, 2, 6, 9]), np.array([[0.1, 0.6, 0.7, 0.5], [0.3, 0.6, 0.6, 0.9]])
    >>> means, rules = per_query.mean(axis=0), ("validation", "one-se", "knee")
    >>> [choose_member(rule, sizes, means, lambda: per_query) for rule in rules]
    [3, 1, 1]
    """
    if rule == "one-se":
        return smallest_within_error(per_query(), sizes)
    return knee(sizes, means) if rule == "knee" else int(means.argmax())


def best_of_each_size(feature_mask: NDArray[np.bool_], rankers: Population, means: Values) -> SelectionPath:
    """Return for each k the member of a front with at most k features that is best by the metric.

    Parameters
    ----------
    feature_mask : ndarray of bool, shape (n_members, n_features)
    rankers : Population
        One for each member.
    means : ndarray, shape (n_members,)
        The metric, larger is better; the first of equals is taken.

    Examples
    --------
    >>> from moerank.rankers import LinearPopulation
    >>> W = np.array([[0.0, 0.5, 0.0], [0.3, 0.5, 0.1]])
    >>> best_of_each_size(W != 0, LinearPopulation(W), np.array([0.6, 0.7])).feature_mask.sum(axis=1).tolist()
    [1, 1, 3]
    """
    sizes, k = np.count_nonzero(feature_mask, axis=1), np.arange(1, feature_mask.shape[1] + 1)
    best = np.where(sizes <= k[:, None], means, -np.inf).argmax(axis=1)
    small = sizes[best] <= k  # some member of the front is
    return SelectionPath(feature_mask[best] & small[:, None], rankers.take(np.where(small, best, -1)))


def knee(sizes: NDArray[np.int64], means: Values) -> int:
    """Return the member that is farthest above the line from the smallest member to the best one.

    Size and metric are scaled to [0, 1] between these two. Where nothing is above that line, the best is taken.

    References
    ----------
    I. Das: On characterizing the "knee" of the Pareto curve based on normal-boundary intersection. Structural
    Optimization 18, 1999.

    Examples
    --------
    >>> knee(np.array([1, 2, 6, 9]), np.array([0.2, 0.6, 0.65, 0.7]))
    1
    >>> knee(np.array([1, 5, 9]), np.array([0.2, 0.4, 0.6]))
    2
    """
    best = int(means.argmax())
    first = int(np.lexsort((-means, sizes))[0])
    if sizes[best] == sizes[first]:
        return best
    x = (sizes - sizes[first]) / (sizes[best] - sizes[first])
    y = (means - means[first]) / max(means[best] - means[first], np.finfo(float).tiny)
    above = np.where(x <= 1, y - x, -np.inf)
    bend = int(above.argmax())
    return bend if above[bend] > 1e-12 else best


def advice_against(chosen: int, sizes: NDArray[np.int64], per_query: Values, reference: Values) -> str:
    """Return what to tell the user if validation shows that the chosen member does harm, else nothing.

    Parameters
    ----------
    chosen : int
    sizes : ndarray of int, shape (n_members,)
    per_query : ndarray, shape (n_queries, n_members)
        The metric on the validation queries.
    reference : ndarray, shape (n_queries,)
        The same of the ranker on all features.

    Returns
    -------
    str
        Empty unless the chosen member is worse by more than one paired standard error.
    """
    gains, errors = np.transpose([mean_and_error(values - reference) for values in per_query.T])
    harmless = gains >= -np.nan_to_num(errors)  # a single query has no error
    if harmless[chosen]:
        return ""
    loss = f"By validation it is worse than all features by {-gains[chosen]:.3f}"
    if not harmless.any():
        return f"{loss}, and so is every member of the front: keep all features"
    smallest = int(sizes[harmless].min())
    return f"{loss}; the smallest member of the front that is not has {smallest} features"
