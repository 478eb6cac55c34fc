"""Feature frequency: how often each solver selects each feature, and the stability of its selections.

The percentage of the runs that select a feature. Below each solver are the mean Jaccard index of the selections of two
runs and, in brackets, the index corrected for chance.
"""

from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure

from moerank.figures import View
from moerank.figures.panels import ROW, best_of_families, named, rows_figure
from moerank.figures.style import CHOSEN, GREY, finished, in_style, one_panel, renamed
from moerank.studies.evidence import Stability
from moerank.studies.results import NoResultsError, feature_stability, offers_sizes

# Largest number of features in the figure.
MOST_FREQUENT = 16

# Longest line of a solver's label, in characters.
HEAD_LENGTH = 15

# Longest name of a feature, in characters.
NAME_LENGTH = 26

# Height of the row of a feature, in inches.
FEATURE_HEIGHT = 0.16

# Largest number of features in the figure, the most frequent ones.
MOST_BARS = 20


def frequency_figure(view: View) -> Figure:
    """Draw a map feature × solver of percentages, the most used features first, above the stability of each solver.

    If there are many solvers, the map has only the best of each family by validation. Stability is the mean pairwise
    Jaccard index of the selections of the runs and, in brackets, the index corrected for chance, which is 0 for random
    selections. A note names the solvers that select no features.
    """
    by_solver = view.results.by_solver()
    names = view.results[0].feature_names
    selecting = [solver for solver, folds in by_solver.items() if offers_sizes(folds)]
    if not selecting:
        raise NoResultsError(f"no solver of the study of {view.where} selects features")
    chosen = {
        s: [run.best.features for runs in by_solver[s].values() for run in runs] for s in selecting
    }
    rows = np.arange(len(names))
    share = np.transpose(
        [
            np.mean([np.isin(rows, features) for features in runs], axis=0)
            for runs in chosen.values()
        ]
    )
    shown = best_of_families(view.results, selecting)
    cells = share[:, [selecting.index(solver) for solver in shown]]
    order = np.argsort(-cells.sum(axis=1), kind="stable")[
        : min(int((cells > 0).any(axis=1).sum()), MOST_FREQUENT)
    ]
    often, cells = int((share[order[0]] > 0.5).sum()), cells[order]
    figure, axes = one_panel(2.0 + FEATURE_HEIGHT * len(order))
    axes.imshow(cells, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(cells):
        colour = "white" if value > 0.5 else "black"
        axes.text(
            column, row, f"{100 * value:.0f}", ha="center", va="center", fontsize=6, color=colour
        )
    stable = [_stability(chosen[solver], len(names)) for solver in shown]
    heads = [
        f"{fill(renamed(solver), HEAD_LENGTH)}\n{index}"
        for solver, index in zip(shown, stable, strict=True)
    ]
    axes.set_xticks(range(len(shown)), heads, fontsize=6, rotation=90 if len(shown) > 4 else 0)
    labels = [f"feature {name}" if name.isdigit() else name for name in (names[i] for i in order)]
    labels = [
        label if len(label) <= NAME_LENGTH else f"{label[: NAME_LENGTH - 1]}…" for label in labels
    ]
    axes.set_yticks(range(len(order)), labels, fontsize=6)
    axes.tick_params(length=0)
    solvers = (
        f"{often} of {len(selecting)} solvers"
        if len(selecting) > 1
        else selecting[0]
        if often
        else "no solver"
    )
    finding = f"Most frequent: {labels[0]}, which {solvers} chose in more than half of the runs"
    notes = [
        "Cells: per cent of the runs. Below the solvers: mean Jaccard index of two runs (corrected for chance).",
        named(
            "Not drawn, as one of their family is better by validation",
            [s for s in selecting if s not in shown],
        ),
        named(
            "Not drawn, because they offer a single size",
            [s for s in by_solver if s not in selecting],
        ),
    ]
    return finished(
        figure, axes, FEATURE_HEIGHT * len(order), finding, " ".join(filter(None, notes))
    )


def _stability(runs: Sequence[Sequence[int]], n_features: int) -> str:
    if len(runs) < 2:
        return "–"
    jaccard, corrected = feature_stability(runs, n_features)
    return f"{jaccard:.2f} ({corrected:.2f})"


def stability_figure(stability: Stability) -> Figure:
    """Draw the frequency of each feature, with the threshold as a dashed line.

    The title is the finding. Features that reach the threshold are orange.

    Parameters
    ----------
    stability : Stability
        The result of `moerank.studies.evidence.stability`.

    Returns
    -------
    Figure
        The most frequent features, at most 20, with the further sentences of `Stability.sentences` in a note below. The
        figure is as wide as a column of text, `WIDTH` inches, and its height grows with the number of bars.

    Notes
    -----
    Features that no half selects, and those that a limit includes in every selection, have no bar.

    Examples
    --------
    >>> import moerank as mr
    >>> train, vali, _ = mr.load_planted_fold(1)
    >>> len(stability_figure(mr.stability(mr.GreedyRankRLS(3), train, vali, pairs=2)).axes)
    1
    """
    order = stability.order[:MOST_BARS]
    colours = [CHOSEN if feature in stability.selected else "0.65" for feature in order]
    with in_style():
        figure, axes, rows = rows_figure([stability.feature_names[feature] for feature in order])
        axes.barh(
            rows,
            [stability.frequency[feature] for feature in order],
            color=colours,
            height=0.7 * ROW,
        )
        axes.axvline(stability.threshold, color=GREY, linewidth=0.9, linestyle="--")
        axes.set(
            xlim=(0, 1),
            xlabel=f"Share of {2 * stability.pairs} halves, size at most {stability.size}",
        )
        finding, *risk = stability.sentences()
        return finished(
            figure, axes, axes.get_ylim()[0], finding, "".join(f"{sentence}. " for sentence in risk)
        )
