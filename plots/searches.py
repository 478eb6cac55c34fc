"""Searches side by side: the fronts of training error they reach, and how soon.

    python plots/searches.py [PROBLEM] [--data FOLDER] [--seeds 7] [--evaluations 10000] [--out FOLDER]

Searches the feature subsets of fold 1 with each method and seed, and draws `searches-PROBLEM.png`: the least training
error with at most k features, median and quartiles over the seeds, and the hypervolume of the front after so many
evaluations, as a share of that of all these runs together. `tests/benchmarks/fronts.py` compares more searches on more
problems with the best fronts known.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

import moerank as mr
from moerank.evolution import BIT_SEARCHES, make_algorithm, search
from moerank.figures.panels import apart_from_first
from moerank.figures.style import WIDTH, in_style, put_title, save_figure
from moerank.studies.problem import load_problem

METHODS = {
    "nsga2": ("NSGA-II", "#0072B2", "--"),
    "daea": ("DAEA", "#E69F00", "-."),
    "staircase": ("staircase", "#D55E00", "-"),
}


def least_errors(front, n_features):
    """Return the least error with at most k features, k = 1 …; NaN where there is nothing so small."""
    least = np.full(n_features + 1, np.inf)
    np.minimum.at(least, front[:, 0].astype(int), front[:, 1])
    least = np.minimum.accumulate(least)[1:]
    return np.where(np.isfinite(least), least, np.nan)


def runs_of(stage, method, seeds, evaluations):
    """Return the generations of each seed."""
    histories = []
    for seed in seeds:
        stage.adaptive = False
        operators = stage.operators()
        if method in BIT_SEARCHES:
            del operators["sampling"]  # it has a start of its own
        algorithm = make_algorithm(method, 100, operators)
        histories.append(search(stage, algorithm, ("n_eval", evaluations), seed=seed).history)
    return histories


def draw(problem, fold, seeds, evaluations):
    """Return the figure."""
    train, validation, _ = fold
    backend = mr.RankRLS().tune(train, validation)
    stage = mr.FeatureSelection(train, backend, problem.metric.make())
    runs = {method: runs_of(stage, method, seeds, evaluations) for method in METHODS}
    d = train.n_features
    ends = np.array([least_errors(run[-1].front, d) for histories in runs.values() for run in histories])
    best = np.nanmin(ends, axis=0)
    high, low = best[0], best[-1]

    def volume(front):
        least = least_errors(front, d)[: d - 1]
        return np.mean(1 - np.fmin(1, (np.where(np.isnan(least), high, least) - low) / (high - low)))

    whole = volume(np.column_stack([np.arange(1, d + 1), best]))
    grid = np.geomspace(200, evaluations, 40)
    last = int(np.argmax(best <= low + 1e-12)) + 1
    volumes = {
        METHODS[method][0]: pd.Series([volume(run[-1].front) for run in histories])
        for method, histories in reversed(runs.items())
    }
    with in_style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(2 * WIDTH, 2.3), layout="constrained")
        for method, (label, colour, dashes) in METHODS.items():
            errors = np.array([least_errors(run[-1].front, d) for run in runs[method]])[:, : last + 3]
            quarter, median, three = np.nanquantile(errors, (0.25, 0.5, 0.75), axis=0)
            k = np.arange(1, errors.shape[1] + 1)
            left.fill_between(k, quarter, three, step="post", color=colour, alpha=0.2, linewidth=0)
            left.plot(k, median, drawstyle="steps-post", color=colour, linestyle=dashes, label=label)
            shares = []
            for run in runs[method]:
                values = np.array([100 * volume(generation.front) / whole for generation in run])
                at = np.searchsorted([generation.n_eval for generation in run], grid, side="right") - 1
                shares.append(np.where(at >= 0, values[at], np.nan))
            quarter, median, three = np.nanquantile(shares, (0.25, 0.5, 0.75), axis=0)
            right.fill_between(grid, quarter, three, color=colour, alpha=0.2, linewidth=0)
            right.plot(grid, median, color=colour, linestyle=dashes, label=label)
        left.xaxis.set_major_locator(MaxNLocator(integer=True))
        left.set(xlabel="Number of features", ylabel=f"1 − {problem.metric.name}, training")
        left.set_title(f"after {evaluations:,} evaluations", loc="left")
        # The first steps are the same for all, and so high that nothing else would be seen.
        shown = ends[:, min(2, d - 1) : last + 3]
        margin = 0.05 * (np.nanmax(shown) - np.nanmin(shown))
        left.set_ylim(np.nanmin(shown) - margin, np.nanmax(shown) + margin)
        right.set(xlabel="Evaluations", ylabel="Hypervolume, %", xscale="log")
        right.xaxis.set_major_locator(FixedLocator([200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]))
        right.xaxis.set_minor_locator(NullLocator())
        right.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        right.set_xlim(grid[0], grid[-1])
        right.set_title(f"median and quartiles of {len(seeds)} seeds", loc="left")
        _, finding = apart_from_first(volumes, largest=True)
        put_title(figure, f"{problem.name}, {evaluations:,} evaluations. {finding}", right)
    return figure


def main():
    """Search and draw what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem", nargs="?", default="digits", help="a shipped problem, or a problem file")
    parser.add_argument("--data", type=Path, help="folder that holds the data")
    parser.add_argument("--seeds", type=int, default=7)
    parser.add_argument("--evaluations", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the figure")
    arguments = parser.parse_args()
    problem = load_problem(arguments.problem)
    fold = problem.load_fold(1, arguments.data)
    figure = draw(problem, fold, range(arguments.seeds), arguments.evaluations)
    save_figure(figure, arguments.out / f"searches-{problem.name}.png")


if __name__ == "__main__":
    main()
