"""Feature frequency: share of folds and seeds in which each solver selects a feature, and stability of selections."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure

from moerank.figures.figure import StudyFigure, View
from moerank.figures.notes import named
from moerank.figures.style import WIDTH, fit_height, in_style, put_note
from moerank.studies.results import NoResultsError, feature_stability, offers_sizes

__all__ = ["FIGURE"]

NAME_SIZE, FEATURE_SIZE = 6, 5
LABEL_LENGTH = 30
"""Characters of a line of a solver's label."""

LETTER, STABILITY_WIDTH = 0.048, 0.75
"""Approximate inches of a letter of a label, and inches of the column beside the map."""

COLUMN = 0.085
"""Inches of a feature, enough for its name below."""


def frequency_figure(view: View) -> Figure:
    """Draw a map solver × feature, the most used features first, beside the stability of each solver.

    Stability is the mean pairwise Jaccard index of the selections of the runs, and in brackets the index corrected for
    chance, which is 0 for random selections. The note below the figure names the solvers without a selection.
    """
    found = view.results.by_solver()
    names = view.results[0].feature_names
    chosen = {
        solver: [run.best.features for runs in folds.values() for run in runs]
        for solver, folds in found.items()
        if offers_sizes(folds)
    }
    if not chosen:
        raise NoResultsError(f"no solver of the study of {view.where} selects features")
    share = np.zeros((len(chosen), len(names)))
    for row, runs in enumerate(chosen.values()):
        for features in runs:
            share[row, features] += 1.0 / len(runs)
    note = named("Left out, for they offer one size", [solver for solver in found if solver not in chosen])
    with in_style():
        labels = [fill(solver, LABEL_LENGTH) for solver in chosen]
        room = WIDTH - LETTER * max(len(line) for label in labels for line in label.split("\n")) - STABILITY_WIDTH
        used = int((share > 0).any(axis=0).sum())
        order = np.argsort(-share.sum(axis=0), kind="stable")[: min(used, int(room / COLUMN))]
        below = [name if len(name) <= 30 else f"{name[:29]}…" for name in (names[i] for i in order)]
        rows = len(labels) * (0.15 + 0.1 * max(label.count("\n") for label in labels))
        figure = Figure(figsize=(WIDTH, 1.0 + rows), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(share[:, order], cmap="Greys", vmin=0, vmax=1, aspect="auto")
        for line in np.arange(1, len(chosen)) - 0.5:
            axes.axhline(line, color="white", linewidth=0.6)
        axes.set_yticks(range(len(chosen)), labels, fontsize=NAME_SIZE)
        axes.set_xticks(range(len(order)), below, rotation=90, fontsize=FEATURE_SIZE)
        axes.tick_params(length=0)
        axes.set_xlabel(f"Feature (the {len(order)} most chosen of {len(names)})")
        right = axes.secondary_yaxis("right")
        right.set_yticks(range(len(chosen)), [_stability(runs, len(names)) for runs in chosen.values()], fontsize=6)
        right.tick_params(length=0)
        right.set_ylabel("Stability\n(corrected)", fontsize=6)
        figure.colorbar(image, ax=figure.axes, label="Share of runs", location="top", shrink=0.7, aspect=30)
        put_note(figure, note)
        fit_height(figure, axes, rows)
    return figure


def _stability(runs: Sequence[Sequence[int]], n_features: int) -> str:
    if len(runs) < 2:
        return "–"
    jaccard, corrected = feature_stability(runs, n_features)
    return f"{jaccard:.2f} ({corrected:.2f})"


FIGURE = StudyFigure(
    frequency_figure,
    caption="Share of the runs in which a solver selects a feature; mean Jaccard index of the selections of two runs, "
    "and in brackets the index corrected for chance.",
    section="features",
)
