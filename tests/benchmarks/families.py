"""Level and power of comparisons in studies: families of solvers, and of searches.

    python tests/benchmarks/families.py [--draws 2000]

Cells have the share of draws in which any member of a family is better or worse by its word, in front of the share by
the tests that studies had before.

equal solvers
    Nine solvers against a reference, or all 45 pairs of ten, by a metric of n test queries. In the kinds "share lose
    loss" a share of the queries of each solver loses, and the others gain what makes the mean 0. Before: t tests and
    Holm's method.
equal searches
    Eight searches against a first one, by a number of training such as the hypervolume. Each search has effects of its
    own on the folds, as large as the noise of a seed. Folds "with common queries" take all parts of the queries but
    two, as LETOR's do, and their effects are sums over parts. Before: signed ranks of folds and seeds, Holm's method.
a search ahead
    The same, and the first one is ahead by six standard deviations of its effects.
62 solvers
    The share of true differences that are found in all 1,891 pairs of six kinds of solvers, if the eleven of one kind
    are better by so much, in front of the share by Holm's method, with the same p values.
"""

from itertools import combinations

import frame
import numpy as np
from scipy import stats

from moerank.statistics import LEVEL, holm, interval_ends, moments, p_differs, signed_rank_p
from moerank.studies import comparison
from moerank.studies.comparison import adjust_together, compare_folds

comparison.FLIPS = 1_000  # instead of 5,000, because there are thousands of families

SIZES, SEEDS = (50, 156, 784), (1, 5, 50)


def losers(share, loss, noise=0.003):
    """Differences with the mean 0, of which a share is a loss."""
    gain = share * loss / (1 - share)
    return lambda rng, shape: np.where(rng.random(shape) < share, -loss, gain + rng.normal(0, noise, shape))


def few_gains(share, loss, gains=0.3):
    """The same where a share gains, and most queries tie."""
    sides, shares = [-loss, share * loss / gains, 0.0], [share, gains, 1 - share - gains]
    return lambda rng, shape: rng.choice(sides, shape, p=shares)


KINDS = {
    "0.5% lose 1": losers(0.005, 1),
    "1% lose .5": losers(0.01, 0.5),
    "2% lose .63, 30% gain": few_gains(0.02, 0.63),
    "5% lose .3": losers(0.05, 0.3, 0.01),
    "skewed": lambda rng, shape: 0.2 - rng.exponential(0.2, shape),
    "normal, sd .1": lambda rng, shape: rng.normal(0, 0.1, shape),
}


def by_query(differences):
    """The columns of differences of queries that are detected now, and by t tests and Holm's method."""
    d = np.clip(differences, -1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # all queries of a column may be equal
        _, level = adjust_together(d, np.ones(d.shape[1]))
        low, high = interval_ends(*moments(d.T), level)  # without the means that `p_differs` rejects at the level
        p = np.nan_to_num(stats.ttest_1samp(d, 0).pvalue, nan=1.0)
    return (low > 0) | (high < 0), holm(p) <= LEVEL


def by_fold(weights, n_seeds, ahead, rng):
    """The searches of a family of nine that differ from the first, now and by signed ranks of folds and seeds."""
    effects = rng.standard_normal((9, len(weights))) @ weights.T
    values = effects[..., None] + rng.standard_normal((9, len(weights), n_seeds))
    d = values[1:] - values[0] - ahead
    now = [compare_folds(steps, weights @ weights.T)[1] for steps in d.mean(axis=2)]
    before = [signed_rank_p(steps.ravel(), np.zeros(steps.size)) for steps in d]
    return holm(now) <= LEVEL, holm(before) <= LEVEL


def parts_of_folds(n_folds, is_shared):
    """The weights of parts of the queries in the effect of each fold; their squares sum to 1."""
    if not is_shared:
        return np.eye(n_folds)
    fold, part = np.indices((n_folds, n_folds))
    weights = ((part - fold) % n_folds < n_folds - 2).astype(float)
    return weights / np.sqrt(weights.sum(axis=1, keepdims=True))


def words(families):
    """The text of the shares of families with any word, now and before."""
    return "{:.3f}, {:.3f}".format(*np.mean([[found.any() for found in both] for both in families], axis=0))


def show_row(name, cells):
    """Print a row of a table, or its head."""
    print(f"{name:34}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


def show_solvers(kinds, draws):
    """Print the table of equal solvers."""
    first, second = np.transpose(list(combinations(range(10), 2)))
    show_row("equal solvers: now, before", [f"n = {n}" for n in SIZES])
    for name, kind in kinds.items():
        rng = np.random.default_rng(0)
        show_row(f"{name}: nine", [words(by_query(kind(rng, (n, 9))) for _ in range(draws)) for n in SIZES])
        cells = []
        for n in SIZES:
            solvers = (kind(rng, (n, 10)) for _ in range(draws // 2))
            cells.append(words(by_query(values[:, first] - values[:, second]) for values in solvers))
        show_row(f"{name}: all pairs", cells)


def show_searches(title, ahead, draws, rng):
    """Print a table of searches."""
    show_row(f"\n{title}: now, before", [f"{n} seeds" for n in SEEDS])
    for n_folds, is_shared in ((3, False), (5, False), (5, True), (10, False), (10, True)):
        weights = parts_of_folds(n_folds, is_shared)
        cells = [words(by_fold(weights, n_seeds, ahead, rng) for _ in range(draws)) for n_seeds in SEEDS]
        show_row(f"{n_folds} folds{' with common queries' if is_shared else ''}", cells)


def show_pairs(draws, rng):
    """Print the power of one test of all pairs of 62 solvers."""
    first, second = np.transpose(list(combinations(range(62), 2)))
    is_true = (first < 11) & (second >= 11)
    sizes = (300, 784)
    show_row("\n62 solvers: one test, Holm", [f"n = {n}" for n in sizes])
    for gain in (0.01, 0.02, 0.03):
        cells = []
        for n in sizes:
            shares = []
            for _ in range(draws):
                values = np.repeat(rng.normal(0, 0.06, (n, 6)), 11, axis=1)[:, :62] + rng.normal(0, 0.01, (n, 62))
                values[:, :11] += gain
                d = values[:, first] - values[:, second]
                p = np.array([p_differs(column) for column in d.T])
                shares.append([(found[is_true] <= LEVEL).mean() for found in (adjust_together(d, p)[0], holm(p))])
            cells.append("{:.3f}, {:.3f}".format(*np.mean(shares, axis=0)))
        show_row(f"one kind is better by {gain:g}", cells)


def main():
    draws = frame.arguments(__doc__, draws=2000).draws
    show_solvers(KINDS, draws)
    show_searches("equal searches", 0.0, draws, np.random.default_rng(1))
    show_searches("a search ahead", 6.0, draws // 4, np.random.default_rng(2))
    show_pairs(draws // 100, np.random.default_rng(3))


if __name__ == "__main__":
    main()
