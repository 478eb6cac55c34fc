"""How often does final="guaranteed" choose a member that loses more than the margin, and how small is its choice?

    python tests/benchmarks/guarantee.py [--draws 10000] [--margin 0.02] [--pool 4000]

A front is searched once on 180 queries of `planted` or of `web`. Its members are then judged on a pool of further
queries, whose mean is the truth; `possible` is the size of the smallest member that in truth loses less than the
margin. Each draw takes validation queries from the pool, half of them for the order and half for the tests. `shown` is
the share of draws with a guarantee. `false` is the share in which the member loses more than the sentence says, at most
5 % by theory, with the upper end of its exact 95 % interval (Clopper and Pearson) in brackets. `features` is the mean
size of the guaranteed members. The next two columns are those of final="one-se" on all of the queries: the share of
draws in which its choice loses more than the margin, and its mean size. `covered` is the share of draws in which the
corrected interval of the member that is best by validation holds its true difference; in brackets that of the plain
interval. Only every tenth draw computes these, as the correction takes long.
"""

import frame
import numpy as np
from rich.progress import track
from rich.table import Table
from scipy.stats import binomtest

from moerank.data import make_planted, make_web
from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.mofsrank.objectives import guaranteed_member, values_of
from moerank.statistics import level_of_each, mean_interval, smallest_within_error

TRAINING = 180
PROBLEMS = {
    "planted": lambda pool: make_planted(TRAINING + pool, noise=0.4, seed=1).data,
    "web": lambda pool: make_web(TRAINING + pool, seed=1),
}


def front_and_pool(problem, pool):
    """Return the sizes of the members of a front, and their differences and values on the pool."""
    data = PROBLEMS[problem](pool)
    border = data.offsets[TRAINING]
    train, rest = data.with_rows(np.arange(border)), data.with_rows(np.arange(border, data.n_documents))
    settings = {"population": 60, "generations": 60}
    solver = MOFSRank(instance_selection=False, ensemble=False, feature_selection=settings, random_state=0).fit(train)
    values = values_of(rest, NDCG(10), solver.front_rankers_)
    reference = values_of(rest, NDCG(10), solver.reference_)
    kept = NDCG(10).can_differ(rest)
    return solver.front_["n_features"].to_numpy(), (values - reference)[kept], values[kept]


def measured(sizes, differences, values, n, draws, margin):
    """Return the columns of the table for so many validation queries."""
    rng, truth = np.random.default_rng(0), differences.mean(axis=0)
    found = np.full((draws, 7), np.nan)
    for number, row in enumerate(track(found, f"{n} queries", transient=True)):
        drawn = rng.integers(len(differences), size=n)
        first, second = drawn[: n // 2], drawn[n // 2 :]
        choice = guaranteed_member(sizes, values[first].mean(axis=0), differences[second], margin)
        one_se = smallest_within_error(values[drawn], sizes)
        row[:5] = (
            choice.shown,
            truth[choice.chosen] <= -(margin if choice.shown else choice.largest_loss),
            sizes[choice.chosen] if choice.shown else np.nan,
            truth[one_se] <= -margin,
            sizes[one_se],
        )
        if number % 10 == 0:
            best = int(values[drawn].mean(axis=0).argmax())
            levels = (0.05, level_of_each(differences[drawn], draws=1000))
            ends = [mean_interval(differences[drawn, best], 1 - level) for level in levels]
            row[5:] = [low <= truth[best] <= high for low, high in ends]
    return np.nanmean(found, axis=0)


def main():
    arguments = frame.arguments(__doc__, draws=10_000, margin=0.02, pool=4000)
    table = Table("problem", "possible", "queries", "shown", "false", "features", "one-se false", "features", "covered")
    for problem in PROBLEMS:
        sizes, differences, values = front_and_pool(problem, arguments.pool)
        possible = sizes[differences.mean(axis=0) > -arguments.margin].min()
        for n in (60, 300, 1200):
            row = measured(sizes, differences, values, n, arguments.draws, arguments.margin)
            shown, false, features, loses, smallest, plain, corrected = row
            at_most = binomtest(round(false * arguments.draws), arguments.draws).proportion_ci().high
            cells = f"{shown:.1%}", f"{false:.2%} ({at_most:.2%})", f"{features:.1f}", f"{loses:.1%}", f"{smallest:.1f}"
            table.add_row(problem, str(possible), str(n), *cells, f"{corrected:.1%} ({plain:.1%})")
    frame.show(table, 120)


if __name__ == "__main__":
    main()
