"""How often the 95 % intervals of estimated costs hold the true costs of a simulated engine.

    python tests/benchmarks/costs.py [SIMULATIONS]

Each simulation draws an engine with 11 features, two groups of four and noise of 2 % of the mean run, measures a design
of 32 runs in two rounds, and estimates the costs.
"""

import sys

import numpy as np

from moerank.data import FeatureCosts
from moerank.data.measured_costs import Measurements, estimate_costs, switch_design

GROUPS = ("title",) * 4 + ("body",) * 4 + (None,) * 3
NAMES = tuple("abcdefghijk")


def simulate(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each interval holds its cost, and the errors of the costs in standard errors."""
    rng = np.random.default_rng(seed)
    costs = FeatureCosts.of(rng.gamma(2.0, 1.0, 11), GROUPS, {"title": rng.uniform(0, 10), "body": rng.uniform(0, 10)})
    runs = np.tile(switch_design(GROUPS, 32, seed % 10), (2, 1))
    times = 20 + costs.sums(runs) + np.repeat([0.0, rng.normal()], 32)
    times += 0.02 * times.mean() * rng.standard_normal(64)
    rounds = np.repeat([0, 1], 32)
    found = estimate_costs(Measurements(NAMES, GROUPS, runs, times, rounds))
    true = np.concatenate((costs.own, costs.shared))
    return (found.low <= true) & (true <= found.high), (found.values - true) / found.errors


if __name__ == "__main__":
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    held, away = map(np.array, zip(*map(simulate, range(simulations)), strict=True))
    print(f"intervals that hold the cost: {held.mean():.2%}, of single costs {held.mean(0).min():.1%} to", end=" ")
    print(f"{held.mean(0).max():.1%}; within 3 standard errors: {(np.abs(away) <= 3).mean():.2%}")
