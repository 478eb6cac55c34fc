"""Feature frequency: how often each solver chooses each feature over folds and seeds, and how stable its choice is."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from moerank.figures.study import of_problem
from moerank.figures.style import WIDTH, in_style
from moerank.studies.comparison import Results, feature_stability
from moerank.studies.problem import Problem

__all__ = ["frequency_figure"]

MOST_FEATURES = 30


def frequency_figure(results: Results, problem: Problem) -> Figure:
    """Draw a map solver × feature, the most used features first; beside it the stability of the solvers.

    Stability is the mean pairwise Jaccard index of the runs' choices, corrected for chance: 1 if all runs choose the
    same, 0 as for random choices of the same sizes. Solvers that use all features in every run are left out.
    """
    found = of_problem(results, problem.name)
    names = next(run for folds in found.values() for runs in folds.values() for run in runs).feature_names
    chosen = {
        solver: [run.best.features for runs in folds.values() for run in runs]
        for solver, folds in found.items()
        if any(len(run.front) > 1 for runs in folds.values() for run in runs)
    }
    if not chosen:
        raise ValueError(f"no solver of the study of {problem.name} selects features")
    share = np.zeros((len(chosen), len(names)))
    for row, runs in enumerate(chosen.values()):
        for features in runs:
            share[row, features] += 1.0 / len(runs)
    order = np.argsort(-share.sum(axis=0), kind="stable")[: min(MOST_FEATURES, (share.sum(axis=0) > 0).sum())]
    with in_style():
        figure = Figure(figsize=(WIDTH, 1.1 + 0.17 * len(chosen)), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(share[:, order], cmap="Greys", vmin=0, vmax=1, aspect="auto")
        axes.set_yticks(range(len(chosen)), list(chosen), fontsize=6)
        axes.set_xticks(range(len(order)), [names[i] for i in order], rotation=90, fontsize=5)
        axes.tick_params(length=0)
        axes.set_xlabel(f"Feature (the {len(order)} most chosen of {len(names)})")
        right = axes.secondary_yaxis("right")
        right.set_yticks(range(len(chosen)), [_stability(runs, len(names)) for runs in chosen.values()], fontsize=6)
        right.tick_params(length=0)
        right.set_ylabel("Stability")
        figure.colorbar(image, ax=axes, label="Share of runs", location="top", shrink=0.7, aspect=30)
    return figure


def _stability(runs: list[list[int]], n_features: int) -> str:
    return f"{feature_stability(runs, n_features)[1]:.2f}" if len(runs) > 1 else "–"
