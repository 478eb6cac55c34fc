"""Statistics on plain arrays: means and their errors, paired tests, ranks over many problems, quality of fronts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import moocore
import numpy as np
import scipy  # loads scipy.stats, which takes half a second, when it is used
from numpy.typing import ArrayLike

# The distributions of z and t, as scipy.stats computes them.
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from moerank.arrays import Array, Integers, Matrix, Vector
from moerank.checks import check_at_least, check_share


def numbers(
    values: ArrayLike, n_axes: int = 1, limit: float = np.inf, *, empty: bool = False
) -> Array:
    """Return values as an array; a ValueError for another number of axes, for none, and for NaN or beyond ± `limit`.

    >>> numbers([0.5, np.nan])
    Traceback (most recent call last):
        ...
    ValueError: a value is nan; leave it out, or give a number
    """
    array = np.asarray(values, float)
    if array.ndim != n_axes or not (array.size or (empty and not len(array))):
        kind = ("number", "list", "table")[n_axes]
        raise ValueError(f"values have shape {array.shape}; pass a {kind} of numbers")
    if not (is_valid := np.isfinite(array) & (np.abs(array) <= limit + 1e-9)).all():
        bounds = "" if limit == np.inf else f" from {-limit:g} to {limit:g}"
        raise ValueError(
            f"a value is {array[~is_valid][0]}; leave it out, or give a number{bounds}"
        )
    return array


def mean_and_error(values: ArrayLike) -> tuple[float, float]:
    """Return the mean and its standard error s / √n, where s² divides by n − 1; NaN for a single value.

    Examples
    --------
    >>> mean_and_error([1.0, 2.0, 3.0])
    (2.0, 0.5773502691896258)
    """
    values = numbers(values)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean()), float(error)


def _rounding(*values: Vector) -> float:
    """Return the largest difference that rounding explains, as between .5 − .4 and .1: 1e-9 of the largest value."""
    sizes = np.abs(np.concatenate(values))
    return float(1e-9 * sizes[np.isfinite(sizes)].max(initial=0.0))


def paired_differences(values: ArrayLike, reference: ArrayLike) -> Vector:
    """Return the differences of two values of each query, shape (n_queries,); rounding errors become 0.

    Raises a ValueError for unequal shapes, for no query, and for NaN.
    """
    a, b = np.asarray(values, float), np.asarray(reference, float)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(
            f"shapes {a.shape} and {b.shape} are not pairs; "
            "pass two lists with a value for each query"
        )
    differences = numbers(a - b)
    return np.where(np.abs(differences) <= _rounding(a, b), 0.0, differences)


def hypervolume(front: ArrayLike, reference: ArrayLike, ideal: ArrayLike | None = None) -> float:
    """Return the fraction of the box between `ideal` and `reference` that a front dominates.

    Parameters
    ----------
    front : array-like, shape (n_members, n_objectives)
        Objectives that are minimised.
    reference : array-like, shape (n_objectives,)
        The worst value of each objective; points beyond it do not count.
    ideal : array-like, optional
        The best possible value of each objective; by default 0.

    Examples
    --------
    >>> hypervolume([[1, 0.5], [2, 0.25]], reference=(4, 1))
    0.5
    """
    points, worst = numbers(np.atleast_2d(front), 2, empty=True), np.asarray(reference, float)
    sides = worst - np.asarray(ideal, float) if ideal is not None else worst
    return float(moocore.hypervolume(points, ref=worst) / np.prod(sides))


def joint_front(fronts: Sequence[ArrayLike]) -> Vector:
    """Return the non-dominated points of several fronts, each once, in the order of the first objective."""
    rows = np.concatenate(list(map(np.atleast_2d, fronts)))
    points = np.unique(numbers(rows, 2, empty=True), axis=0)
    return np.asarray(points[moocore.is_nondominated(points)])


def igd_plus(front: ArrayLike, target: ArrayLike, scale: ArrayLike) -> float:
    """Return the mean distance by which a front falls short of the points of `target`, 0 at best.

    Parameters
    ----------
    front, target : array-like, shape (n_members, n_objectives) and (n_target, n_objectives)
    scale : array-like, shape (n_objectives,)
        Divisor of each objective, which makes the objectives comparable.

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
    points, goal = (numbers(np.atleast_2d(values), 2) / divisor for values in (front, target))
    return float(moocore.igd_plus(points, ref=goal))


def attainment_surfaces(
    fronts: Sequence[ArrayLike], shares: Sequence[float] = (0.25, 0.5, 0.75)
) -> list[Vector]:
    """Return the attainment surface of each share of the runs, as the corners of its staircase.

    Parameters
    ----------
    fronts : sequence of array-like, shape (n_members, 2)
        The front of each run, in two objectives.
    shares : sequence of float, in (0, 1]
        0.5 is the median: ⌈share · n_runs⌉ runs dominate or equal every point of the surface.

    Returns
    -------
    list of ndarray, shape (n_points, 2)
        In ascending order of the first objective.

    Examples
    --------
    >>> [surface.tolist() for surface in attainment_surfaces([[[1, 0.5]], [[2, 0.25]]], shares=(0.5, 1.0))]
    [[[1.0, 0.5], [2.0, 0.25]], [[2.0, 0.5]]]
    """
    no_solution = np.full((1, 2), np.inf)  # for the front of a run without a feasible solution
    if not len(fronts):
        raise ValueError("there are no fronts; give that of at least one run")
    for share in shares:
        check_share(shares=share)
    rows = [
        numbers(np.atleast_2d(front), 2) if len(front) else no_solution  # type: ignore[arg-type]
        for front in fronts
    ]
    runs = np.repeat(np.arange(1, len(rows) + 1), [len(points) for points in rows])
    table = moocore.eaf(np.concatenate(rows), runs, percentiles=[100.0 * share for share in shares])
    surfaces = [table[np.isclose(table[:, 2], 100.0 * share), :2] for share in shares]
    return [surface[np.lexsort((surface[:, 1], surface[:, 0]))] for surface in surfaces]


LEVEL = 0.05
"""Level of the tests."""

MIN_QUERIES = 30
"""With fewer informative queries, the verdict has no finding."""

GUARANTEE_LEVEL = 0.04
"""Level of the tests behind a guarantee of 95 %.

If about four queries lose much, tests at .05 err in up to 5.9 % of the samples.
"""


MAX_OUTWEIGHING = 2.0
"""Largest weight of other parts, over the largest of the sample, with which there are findings."""


def weigh(
    differences: ArrayLike, weights: ArrayLike | None = None, heaviest: float = 0.0
) -> tuple[Array, float]:
    """Return values of equal queries, of which tests and intervals hold for weighted ones, and their scale.

    With weights w of mean 1 and the weighted mean d̄, d̄ + w (d − d̄) has the mean and the spread of the weighted mean.
    The n queries tell as much as (Σw)² / Σw² = n / k of equal weight, so a loss of 1 counts k times. The values are
    these divided by k, so that the tests can take them for differences of equal queries. If one is larger than k, it
    takes the place of k.

    Parameters
    ----------
    differences : array-like, shape (n_queries, …)
        Differences d times `weights`.
    weights : array-like, shape (n_queries,), optional
        Positive; by default all are 1.
    heaviest : float, default 0
        The largest weight of other parts.

    Returns
    -------
    values : ndarray, shape (n_queries, …)
    scale : float
        The factor k, 1 for equal weights. It is `n_queries`, with which the tests find nothing, if unequal queries
        count as fewer than 30, or if the heaviest one of other parts is more than twice as heavy as that of these,
        which then lack the queries that decide.

    References
    ----------
    L. Kish: Survey sampling. Wiley, 1965.

    Examples
    --------
    >>> d, weights = np.tile([0.5, 0.9], 50), np.tile([1, 3], 50)
    >>> values, scale = weigh(d, weights)
    >>> print(round(scale * values.mean(), 4), round(len(d) / scale))  # (.5 + .9) / 4, and 200² / (50 + 50 · 9)
    0.35 80
    """
    d = numbers(differences, np.ndim(differences), empty=True).T
    w = np.ones(d.shape[-1]) if weights is None else numbers(weights)
    if not w.size:
        return d.T, 1.0
    numbers(d / w, d.ndim, limit=1.0, empty=True)
    lacks_heaviest = heaviest > MAX_OUTWEIGHING * w.max()
    d, w = d / w.mean(), w / w.mean()
    values = d - (w - 1.0) * d.mean(axis=-1, keepdims=True)
    scale = (w * w).mean()
    if lacks_heaviest or (w.size < MIN_QUERIES * scale and np.ptp(w) > 0):
        scale = w.size
    scale = max(float(scale), float(np.abs(values).max()))
    return values.T / scale, scale


class Tail(NamedTuple):
    """What the queries of other parts show of differences and weights that a sample may have missed.

    Attributes
    ----------
    n : int
        The number of these queries.
    size : float
        Their largest difference, a loss or a gain, times the weight of its query.
    heaviest : float
        Their largest weight, where the mean weight of each part is 1.
    """

    n: int = 0
    size: float = 0.0
    heaviest: float = 0.0

    def joined(self, differences: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the tail with the queries of one more part, given as for `weigh`.

        Double the differences of training queries, because both rankers have fitted these. No difference exceeds 1.

        >>> Tail().joined([-0.5, 0.25, 0.0])
        Tail(n=3, size=0.5, heaviest=1.0)
        """
        size = np.max(np.abs(differences), initial=self.size)
        heaviest = np.max([1.0] if weights is None else weights, initial=self.heaviest)
        size = min(size, heaviest)
        return type(self)(self.n + np.size(differences), float(size), float(heaviest))


class Miss(NamedTuple):
    """Differences of a size that so few queries have that a sample of `n` misses them with a chance."""

    n: Any
    chance: float
    size: float = 1.0


def p_above(differences: ArrayLike, value: float = 0.0) -> float:
    """Return the one-sided p value of the hypothesis that the mean of all queries is at most `value`.

    It is the largest of three: the p value of the t test; that of Hall's test, which removes the skewness from the t
    statistic; and the chance of a sample without a loss of 1, if such losses are so frequent that the mean is `value`.
    The t test alone finds gains that do not exist if a few queries lose much, above all if none of these is in the
    sample.

    Parameters
    ----------
    differences : array-like, shape (n_queries,)
        Differences of a metric, between −1 and 1.
    value : float, default 0

    Returns
    -------
    float
        1 for a single difference, and for differences that are all equal, because they have no variance to test with.

    Notes
    -----
    If a share π of the queries loses 1, and the others have the mean d̄, then the mean of all is d̄ − π (1 + d̄). A sample
    of n queries misses these losses with the chance (1 − π)ⁿ. So n (d̄ − `value`) must be about 3 or more at the level
    of .05.

    ``tests/benchmarks/verdict.py`` simulates level, coverage and power.

    References
    ----------
    P. Hall: On the removal of skewness by transformation. Journal of the Royal Statistical Society B 54, 1992.

    Examples
    --------
    >>> d = np.tile([0.01, 0.03], 400)
    >>> p_above(d) < 1e-6, p_above(d, 0.05), p_above([0.1, 0.1])
    (True, 1.0, 1.0)
    """
    d = numbers(differences, limit=1.0)
    if _all_equal(d):
        return 1.0
    n, mean, deviation, skewness = moments(d)
    t = (mean - value) / deviation
    hall = t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / (6 * n)
    frequency = np.clip((mean - value) / (1 + mean), 0, 1)
    return float(max(stdtr(n - 1, -np.sqrt(n) * min(t, hall)), (1 - frequency) ** n))


def _all_equal(differences: Vector) -> bool:
    """Return whether differences are equal except for rounding, so that they have no variance to test with."""
    return len(differences) < 2 or bool(np.ptp(differences) <= _rounding(differences))


def p_differs(differences: ArrayLike) -> float:
    """Return the two-sided p value of the hypothesis that the mean of all queries is 0; see `p_above`."""
    d = numbers(differences)
    return min(1.0, 2.0 * p_above(d if d.sum() > 0 else -d))


def p_not_within(differences: ArrayLike, margin: float) -> float:
    """Return the p value of the hypothesis that the mean of all queries lies outside ± `margin`.

    If it is below α, two one-sided tests at that level reject every mean beyond the margin; see `p_above`.

    References
    ----------
    D. J. Schuirmann: A comparison of the two one-sided tests procedure and the power approach for assessing the
    equivalence of average bioavailability. Journal of Pharmacokinetics and Biopharmaceutics 15, 1987.

    Examples
    --------
    >>> print(f"p = {p_not_within(np.tile([-0.01, 0.01], 1000), 0.005):.1g}")
    p = 4e-05
    """
    d = numbers(differences)
    return max(p_above(d, -margin), p_above(-d, -margin))


def mean_interval(differences: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of the means that `p_above` and its mirror image do not reject.

    Parameters
    ----------
    differences : array-like, shape (n_queries,)
    level : float, default 0.95
        The confidence of the interval.

    Returns
    -------
    low, high : float
        −∞ and ∞ for a single difference, and for differences that are all equal.

    Examples
    --------
    >>> [round(end, 4) for end in mean_interval(np.tile([-0.01, 0.03], 1000))]
    [0.0081, 0.0118]
    """
    d = numbers(differences, limit=1.0)
    check_share(level=level)
    if _all_equal(d):
        return -np.inf, np.inf
    low, high = interval_ends(*moments(d), 1.0 - level)
    return float(low), float(high)


def moments(differences: Vector) -> tuple[int, Vector, Vector, Vector]:
    """Return number, mean, standard deviation and skewness along the last axis; the tests depend on nothing else."""
    n, mean = differences.shape[-1], differences.mean(axis=-1)
    deviation = differences.std(axis=-1, ddof=1)
    third = ((differences - mean[..., None]) ** 3).mean(axis=-1)
    return n, mean, deviation, third / deviation**3


def interval_ends(
    n: ArrayLike,
    mean: ArrayLike,
    deviation: ArrayLike,
    skewness: ArrayLike,
    level: float,
    *misses: Miss,
) -> tuple[Vector, Vector]:
    """Return the means below and above which the test of `p_above` and its mirror image reject at `level` / 2.

    They allow for `misses`, by default for those of losses and gains of 1 in n queries with the chance `level` / 2.
    """
    n, mean, deviation, skewness = map(np.asarray, (n, mean, deviation, skewness))
    width = -stdtrit(n - 1, level / 2) / np.sqrt(n)

    def end(sign: int) -> Vector:
        t = width - sign * skewness / (6 * n)
        root = np.cbrt(1 + sign * skewness * t)
        # This is 3 (root − 1) / skewness without the cancellation for a small skewness.
        t = 3 * t / (root**2 + root + 1)
        end_width = np.maximum(t, width) * deviation
        for miss in misses or [Miss(n, level / 2)]:
            frequency = 1 - miss.chance ** (1 / miss.n)
            end_width = np.maximum(end_width, frequency * (miss.size + sign * mean))
        return sign * (sign * mean - end_width)

    return end(1), end(-1)


# Share of means that `queries_needed` requires; .02 of it is lost because deviation and skewness vary as well.
POWER = 0.82

# Numbers of queries with two significant digits.
SIZES = np.concatenate([np.arange(10, 100) * ten for ten in (1, 10, 100, 1000, 10_000)])


def queries_needed(differences: ArrayLike, margin: float, level: float = LEVEL) -> int | None:
    """Return the number of queries like these that give a finding in four samples out of five, to two digits.

    A finding is a mean that differs from 0 by `p_differs`, or lies within ± `margin` by `p_not_within`. We assume that
    the means of samples are normally distributed around the mean of these queries, with equal deviation and skewness.

    Returns
    -------
    int or None
        None if a million queries are too few, and for differences that are all equal.

    Examples
    --------
    >>> queries_needed(np.tile([-0.06, 0.02], 10), 0.005), queries_needed([0.1, 0.1], 0.005)
    (220, None)
    """
    d = numbers(differences)
    if _all_equal(d):
        return None
    _, mean, deviation, skewness = moments(d)
    n = SIZES[np.maximum(len(d), MIN_QUERIES - 1) < SIZES, None]
    means = mean + ndtri(np.arange(0.005, 1, 0.01)) * deviation / np.sqrt(n)
    low, high = interval_ends(n, means, deviation, skewness, level)
    above, below = interval_ends(n, means, deviation, skewness, 2 * level)
    has_finding = (low > 0) | (high < 0) | ((above > -margin) & (below < margin))
    sufficient = n[has_finding.mean(axis=1) >= POWER, 0]
    return int(sufficient[0]) if len(sufficient) else None


def level_of_each(differences: Matrix, level: float = 0.05, draws: int = 5_000) -> float:
    """Return the level of each of several two-sided tests of means at which all of them hold together.

    For many queries, the largest t statistic is distributed as that of the centred differences times Gaussian weights,
    however the columns depend on each other. So even the interval of the column that looks best contains its mean.

    Parameters
    ----------
    differences : array-like, shape (n_queries, n_means)
    level : float, default 0.05
        Level of all tests together.
    draws : int, default 5000
        Number of draws, which are the same in each call.

    Returns
    -------
    float
        `level` for a single column, else between `level` / n_means and `level`.

    References
    ----------
    V. Chernozhukov, D. Chetverikov, K. Kato: Gaussian approximations and multiplier bootstrap for maxima of sums of
    high-dimensional random vectors. Annals of Statistics 41, 2013.

    Examples
    --------
    >>> d = np.random.default_rng(0).normal(size=(400, 10))
    >>> 0.005 <= level_of_each(d) < 0.006, level_of_each(d[:, :1]), round(level_of_each(d[:, [0, 0, 0]]), 2)
    (True, 0.05, 0.05)
    """
    d = numbers(differences, 2, empty=True)
    n = len(d)
    if n < 2 or not (deviation := d.std(axis=0)).any():
        return level
    varies = deviation > 0
    z = (d - d.mean(axis=0))[:, varies] / (deviation[varies] * np.sqrt(n))
    maxima = np.abs(np.random.default_rng(0).standard_normal((draws, n)) @ z).max(axis=1)
    return float(np.clip(2 * ndtr(-np.quantile(maxima, 1 - level)), level / z.shape[1], level))


def e_value(differences: ArrayLike, value: float = 0.0) -> float:
    """Return an e-value against the hypothesis that the mean of all queries is at most `value`.

    Under the hypothesis its expectation is at most 1, so it exceeds 1 / α with a probability of at most α. It is the
    mean, over 100 shares λ, of the capital of a bettor who stakes the share λ of the largest stake on each difference:

        Π (1 + λ (dᵢ − value) / (1 + value)).

    Unlike a t test, it holds for any number of independent differences of any distribution.

    Parameters
    ----------
    differences : array-like, shape (n_queries,)
        Between −1 and 1, or of weighted queries: then the largest size takes the place of 1.
    value : float, default 0
        Between −1 and 1.

    References
    ----------
    I. Waudby-Smith, A. Ramdas: Estimating means of bounded random variables by betting. Journal of the Royal
    Statistical Society B 86, 2024.

    Examples
    --------
    >>> e_value(np.zeros(400), -0.02) > 20, e_value([0.0], 0.0)
    (True, 1.0)
    """
    d = numbers(differences, empty=True)
    bound = np.abs(d).max(initial=1.0)
    gains = (d - value) / max(bound + value, np.finfo(float).tiny)
    shares = np.linspace(0.0, 1.0, 101)[:-1]
    with np.errstate(over="ignore"):
        return float(np.exp(np.log1p(np.outer(shares, gains)).sum(axis=1)).mean())


def shown_above(differences: Vector, value: float) -> bool:
    """Return whether the mean of all queries is above a value with a guarantee of 95 %.

    From 30 differences on, `p_above` decides. For fewer, and for differences that are all equal, it is `e_value`, which
    assumes nothing but independent queries.
    """
    if _suffice_for_tests(differences):
        return p_above(differences, value) < GUARANTEE_LEVEL
    return e_value(differences, value) > 1 / LEVEL


def largest_loss(differences: Vector) -> float:
    """Return the smallest margin, at most 1, for which `shown_above` guarantees that the mean is above −margin."""
    if _suffice_for_tests(differences):
        return float(min(1.0, -mean_interval(differences, 1 - 2 * GUARANTEE_LEVEL)[0]))
    margins = np.linspace(0.001, 1.0, 1000).tolist()
    return next((margin for margin in margins if shown_above(differences, -margin)), 1.0)


def _suffice_for_tests(differences: Vector) -> bool:
    return len(differences) >= MIN_QUERIES and not _all_equal(differences)


# Largest number of differing pairs for which the signed-rank test is exact.
MAX_EXACT_PAIRS = 50


def signed_rank_p(values: ArrayLike, reference: ArrayLike) -> float:
    """Return the p value of the two-sided signed-rank test of whether paired differences are symmetric about 0.

    Parameters
    ----------
    values, reference : array-like, shape (n_pairs,)

    Returns
    -------
    float
        At least 2^(1 − n_pairs), and 1 if no pair differs; pairs that do not differ are left out, as Wilcoxon does.
        Exact for up to 50 pairs that differ, also with ties; a normal approximation for more.

    References
    ----------
    F. Wilcoxon: Individual comparisons by ranking methods. Biometrics Bulletin 1, 1945.

    Examples
    --------
    >>> signed_rank_p([0.5, 0.7, 0.9, 0.8], [0.4, 0.5, 0.6, 0.4])
    0.125
    """
    a, b = np.asarray(values, float), np.asarray(reference, float)
    d = paired_differences(a, b)
    d = d[d != 0.0]
    if not len(d):
        return 1.0
    d = d[np.argsort(np.abs(d))]
    is_larger = np.diff(np.abs(d), prepend=0.0) > _rounding(a, b)
    d = np.sign(d) * np.cumsum(is_larger)  # sizes that differ by rounding become ties
    if len(d) > MAX_EXACT_PAIRS:
        return float(scipy.stats.wilcoxon(d).pvalue)
    # Twice the mean ranks of ties are integers.
    ranks = np.rint(2.0 * scipy.stats.rankdata(np.abs(d))).astype(int)
    chance = np.zeros(ranks.sum() + 1)  # of each sum of the ranks with a positive sign
    chance[0] = 1.0
    for rank in ranks:
        chance = (chance + np.roll(chance, rank)) / 2.0
    positive = ranks[d > 0].sum()
    return float(min(1.0, 2.0 * min(chance[: positive + 1].sum(), chance[positive:].sum())))


def smallest_within_error(values: ArrayLike, sizes: ArrayLike, errors: float = 1.0) -> int:
    """Return the index of the smallest ranker that is within `errors` paired standard errors of the best one.

    Parameters
    ----------
    values : array-like, shape (n_queries, n_rankers)
        Values of a metric; larger is better. The standard error is that of the mean difference from the best ranker.
    sizes : array-like, shape (n_rankers,)
        Among equal sizes the best mean wins. The best ranker has the best mean, and the smallest size if means tie.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen, C. Stone: Classification and regression trees. Wadsworth, 1984, section 3.4.3.

    Examples
    --------
    >>> smallest_within_error([[0.5, 0.6, 0.6], [0.7, 0.7, 0.9], [0.3, 0.6, 0.5]], sizes=[1, 2, 5])
    1
    """
    table, n_features = numbers(values, 2), np.asarray(sizes)
    means = table.mean(axis=0)
    best = np.lexsort((n_features, -means))[0]
    losses = table[:, [best]] - table
    error = np.zeros(len(means))
    if len(table) > 1:
        error = losses.std(axis=0, ddof=1) / np.sqrt(len(table))
    near = np.flatnonzero(losses.mean(axis=0) <= errors * error)
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
    values = numbers(p, empty=True)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)).clip(max=1.0)
    adjusted = np.empty_like(steps)
    adjusted[order] = steps
    return adjusted


@dataclass(frozen=True)
class RankTest:
    """Solvers ranked on every block, such as a problem, the best first.

    Attributes
    ----------
    order : ndarray of int, shape (n_solvers,)
        The columns of the solvers.
    ranks : ndarray, shape (n_solvers,)
        Their mean ranks; 1 is best, and ties share a mean rank.
    p : float
        The p value of the Friedman test: the chance of ranks that differ this much if all solvers were alike.
    critical_difference : float
        Nemenyi's: two solvers differ at the level α if their mean ranks differ by at least this much.
    n_blocks : int
    """

    order: Integers
    ranks: Vector
    p: float
    critical_difference: float
    n_blocks: int


MIN_BLOCKS = 10
"""Number of data sets from which we test mean ranks.

Demšar asks for more than about 10, which are independent of each other.
"""


def friedman(values: ArrayLike, alpha: float = 0.05) -> RankTest:
    """Rank solvers on every block, and test whether they differ.

    Parameters
    ----------
    values : array-like, shape (n_blocks, n_solvers)
        Values of a metric, larger is better; at least two blocks and three solvers.
    alpha : float, default 0.05

    References
    ----------
    J. Demšar: Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.
    """
    table = numbers(values, 2)
    n_blocks, n_solvers = table.shape
    check_at_least(2, n_blocks=n_blocks)
    check_at_least(3, n_solvers=n_solvers)
    ranks = scipy.stats.rankdata(-table, axis=1).mean(axis=0)
    p = 1.0
    if np.ptp(table, axis=1).any():
        p = float(scipy.stats.friedmanchisquare(*table.T).pvalue)
    q = scipy.stats.studentized_range.ppf(1.0 - alpha, n_solvers, np.inf) / np.sqrt(2.0)
    order = np.argsort(ranks, kind="stable")
    critical_difference = float(q * np.sqrt(n_solvers * (n_solvers + 1) / (6.0 * n_blocks)))
    return RankTest(order, ranks[order], p, critical_difference, n_blocks)
