"""How many false features are selected from planted data, beside the bound on their expected number?

    python tests/benchmarks/stability.py [--draws 100] [--pairs 25]

Each draw makes new queries of planted data with few relevant features, the same number of copies of them, and much
noise. The solver selects at most `size` features on each half. `rate` is the mean frequency of the noise features. They
are exchangeable, so it estimates the probability of each of them on half of the queries. At or below `size / features`
all of them are false in the sense of the bound. `false` is the mean number of noise features among the selected ones,
with its standard error, and `bound` what it may be at most. `true` is the mean number of other selected features.
`sets` is the mean number of sets that take each other's place, and `mixed` of those with a noise feature.
"""

import argparse
import warnings

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from moerank.data import make_planted
from moerank.mofsrank import MOFSRank
from moerank.selectors import GreedyRankRLS, SingleFeatures
from moerank.studies.stability import expected_false, stability

QUERIES, VALIDATION = 40, 10
SEARCH = {"population": 20, "generations": 15}
SOLVERS = {
    "greedy-rankrls": lambda size: GreedyRankRLS(size, alpha=1e-3),
    "filter": lambda size: SingleFeatures(size),
    "mofsrank": lambda size: MOFSRank(instance_selection=False, ensemble=False, feature_selection=SEARCH),
}
DATA = {"noise alone": (1, 0, 39, 50.0), "2 relevant": (2, 0, 38, 1.0), "3 relevant, copied": (3, 3, 34, 1.0)}
"""Relevant, redundant and noise features, and the noise of the labels; 50 leaves nothing of the relevant feature."""


def measured(name, data, size, threshold, pairs, draws):
    """Return rate, false, its standard error, true, sets and mixed over the draws."""
    n_relevant, n_redundant, n_noise, noise = DATA[data]
    found = np.zeros((draws, 5))
    for seed in track(range(draws), f"{name}, {data}", transient=True):
        made = make_planted(QUERIES + VALIDATION, 10, n_relevant, n_redundant, n_noise, noise=noise, seed=seed)
        border = made.data.offsets[QUERIES]
        train = made.data.with_rows(np.arange(border))
        vali = made.data.with_rows(np.arange(border, made.data.n_documents))
        result = stability(SOLVERS[name](size), train, vali, size=size, threshold=threshold, pairs=pairs, seed=seed)
        is_noise = made.source < 0
        n_false = np.count_nonzero(is_noise[result.selected])
        n_mixed = sum(bool(is_noise[each.features].any()) for each in result.sets)
        rate = np.mean(np.array(result.frequency)[is_noise])
        found[seed] = rate, n_false, len(result.selected) - n_false, len(result.sets), n_mixed
    rate, n_false, n_true, sets, mixed = found.mean(axis=0)
    return rate, n_false, found[:, 1].std(ddof=1) / np.sqrt(draws), n_true, sets, mixed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=25)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table = Table(
        "solver", "data", "size", "threshold", "rate", "θ", "false", "bound", "true", "sets", "mixed", box=None
    )
    for name in SOLVERS:
        for data, (*roles, _) in DATA.items():
            for size, threshold in ((3, 0.6), (4, 0.75)):
                values = measured(name, data, size, threshold, options.pairs, options.draws)
                rate, n_false, error, n_true, sets, mixed = values
                n_features = sum(roles)
                table.add_row(
                    name,
                    data,
                    str(size),
                    f"{threshold:g}",
                    f"{rate:.3f}",
                    f"{size / n_features:.3f}",
                    f"{n_false:.2f} ± {error:.2f}",
                    f"{expected_false(size, n_features, threshold):.2f}",
                    f"{n_true:.2f}",
                    f"{sets:.2f}",
                    f"{mixed:.2f}",
                )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
