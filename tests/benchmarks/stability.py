"""How many false features are selected from planted data, beside the bound on their expected number?

    python tests/benchmarks/stability.py [--draws 100] [--pairs 10]

Each draw makes new queries of planted data with few relevant features, the same number of copies of them, and much
noise. The solver selects at most `size` features on each half. `rate` is the mean frequency of the noise features. They
are exchangeable, so it estimates the probability of each of them on half of the queries. At or below `size / features`
all of them are false in the sense of the bound. `false` is the mean number of noise features among the selected ones,
with its standard error, and `bound` what it may be at most. `true` is the mean number of other selected features.
"""

from tempfile import TemporaryDirectory

import frame
import numpy as np
from rich.console import Console
from rich.progress import track

from moerank import GreedyRankRLS, SingleFeatures
from moerank.data import make_planted
from moerank.mofsrank import MOFSRank
from moerank.studies.evidence import expected_false, stability

QUERIES, VALIDATION = 40, 10
SEARCH = {"population": 20, "generations": 15}
SOLVERS = {
    "greedy-rankrls": GreedyRankRLS(4, alpha=1e-3),
    "single features": SingleFeatures(4),
    "mofsrank": MOFSRank(instance_selection=False, ensemble=False, feature_selection=SEARCH, tuning="MAP"),
}
DATA = {"noise alone": (1, 0, 39, 50.0), "2 relevant": (2, 0, 38, 1.0), "3 relevant, copied": (3, 3, 34, 1.0)}
"""Relevant, redundant and noise features, and the noise of the labels; 50 leaves nothing of the relevant feature."""


RULES = ((3, 0.6), (4, 0.75))
"""Sizes, each with its threshold, of the same halves."""


def measured(name, data, pairs, draws):
    """Return for each rule the rows of the draws: rate, false and true."""
    result_of = np.zeros((len(RULES), draws, 3))
    for seed in track(range(draws), f"{name}, {data}", console=Console(stderr=True), transient=True):
        made = make_planted(QUERIES + VALIDATION, 10, *DATA[data][:3], noise=DATA[data][3], seed=seed)
        border = made.data.offsets[QUERIES]
        train = made.data.with_rows(np.arange(border))
        vali = made.data.with_rows(np.arange(border, made.data.n_documents))
        is_noise = made.source < 0
        with TemporaryDirectory() as halves:
            for row, (size, threshold) in zip(result_of[:, seed], RULES, strict=True):
                settings = dict(size=size, threshold=threshold, pairs=pairs, seed=seed, out=halves)
                result = stability(SOLVERS[name], train, vali, **settings)
                n_false = np.count_nonzero(is_noise[result.selected])
                rate = np.mean(np.array(result.frequency)[is_noise])
                row[:] = rate, n_false, len(result.selected) - n_false
    return result_of


def main():
    options = frame.arguments(__doc__, draws=100, pairs=10)
    print(f"{'solver':15} {'data':19} {'size':>4}    τ   rate   θ     false        bound  true")
    for name in SOLVERS:
        for data, (*roles, _) in DATA.items():
            tables = measured(name, data, options.pairs, options.draws)
            for (size, tau), rows in zip(RULES, tables, strict=True):
                rate, n_false, n_true = rows.mean(axis=0)
                error = rows[:, 1].std(ddof=1) / np.sqrt(options.draws)
                chance, bound = size / sum(roles), expected_false(size, sum(roles), tau)
                print(
                    f"{name:15} {data:19} {size:4} {tau:5.2f} {rate:.3f} {chance:.3f} {n_false:.2f} ± {error:.2f}"
                    f"  {bound:.2f}   {n_true:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
