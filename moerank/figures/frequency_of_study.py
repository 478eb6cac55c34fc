"""Feature frequency: how often each solver selects each feature, and the stability of its selections.

The percentage of the runs that select a feature. Below each solver are the mean Jaccard index of the selections of two
runs and, in brackets, the index corrected for chance.
"""

from collections.abc import Iterable
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from moerank.figures import View
from moerank.figures.panels import ROW, best_of_families, rows_figure
from moerank.figures.style import (
    CHOSEN,
    GREY,
    finish_figure,
    in_style,
    one_panel,
    rename_solvers,
    shorten_name,
)
from moerank.studies.comparison import name_solvers
from moerank.studies.evidence import Stability
from moerank.studies.results import NoResultsError, Results, feature_stability, offers_sizes

# Largest number of features in the figure.
MAX_FEATURES = 16

# Longest line of a solver's label, in characters.
HEAD_LENGTH = 15

# Longest name of a feature, in characters.
NAME_LENGTH = 26

# Height of the row of a feature, in inches.
FEATURE_HEIGHT = 0.16

# Largest number of features in the figure, the most frequent ones.
MAX_BARS = 20


def frequency_figure(view: View) -> Figure:
    """Draw a map feature × solver of percentages, the most used features first, above the stability of each solver.

    If there are many solvers, the map has only the best of each family by validation. Stability is the mean pairwise
    Jaccard index of the selections of the runs and, in brackets, the index corrected for chance, which is 0 for random
    selections. A note names the solvers that select no features.
    """
    folds_of_solver = view.results.by_solver()
    selecting = [solver for solver, folds in folds_of_solver.items() if offers_sizes(folds)]
    if not selecting:
        raise NoResultsError(f"no solver of the study of {view.problem_name} selects features")
    solvers = best_of_families(view.results, selecting)
    runs = {solver: view.results.among([solver]) for solver in solvers}
    notes = (
        "Cells: per cent of the runs. "
        "Below the solvers: mean Jaccard index of two runs (corrected for chance).",
        name_solvers(
            "Not drawn, as one of their family is better by validation",
            [solver for solver in selecting if solver not in solvers],
        ),
        name_solvers(
            "Not drawn, because they offer a single size",
            [solver for solver in folds_of_solver if solver not in selecting],
        ),
    )
    names = view.results[0].feature_names
    shares = pd.DataFrame(index=names)
    for solver, results in runs.items():
        selections = [np.isin(np.arange(len(names)), run.best.features) for run in results]
        shares[solver] = np.mean(selections, axis=0)
    order = np.argsort(-shares.to_numpy().sum(axis=1), kind="stable")
    n_used = int(shares.any(axis=1).sum())
    frequent = shares.iloc[order[: min(n_used, MAX_FEATURES)]]
    return draw_frequency(frequent, map(_stability_text, runs.values()), notes)


def _stability_text(results: Results) -> str:
    if len(results) < 2:
        return "–"
    selections = [run.best.features for run in results]
    jaccard, corrected = feature_stability(selections, len(results[0].feature_names))
    return f"{jaccard:.2f} ({corrected:.2f})"


def draw_frequency(shares: pd.DataFrame, stability: Iterable[str], notes: Iterable[str]) -> Figure:
    """Draw the shares as percentages on grey cells, above the solvers with their stability."""
    cells = shares.to_numpy()
    n_features, n_solvers = cells.shape
    figure, axes = one_panel(2.0 + FEATURE_HEIGHT * n_features)
    axes.imshow(cells, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    for (row, column), share in np.ndenumerate(cells):
        colour = "white" if share > 0.5 else "black"
        axes.text(
            column, row, f"{100 * share:.0f}", ha="center", va="center", fontsize=6, color=colour
        )
    heads = [
        f"{fill(rename_solvers(solver), HEAD_LENGTH)}\n{index}"
        for solver, index in zip(shares, stability, strict=True)
    ]
    axes.set_xticks(range(n_solvers), heads, fontsize=6, rotation=90 if n_solvers > 4 else 0)
    names = [f"feature {name}" if name.isdigit() else name for name in shares.index]
    labels = [shorten_name(name, NAME_LENGTH) for name in names]
    axes.set_yticks(range(n_features), labels, fontsize=6)
    axes.tick_params(length=0)
    title = "Frequency of the features in the chosen members"
    note = " ".join(filter(None, notes))
    return finish_figure(figure, axes, FEATURE_HEIGHT * n_features, title, note)


def stability_figure(stability: Stability) -> Figure:
    """Draw the frequency of each feature, with the threshold as a dashed line.

    Features that reach the threshold are orange.

    Parameters
    ----------
    stability : Stability
        The result of `moerank.studies.evidence.stability`.

    Returns
    -------
    Figure
        The most frequent features, at most 20, with the `Stability.sentences` in a note below. The figure is as wide as
        a column of text, `WIDTH` inches, and its height grows with the number of bars.

    Notes
    -----
    Features that no half-sample selects, and features that a limit puts into every selection, have no bar.

    Examples
    --------
    >>> import moerank as mr
    >>> train, vali, _ = mr.load_planted_fold(1)
    >>> len(stability_figure(mr.stability(mr.GreedyRankRLS(3), train, vali, pairs=2)).axes)
    1
    """
    order = stability.order[:MAX_BARS]
    colours = [CHOSEN if feature in stability.selected else "0.65" for feature in order]
    frequencies = [stability.frequency[feature] for feature in order]
    with in_style():
        figure, axes, rows = rows_figure([stability.feature_names[feature] for feature in order])
        axes.barh(rows, frequencies, color=colours, height=0.7 * ROW)
        axes.axvline(stability.threshold, color=GREY, linewidth=0.9, linestyle="--")
        xlabel = f"Share of {2 * stability.pairs} halves, size at most {stability.size}"
        axes.set(xlim=(0, 1), xlabel=xlabel)
        note = " ".join(f"{sentence}." for sentence in stability.sentences())
        title = "Frequency of the features in halves of the queries"
        return finish_figure(figure, axes, axes.get_ylim()[0], title, note)
