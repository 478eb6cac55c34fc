"""How close FSMRank's published stopping rule comes to the minimum, and its time beside that of sub-gradients.

All on fold 1 and one thread, kernels compiled before.

    python tests/benchmarks/fsm_rank.py [--data DIR]

Prints a table for some entries of the grid. Never fails a build.
"""

from __future__ import annotations

import time
from pathlib import Path

import frame
import numpy as np
from rich.table import Table

from moerank.data import RankingData, load_fold
from moerank.rankers import FSMRank
from moerank.selectors.fsm import FSMRankSubgradient

ENTRIES = [(1e-2, 1e-2), (1e-3, 1e-3), (1e-1, 1e-5), (1e-5, 1e-3)]
POPULATION = 100
ETA0 = (3.0, 1.0, 0.3, 0.1)
MOST_STEPS = 1000
GRID = ("data", "lambda1", "lambda2")


def gaps(folder: Path, name: str, table: Table) -> None:
    """Compare the paper's stopping rule with a run to the minimum."""
    train, _, _ = load_fold(folder / name / "Fold1")
    for lambda1, lambda2 in ENTRIES:
        stopped = FSMRank(lambda1, lambda2).fit(train.X, train.y, qid=train.qid)
        exact = FSMRank(lambda1, lambda2, tol=1e-12, max_iter=20_000).fit(train.X, train.y, qid=train.qid)
        reached, best = (ranker.objective(train, ranker.variables_) for ranker in (stopped, exact))
        table.add_row(
            *(name, f"{lambda1:g}", f"{lambda2:g}", f"{stopped.n_iter_}", f"{reached / best - 1.0:.2%}"),
            *(f"{stopped.support_.sum()}", f"{exact.support_.sum()}"),
        )


def times(folder: Path, name: str) -> None:
    """Time the tuning and a population with pairs of its own, kernels compiled before."""
    train, validation, _ = load_fold(folder / name / "Fold1")

    keep = np.random.default_rng(0).random((POPULATION, len(train.pairs))) < 0.3
    begin = time.perf_counter()
    FSMRank().tune(train, validation)
    tuned = time.perf_counter()
    FSMRank().fit_population(train, pair_mask=keep)
    trained = time.perf_counter()
    print(f"{name}: tuning takes {tuned - begin:.1f} s, and {POPULATION} individuals {trained - tuned:.1f} s")


def convergence(folder: Path, name: str, table: Table) -> None:
    """Time both methods to within 1e-3 of the minimum (paper: Figure 5), the sub-gradients with their best eta0."""
    train, _, _ = load_fold(folder / name / "Fold1")
    for lambda1, lambda2 in ENTRIES[:2]:
        exact = FSMRank(lambda1, lambda2, tol=1e-12, max_iter=20_000)._learn(train)
        goal = 1.001 * exact.objectives_[-1]
        steps = int(np.argmax(exact.objectives_ <= goal))
        ours = seconds(FSMRank(lambda1, lambda2, tol=0.0, max_iter=steps), train)
        runs = {}
        for eta0 in ETA0:
            run = FSMRankSubgradient(lambda1, lambda2, eta0, MOST_STEPS)._learn(train)
            if run.objectives_.min() <= goal:
                runs[int(np.argmax(run.objectives_ <= goal))] = eta0
        if not runs:
            table.add_row(name, f"{lambda1:g}", f"{lambda2:g}", str(steps), f"{ours:.3f}", f"> {MOST_STEPS:,}", "", "")
            continue
        fewest = min(runs)
        theirs = seconds(FSMRankSubgradient(lambda1, lambda2, runs[fewest], fewest), train)
        table.add_row(
            *(name, f"{lambda1:g}", f"{lambda2:g}", str(steps), f"{ours:.3f}"),
            *(str(fewest), f"{theirs:.3f}", f"{theirs / ours:.1f}"),
        )


def seconds(ranker: FSMRank | FSMRankSubgradient, train: RankingData) -> float:
    """Return the least processor time of three fits to data whose pairs are enumerated already."""
    return frame.least_seconds(lambda _: ranker._learn(train), 3)[0]


def main() -> None:
    """Measure both data sets."""
    folder = frame.arguments(__doc__).data
    stops = Table(
        *GRID, "steps", "above the minimum", "features", "at the minimum", title="The published stopping rule"
    )
    columns = ("FSMRank's steps", "seconds", "sub-gradient steps", "seconds", "ratio")
    speed = Table(*GRID, *columns, title="To within .1 % of the minimum")
    for name in ("MQ2008", "OHSUMED"):
        gaps(folder, name, stops)
        times(folder, name)
        convergence(folder, name, speed)
    frame.show(stops)
    frame.show(speed)


if __name__ == "__main__":
    main()
