"""Level and power of the verdict, and false guarantees, in simulated differences of queries.

    python tests/benchmarks/verdict.py [--draws 4000]

A row is a kind of differences, a column a number of queries that can differ; the worst value is that of all numbers,
printed or not. In the kinds "share lose loss" the other
queries differ by noise of a standard deviation of .003, .01 or .05, and a cell has the worst of these.

level
    Share of draws without a true difference in which one is detected.
level of the t test
    The same of the t test alone.
level, likely
    The same, if one is detected or likely, with as many validation queries, three times as many training queries whose
    differences are half as large, and the differences of the training doubled as the verdict does.
level, likely, alone
    The same without other parts.
equivalent
    Share of draws whose true difference is the margin, on its worse side, that are called equivalent.
equivalent, likely
    The same, if equivalence is found or likely, with other parts.
false guarantees
    Share of draws with a guarantee that the loss is below the true one.
power
    Share of draws with a true loss of 2.8 standard errors in which a loss is detected.
power, likely
    The same, if it is detected or likely, with other parts.

The next table has samples of n normal differences: how many queries are asked for by the mean and deviation of the
sample, and in which share of draws of that many queries there is a finding or equivalence within .005, with the same
mean and standard deviation. Below it, how often the range that the verdict states holds the number by the true mean and
deviation, and the medians of its ends.

The last table has weighted queries, in a quarter of the draws. Its four values are the shares of draws with an
interval, with one that misses the true weighted mean, with a false guarantee of a loss below the true one, and with a
difference from the truth that is found. The other parts have four times as many queries. In "p weigh k, lose l" a
share p of the queries weighs k and loses l, while the others gain. In a universe of 20,000 queries with the weights of
Zipf's law the most frequent ones lose, or the differences do not depend on the weights.
"""

import frame
import numpy as np
from scipy import stats

from moerank.statistics import (
    GUARANTEE_LEVEL,
    LEVEL,
    Miss,
    Tail,
    interval_ends,
    moments,
    queries_needed,
    shown_above,
    weigh,
)
from moerank.verdict import CHANCE_OF_A_MISS, MARGIN, compare

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
    "level, likely": np.max,
    "level, likely, alone": np.max,
    "equivalent": np.max,
    "equivalent, likely": np.max,
    "false guarantees": np.max,
    "power": np.min,
    "power, likely": np.min,
}
SAMPLES = (11, 20, 30, 40, 100)
ASKED = ((-0.019, 0.043), (-0.013, 0.08), (-0.03, 0.2), (-0.1, 0.3), (0.009, 0.04), (0.001, 0.02))


def losers(share, loss, noise):
    """Draws of differences of which a share is a loss and the others are noise."""
    return lambda rng, shape: np.where(rng.random(shape) < share, -loss, rng.normal(0, noise, shape))


def largest_sizes(kind, shape, rng, factor=1.0):
    """The largest size of a difference in each draw, without all draws in memory."""
    return np.concatenate(
        [factor * np.abs(np.clip(kind(rng, (part, shape[1])), -1, 1)).max(axis=1) for part in blocks(*shape)]
    )


def blocks(draws, n):
    """Numbers of draws that fit into 16 million differences."""
    size = max(1, 16_000_000 // n)
    return [min(size, draws - begin) for begin in range(0, draws, size)]


def measured(kind, draws, rng):
    """The values of a kind for each number of queries, in the order of the tables."""
    population = np.clip(kind(rng, 2_000_000), -1, 1)
    true, deviation_of_all = population.mean(), population.std()
    others = np.random.default_rng(1)
    for n in SIZES:
        drawn = np.clip(kind(rng, (draws, n)), -1, 1)
        own, (_, mean, deviation, skewness) = np.abs(drawn).max(axis=1), moments(drawn)
        trained = 2 * largest_sizes(kind, (draws, 3 * n), others, factor=0.5)
        seen = np.maximum.reduce([own, largest_sizes(kind, (draws, n), others), trained])

        def ends(move, level, *misses, mean=mean, deviation=deviation, skewness=skewness, n=n):
            return interval_ends(n, mean + move, deviation, skewness, level, *misses)

        def likely_ends(move, size, n_all, n=n, ends=ends):
            chance = CHANCE_OF_A_MISS * LEVEL
            return ends(move, LEVEL, Miss(n, chance, size), Miss(n_all, chance))

        loss = -true - 2.8 * deviation_of_all / np.sqrt(n)
        found = [ends(-true, LEVEL), likely_ends(-true, seen, 5 * n), likely_ends(-true, own, n)]
        detected, likely, alone = ((low > 0) | (high < 0) for low, high in found)
        above, below = ends(0, 2 * LEVEL)
        low, high = likely_ends(0, seen, 5 * n)
        t = np.abs(mean - true) / deviation * np.sqrt(n)
        within = max(np.mean(above > true), np.mean(below < true))
        yield (
            np.mean(detected),
            np.mean(2 * stats.t.sf(t, n - 1) < LEVEL),
            np.mean(detected | likely),
            np.mean(detected | alone),
            within,
            max(np.mean((above > true) | (low > true)), np.mean((below < true) | (high < true))),
            np.mean(ends(0, 2 * GUARANTEE_LEVEL)[0] > true),
            np.mean(ends(loss, LEVEL)[1] < 0),
            np.mean((ends(loss, LEVEL)[1] < 0) | (likely_ends(loss, seen, 5 * n)[1] < 0)),
        )


def asked_and_found(n, mean, deviation, draws, rng):
    """The number of queries that a sample of n asks for, and the share of draws of that number with a finding."""
    sample = rng.normal(size=n)
    size = queries_needed(mean + deviation * stats.zscore(sample, ddof=1), MARGIN)
    drawn = moments(rng.normal(mean, deviation, (draws, size)))
    (low, high), (above, below) = interval_ends(*drawn, LEVEL), interval_ends(*drawn, 2 * LEVEL)
    return size, np.mean((low > 0) | (high < 0) | ((above > -MARGIN) & (below < MARGIN)))


def stated_range(n, mean, deviation, draws, rng):
    """The share of samples whose range of numbers holds the one by the true mean and deviation, and median ends."""
    true = queries_needed(mean + deviation * stats.zscore(rng.normal(size=n), ddof=1), MARGIN)
    ranges = np.array([compare(rng.normal(mean, deviation, n).clip(-1, 1)).needed for _ in range(draws)])
    low, high = np.median(ranges, axis=0)
    return f"{np.mean((ranges[:, 0] <= true) & (true <= ranges[:, 1])):.2f} {low:,.0f}…{high:,.0f}"


WEIGHTS = {
    "log-normal, sigma .5": lambda rng, n: np.exp(rng.normal(0, 0.5, n)),
    "log-normal, sigma 1": lambda rng, n: np.exp(rng.normal(0, 1, n)),
    "log-normal, sigma 2": lambda rng, n: np.exp(rng.normal(0, 2, n)),
    "Pareto 1.5": lambda rng, n: rng.pareto(1.5, n) + 1,
    "Pareto 1.2": lambda rng, n: rng.pareto(1.2, n) + 1,
    "1 % weigh 100": lambda rng, n: np.where(rng.random(n) < 0.01, 100.0, 1.0),
    "10 % weigh 20": lambda rng, n: np.where(rng.random(n) < 0.1, 20.0, 1.0),
}
HEAVY = ((0.01, 50, 0.1), (0.01, 100, 0.05), (0.02, 30, 0.1), (0.05, 10, 0.1), (0.05, 20, 0.05), (0.005, 200, 0.05))
HEADS = ((0.1, 50), (0.05, 200), (0.3, 20))
UNIVERSE, LOST, OTHERS = 20_000, 0.02, 4


def weighted_kinds():
    """By name a function that draws weights, differences and the true weighted mean of 5 n queries."""
    for name, weigh_queries in WEIGHTS.items():
        yield name, lambda rng, n, w=weigh_queries: (w(rng, n), rng.normal(0, 0.1, n), 0.0)
    for share, weight, loss in HEAVY:

        def heavy_lose(rng, n, share=share, weight=weight, loss=loss):
            heavy, mean = rng.random(n) < share, 1 - share + share * weight
            gain = (share * weight * loss - LOST * mean) / (1 - share)
            return np.where(heavy, weight, 1.0), np.where(heavy, -loss, gain) + rng.normal(0, 0.01, n), -LOST

        yield f"{share:.1%} weigh {weight}, lose {loss:g}", heavy_lose
    for exponent in (0.8, 1.0, 1.2):
        weights = np.arange(1, UNIVERSE + 1) ** -exponent
        for loss, head in HEADS:

            def head_loses(rng, n, weights=weights, loss=loss, head=head):
                share = weights[:head].sum() / weights.sum()
                queries = rng.choice(UNIVERSE, n, replace=False)
                gain = (share * loss - LOST) / (1 - share)
                return weights[queries], np.where(queries < head, -loss, gain) + rng.normal(0, 0.01, n), -LOST

            yield f"Zipf {exponent:g}, {head} lose {loss:g}", head_loses
        for loss in (0.0, 0.5):

            def independent(rng, n, weights=weights, loss=loss):
                d = rng.normal(0, 0.01 if loss else 0.1, UNIVERSE)
                d += np.where(rng.random(UNIVERSE) < 0.02, -loss, 0.02 * loss / 0.98)
                queries = rng.choice(UNIVERSE, n, replace=False)
                return weights[queries], d[queries], weights @ d / weights.sum()

            yield f"Zipf {exponent:g}, {'2 % lose .5' if loss else 'noise'}", independent


def judged(draw, n, rng):
    """Whether a draw has an interval, one that misses, a false guarantee, and a word about a difference."""
    w, d, true = draw(rng, (1 + OTHERS) * n)
    w_test, w_others = w[:n] / w[:n].mean(), w[n:] / w[n:].mean()
    x_others = d[n:] * w_others
    x_others[: 3 * n] *= 2 * 0.5  # training differences are half as large, and the verdict doubles them
    tail = Tail().joined(x_others, w_others)
    found = compare(d[:n] * w_test, w_test, tail=tail)
    low, high = found.interval
    values, scale = weigh(d[:n] * w_test, w_test, tail.heaviest)
    centred = compare((d[:n] - true) * w_test, w_test, tail=tail)
    guaranteed = shown_above(values, true / scale)
    return np.isfinite(low), not low <= true <= high, guaranteed, centred.finding != "none"


def three_digits(shares):
    """Shares without the leading zero, in 22 columns."""
    return "  " + "".join(f"{f'{share:.3f}'.removeprefix('0')[:4]:>5}" for share in shares)


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
    print(f"\n{'share of ranges that hold the truth':36}" + "".join(f"{f'n = {n}':>21}" for n in SAMPLES[1:]))
    for mean, deviation in ASKED:
        ranges = [stated_range(n, mean, deviation, draws // 40, np.random.default_rng(1)) for n in SAMPLES[1:]]
        print(f"{f'mean {mean:g}, sd {deviation:g}':36}" + "".join(f"{text:>21}" for text in ranges))
    sizes = (60, 200, 600, 1500)
    print(f"\n{'weighted queries':26}" + "".join(f"{f'n = {n}':>22}" for n in sizes))
    worst = np.zeros(4)
    rng = np.random.default_rng(2)
    for name, draw in weighted_kinds():
        cells = [np.mean([judged(draw, n, rng) for _ in range(draws // 4)], axis=0) for n in sizes]
        worst = np.maximum(worst, np.max(cells, axis=0))
        print(f"{name:26}" + "".join(three_digits(cell) for cell in cells))
    print(f"{'worst':26}{three_digits(worst)}")


if __name__ == "__main__":
    main()
