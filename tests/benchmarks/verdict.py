"""Level and power of the verdict, and false guarantees, in simulated differences of queries.

    python tests/benchmarks/verdict.py [--draws 4000]

A row is a kind of differences, a column a number of queries that can differ; the worst value is that of all numbers,
printed or not. In the kinds "share lose loss" the other
queries differ by noise of a standard deviation of .003, .01 or .05, and a cell has the worst of these.

level
    Share of draws without a true difference in which one is detected.
level of the t test
    The same of the t test alone.
equivalent
    Share of draws whose true difference is the margin, on its worse side, that are called equivalent.
false guarantees
    Share of draws with a guarantee that the loss is below the true one.
power
    Share of draws with a true loss of 2.8 standard errors in which a loss is detected.

The last table has samples of n normal differences: how many queries the verdict asks for, and in which share of draws
of that many queries it finds a difference or equivalence within .005, with the same mean and standard deviation.
"""

import frame
import numpy as np
from scipy import stats

from moerank.statistics import GUARANTEE_LEVEL, LEVEL, interval_ends, moments, queries_needed
from moerank.verdict import MARGIN

SIZES = (30, 60, 100, 150, 200, 300, 600, 784, 2000)
PRINTED = (30, 100, 300, 784, 2000)
SHARES, LOSSES, NOISES = (0.002, 0.006, 0.01, 0.02, 0.05, 0.1), (0.5, 1.0), (0.003, 0.01, 0.05)
KINDS = {
    "normal, sd .05": lambda rng, shape: rng.normal(0, 0.05, shape),
    "normal, sd .2": lambda rng, shape: rng.normal(0, 0.2, shape),
    "heavy tails": lambda rng, shape: 0.1 * rng.standard_t(2.2, shape),
    "tied": lambda rng, shape: rng.choice([0.0, 0.5, -0.5], shape, p=[0.8, 0.1, 0.1]),
    "skewed": lambda rng, shape: 0.2 - rng.exponential(0.2, shape),
    "very skewed": lambda rng, shape: 0.1 * (np.exp(0.5) - rng.lognormal(0, 1, shape)),
}
TABLES = {
    "level": np.max,
    "level of the t test": np.max,
    "equivalent": np.max,
    "false guarantees": np.max,
    "power": np.min,
}
SAMPLES = (11, 20, 30, 40, 100)
ASKED = ((-0.019, 0.043), (-0.013, 0.08), (-0.03, 0.2), (-0.1, 0.3), (0.009, 0.04), (0.001, 0.02))


def losers(share, loss, noise):
    """Draws of differences of which a share is a loss and the others are noise."""
    return lambda rng, shape: np.where(rng.random(shape) < share, -loss, rng.normal(0, noise, shape))


def measured(kind, draws, rng):
    """The five values of a kind for each number of queries, in the order of the tables."""
    population = np.clip(kind(rng, 2_000_000), -1, 1)
    true, deviation_of_all = population.mean(), population.std()
    for n in SIZES:
        _, mean, deviation, skewness = moments(np.clip(kind(rng, (draws, n)), -1, 1))

        def ends(move, level, mean=mean, deviation=deviation, skewness=skewness, n=n):
            return interval_ends(n, mean + move, deviation, skewness, level)

        (low, high), (above, below) = ends(-true, LEVEL), ends(0, 2 * LEVEL)
        t = np.abs(mean - true) / deviation * np.sqrt(n)
        yield (
            np.mean((low > 0) | (high < 0)),
            np.mean(2 * stats.t.sf(t, n - 1) < LEVEL),
            max(np.mean(above > true), np.mean(below < true)),
            np.mean(ends(0, 2 * GUARANTEE_LEVEL)[0] > true),
            np.mean(ends(-true - 2.8 * deviation_of_all / np.sqrt(n), LEVEL)[1] < 0),
        )


def asked_and_found(n, mean, deviation, draws, rng):
    """The number of queries that a sample of n asks for, and the share of draws of that number with a finding."""
    sample = rng.normal(size=n)
    size = queries_needed(mean + deviation * stats.zscore(sample, ddof=1), MARGIN)
    drawn = moments(rng.normal(mean, deviation, (draws, size)))
    (low, high), (above, below) = interval_ends(*drawn, LEVEL), interval_ends(*drawn, 2 * LEVEL)
    return size, np.mean((low > 0) | (high < 0) | ((above > -MARGIN) & (below < MARGIN)))


def main():
    draws = frame.arguments(__doc__, draws=4000).draws
    rng = np.random.default_rng(0)
    rows = {name: [kind] for name, kind in KINDS.items()}
    for share in SHARES:
        rows |= {f"{share:.1%} lose {loss:g}": [losers(share, loss, noise) for noise in NOISES] for loss in LOSSES}
    with np.errstate(divide="ignore", invalid="ignore"):  # some samples of the tied kind are all equal
        values = [np.array([list(measured(kind, draws, rng)) for kind in kinds]) for kinds in rows.values()]
    for number, (title, worst) in enumerate(TABLES.items()):
        table = np.array([worst(of_kinds[..., number], axis=0) for of_kinds in values])
        print(f"{f'{title} (worst {worst(table):.3f})':36}" + "".join(f"{n:>6}" for n in PRINTED))
        for name, row in zip(rows, table[:, [SIZES.index(n) for n in PRINTED]], strict=True):
            print(f"{name:36}" + "".join(f"{value:6.3f}" for value in row))
        print()
    print(f"{'queries asked for: share that finds':36}" + "".join(f"{f'n = {n}':>13}" for n in SAMPLES))
    for mean, deviation in ASKED:
        pairs = [asked_and_found(n, mean, deviation, draws, rng) for n in SAMPLES]
        name = f"mean {mean:g}, sd {deviation:g}"
        print(f"{name:36}" + "".join(f"{f'{size:,}: {share:.3f}':>13}" for size, share in pairs))


if __name__ == "__main__":
    main()
