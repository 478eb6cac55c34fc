"""Level, coverage and power of the verdict, beside those of the t test, in simulated differences.

    python tests/benchmarks/verdict.py [--draws 4000]

A row is a kind of differences and a number of queries that can differ. `level` is the share of draws without a true
difference in which one is detected; `equivalent`, of draws whose true difference is the margin in which equivalence is
shown; `coverage`, of draws in which the 95 % interval holds the true mean; `power`, of draws with a true loss of 2.8
standard errors in which a loss is detected. The value of the t test stands in brackets. A dash means that nothing is
detected on so few queries.
"""

import argparse

import numpy as np

from moerank.statistics import FEWEST_QUERIES, LEVEL, mean_and_error, mean_interval, t_tail
from moerank.verdict import STANDARD_ERRORS_FOR_80_PERCENT_POWER, judge

MARGIN = 0.02
SIZES = (5, 15, 30, 156, 784)


def rare(rng, n, share, loss):
    """Differences of which a share is a large loss and the others small gains; their mean is 0."""
    return np.where(rng.random(n) < share, -loss, rng.normal(loss * share / (1 - share), 0.01, n))


KINDS = {
    "normal": lambda rng, n: rng.normal(0, 0.05, n),
    "heavy tails": lambda rng, n: np.clip(0.03 * rng.standard_t(2.2, n), -1, 1),
    "tied": lambda rng, n: rng.choice([0.0, 0.1, -0.1], n, p=[0.8, 0.1, 0.1]),
    "skewed": lambda rng, n: 0.05 - rng.exponential(0.05, n),
    "very skewed": lambda rng, n: np.clip(0.02 * (np.exp(0.5) - rng.lognormal(0, 1, n)), -1, 1),
    "2 % lose .5": lambda rng, n: rare(rng, n, 0.02, 0.5),
    "5 % lose .3": lambda rng, n: rare(rng, n, 0.05, 0.3),
    "10 % lose .3": lambda rng, n: rare(rng, n, 0.10, 0.3),
}


def verdict(d):
    """The verdict on differences, as a run words it; their clipping to the range of a metric moves no row."""
    return judge(np.clip(d, -1, 1), np.zeros(len(d)), "test", "NDCG@10", 5, 10, margin=MARGIN)


def of_t_test(d):
    """Whether the t test detects a loss or gain, and whether two one-sided tests show equivalence."""
    mean, error = mean_and_error(d)
    differs = 2 * t_tail(abs(mean), error, len(d) - 1) < LEVEL
    return differs, t_tail(MARGIN - abs(mean), error, len(d) - 1) < LEVEL, mean


def measured(kind, n, draws, rng):
    """Return the rows of the verdict and of the t test: level, equivalent (either side), coverage, power."""
    shift = STANDARD_ERRORS_FOR_80_PERCENT_POWER * KINDS[kind](rng, 10**6).std() / np.sqrt(n)
    ours, theirs = np.zeros(5), np.zeros(5)
    for _ in range(draws):
        d = KINDS[kind](rng, n)
        low, high = mean_interval(d)
        sides = [verdict(d + side).equivalent for side in (-MARGIN, MARGIN)]
        ours += verdict(d).finding != "none", *sides, low <= 0 <= high, verdict(d - shift).finding == "loss"
        differs, _, _ = of_t_test(d)
        sides = [of_t_test(d + side)[1] for side in (-MARGIN, MARGIN)]
        lost, _, mean = of_t_test(d - shift)
        theirs += differs, *sides, not differs, lost and mean < 0
    return [(level, max(below, above), *rest) for level, below, above, *rest in (ours / draws, theirs / draws)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=4000)
    draws = parser.parse_args().draws
    rng = np.random.default_rng(0)
    print(f"{'differences':14}{'n':>5}   {'level':14}{'equivalent':14}{'coverage':14}{'power':14}")
    for kind in KINDS:
        for n in SIZES:
            rows = zip(*measured(kind, n, draws, rng), strict=True)
            hidden = (True, True, False, True) if n < FEWEST_QUERIES else (False,) * 4
            cells = [
                f"{'—' if hide else f'{ours:.3f}'} ({theirs:.3f})"
                for (ours, theirs), hide in zip(rows, hidden, strict=True)
            ]
            print(f"{kind:14}{n:5d}   " + "".join(f"{cell:14}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
