"""Statistics on plain arrays: means and their errors, paired tests, ranks over many problems, quality of fronts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import moocore
import numpy as np
from numpy.typing import ArrayLike

from moerank.arrays import Vector

__all__ = [
    "PairedTest",
    "RankTest",
    "attainment_surfaces",
    "compare_paired",
    "equivalence_p",
    "friedman",
    "holm",
    "hypervolume",
    "igd_plus",
    "joint_front",
    "mean_and_error",
    "signed_rank_p",
    "smallest_within_error",
    "t_tail",
]


def mean_and_error(values: ArrayLike) -> tuple[float, float]:
    """Return the mean and its standard error s / √n, s over n − 1; NaN for a single value.

    Examples
    --------
    >>> mean_and_error([1.0, 2.0, 3.0])
    (2.0, 0.5773502691896258)
    """
    values = np.asarray(values, float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean()), float(error)


def hypervolume(front: ArrayLike, reference: Sequence[float], ideal: Sequence[float] | None = None) -> float:
    """Return the share of the box between `ideal` and `reference` that a front dominates.

    Parameters
    ----------
    front : array-like, shape (n_members, n_objectives)
        Objectives that are minimised.
    reference : sequence of float, length n_objectives
        The worst value of each; points beyond count for nothing.
    ideal : sequence of float, optional
        The best value that each could have; by default 0.

    Examples
    --------
    >>> hypervolume([[1, 0.5], [2, 0.25]], reference=(4, 1))
    0.5
    """
    points, worst = np.atleast_2d(np.asarray(front, float)), np.asarray(reference, float)
    sides = worst - np.asarray(ideal, float) if ideal is not None else worst
    return float(moocore.hypervolume(points, ref=worst) / np.prod(sides))


def joint_front(fronts: Sequence[ArrayLike]) -> Vector:
    """Return the points of several fronts that none of the others dominates, each once, by the first objective."""
    points = np.unique(np.concatenate([np.atleast_2d(np.asarray(front, float)) for front in fronts]), axis=0)
    return np.asarray(points[moocore.is_nondominated(points)])


def igd_plus(front: ArrayLike, target: ArrayLike, scale: Sequence[float]) -> float:
    """Return the mean distance by which a front falls short of the points of `target`, 0 at best.

    Parameters
    ----------
    front, target : array-like, shape (n_members, n_objectives) and (n_target, n_objectives)
    scale : sequence of float, length n_objectives
        What each objective is divided by, so that a distance means something.

    References
    ----------
    H. Ishibuchi et al.: Modified distance calculation in generational distance and inverted generational distance.
    EMO 2015.

    Examples
    --------
    >>> igd_plus([[2, 0.5]], target=[[1, 0.5], [2, 0.25]], scale=(1, 1))
    0.625
    """
    divisor = np.asarray(scale, float)
    points, goal = (np.atleast_2d(np.asarray(values, float)) / divisor for values in (front, target))
    return float(moocore.igd_plus(points, ref=goal))


def attainment_surfaces(fronts: Sequence[ArrayLike], shares: Sequence[float] = (0.25, 0.5, 0.75)) -> list[Vector]:
    """Return the points that a given share of the runs attains: the staircase corners of each surface.

    Parameters
    ----------
    fronts : sequence of array-like, shape (n_members, 2)
        The front of each run, of two objectives.
    shares : sequence of float, in (0, 1]
        0.5 is the median: ⌈share · n_runs⌉ runs dominate or equal every point of the surface.

    Returns
    -------
    list of ndarray, shape (n_points, 2)
        By the first objective, ascending.

    Examples
    --------
    >>> [surface.tolist() for surface in attainment_surfaces([[[1, 0.5]], [[2, 0.25]]], shares=(0.5, 1.0))]
    [[[1.0, 0.5], [2.0, 0.25]], [[2.0, 0.5]]]
    """
    rows = [np.atleast_2d(np.asarray(front, float)) for front in fronts]
    runs = np.repeat(np.arange(1, len(rows) + 1), [len(points) for points in rows])
    table = moocore.eaf(np.concatenate(rows), runs, percentiles=[100.0 * share for share in shares])
    surfaces = [table[np.isclose(table[:, 2], 100.0 * share), :2] for share in shares]
    return [surface[np.lexsort((surface[:, 1], surface[:, 0]))] for surface in surfaces]


@dataclass(frozen=True)
class PairedTest:
    """One solver against another, query by query.

    Attributes
    ----------
    difference, error : float
        Mean difference, and its standard error.
    wins, ties, losses : int
        Queries in which the first is better, equal, worse.
    p : float
        Of the paired t test; 1 where no query differs, and for a single one, which can show nothing.
    """

    difference: float
    error: float
    wins: int
    ties: int
    losses: int
    p: float


def compare_paired(first: ArrayLike, second: ArrayLike) -> PairedTest:
    """Compare two solvers by the same queries, with the two-sided paired t test.

    Parameters
    ----------
    first, second : array-like, shape (n_queries,)
        Values of a metric; means over the seeds where there are several.

    References
    ----------
    J. Urbano, H. Lima, A. Hanjalic: Statistical significance testing in information retrieval. SIGIR 2019: of the
    usual tests the t test keeps its level best and has the most power.

    Examples
    --------
    >>> compare_paired([0.5, 0.7, 0.9, 0.2], [0.4, 0.7, 0.6, 0.3]).wins
    2
    """
    d = np.asarray(first, float) - np.asarray(second, float)
    difference, error = mean_and_error(d)
    p = min(1.0, 2.0 * t_tail(abs(difference), error, len(d) - 1))
    return PairedTest(difference, error, int((d > 0).sum()), int((d == 0).sum()), int((d < 0).sum()), p)


def equivalence_p(first: ArrayLike, second: ArrayLike, margin: float) -> float:
    """Return the p value of the two one-sided paired t tests that two means differ by less than `margin`.

    Parameters
    ----------
    first, second : array-like, shape (n_queries,)
    margin : float, > 0

    Returns
    -------
    float
        The larger of the two: below α the means are equivalent at that level. 1 for a single query, which can show
        nothing; where all queries differ alike, 0 within the margin and 1 else.

    References
    ----------
    D. J. Schuirmann: A comparison of the two one-sided tests procedure and the power approach for assessing the
    equivalence of average bioavailability. Journal of Pharmacokinetics and Biopharmaceutics 15, 1987.

    Examples
    --------
    >>> equivalence_p([0.5, 0.7, 0.9], [0.5, 0.7, 0.9], margin=0.01)
    0.0
    """
    d = np.asarray(first, float) - np.asarray(second, float)
    difference, error = mean_and_error(d)
    return t_tail(margin - abs(difference), error, len(d) - 1)


def t_tail(value: float, error: float, freedom: float) -> float:
    """Return the chance that a mean of nothing but noise is at least `value`, by the t distribution.

    Parameters
    ----------
    value : float
    error : float
        The standard error of the mean; NaN for a single value, which shows nothing: the chance is 1 then.
    freedom : float
        Degrees of freedom of the error.

    Examples
    --------
    >>> t_tail(0.0, 0.1, 5), t_tail(0.2, 0.0, 5), t_tail(0.2, float("nan"), 0)
    (0.5, 0.0, 1.0)
    """
    if np.isnan(error):
        return 1.0
    if error == 0.0:
        return 0.0 if value > 0.0 else 1.0
    from scipy import stats  # takes a second to load, and few need it

    return float(stats.t.sf(value / error, freedom))


def signed_rank_p(first: ArrayLike, second: ArrayLike) -> float:
    """Return the p value of the two-sided signed-rank test that paired differences are symmetric about 0.

    Parameters
    ----------
    first, second : array-like, shape (n_pairs,)

    Returns
    -------
    float
        At least 2^(1 − n_pairs), and 1 where no pair differs; single pairs that do not are left out, as Wilcoxon does.
        Exact for up to 50 pairs without ties, and for up to 13 with ties; a normal approximation else.

    References
    ----------
    F. Wilcoxon: Individual comparisons by ranking methods. Biometrics Bulletin 1, 1945.

    Examples
    --------
    >>> signed_rank_p([0.5, 0.7, 0.9, 0.8], [0.4, 0.5, 0.6, 0.4])
    0.125
    """
    d = np.asarray(first, float) - np.asarray(second, float)
    if not d.any():
        return 1.0
    from scipy import stats

    return float(stats.wilcoxon(d).pvalue)


def smallest_within_error(values: ArrayLike, sizes: ArrayLike) -> int:
    """Return the smallest of several rankers that is within one paired standard error of the best.

    Parameters
    ----------
    values : array-like, shape (n_queries, n_rankers)
        A metric, larger is better. The standard error is that of the mean difference from the best ranker.
    sizes : array-like, shape (n_rankers,)
        Of equal sizes the one with the best mean is taken; of equal means in the search for the best, the smallest.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen, C. Stone: Classification and regression trees. Wadsworth, 1984, section 3.4.3.

    Examples
    --------
    >>> smallest_within_error([[0.5, 0.6, 0.6], [0.7, 0.7, 0.9], [0.3, 0.6, 0.5]], sizes=[1, 2, 5])
    1
    """
    table, n_features = np.asarray(values, float), np.asarray(sizes)
    means = table.mean(axis=0)
    best = np.lexsort((n_features, -means))[0]
    behind = table[:, [best]] - table
    error = behind.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else np.zeros(len(means))
    near = np.flatnonzero(behind.mean(axis=0) <= error)
    return int(near[np.lexsort((-means[near], n_features[near]))[0]])


def holm(p: ArrayLike) -> Vector:
    """Return p values adjusted for their number, so that comparing them with α keeps the family's error below α.

    References
    ----------
    S. Holm: A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6, 1979.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, 0.005]).round(3).tolist()
    [0.03, 0.06, 0.06, 0.02]
    """
    values = np.asarray(p, float)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)).clip(max=1.0)
    adjusted = np.empty_like(steps)
    adjusted[order] = steps
    return adjusted


@dataclass(frozen=True)
class RankTest:
    """Solvers ranked on every block, a problem's fold.

    Attributes
    ----------
    ranks : ndarray, shape (n_solvers,)
        Mean ranks; 1 is best, ties share theirs.
    p : float
        Of the Friedman test: the chance of ranks so different if all solvers were alike.
    critical_difference : float
        Nemenyi's: two solvers differ at the level α if their mean ranks differ by at least this much.
    n_blocks : int
    """

    ranks: Vector
    p: float
    critical_difference: float
    n_blocks: int


def friedman(values: ArrayLike, alpha: float = 0.05) -> RankTest:
    """Rank solvers on every block, and test whether they differ.

    Parameters
    ----------
    values : array-like, shape (n_blocks, n_solvers)
        A metric, larger is better; at least two blocks and three solvers.
    alpha : float, default 0.05

    Raises
    ------
    ValueError
        For fewer blocks or solvers.

    References
    ----------
    J. Demšar: Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.
    """
    table = np.asarray(values, float)
    n_blocks, n_solvers = table.shape
    if n_blocks < 2 or n_solvers < 3:
        raise ValueError(f"ranks need at least two blocks and three solvers, not {n_blocks} and {n_solvers}")
    from scipy import stats

    ranks = stats.rankdata(-table, axis=1).mean(axis=0)
    p = float(stats.friedmanchisquare(*table.T).pvalue) if np.ptp(table, axis=1).any() else 1.0
    q = stats.studentized_range.ppf(1.0 - alpha, n_solvers, np.inf) / np.sqrt(2.0)
    return RankTest(ranks, p, float(q * np.sqrt(n_solvers * (n_solvers + 1) / (6.0 * n_blocks))), n_blocks)
