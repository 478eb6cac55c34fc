"""Critical differences: mean ranks of the solvers, joined where the data cannot tell them apart."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.figures.study import NothingToDrawError, column_figure, folded, height_of_rows
from moerank.figures.style import GREY, WIDTH, in_style
from moerank.studies.comparison import Results, solver_ranks

__all__ = ["ranks_figure"]

NAME_SIZE = 6.5
LABEL_WIDTH = 1.7


def ranks_figure(results: Results, metric: str | None = None) -> Figure:
    """Draw mean ranks over the folds of all problems, with bars over solvers closer than the critical difference.

    Raises
    ------
    NothingToDrawError
        If there are fewer than three solvers or two folds.
    """
    metric = metric or next(iter(results.values())).metrics[0]
    ranks = solver_ranks(results, metric)
    if ranks is None:
        raise NothingToDrawError("ranks need at least three solvers that have at least two folds in common")
    test, solvers = ranks.test, ranks.solvers
    groups = _groups(test.ranks.tolist(), test.critical_difference)
    with in_style():
        names = [f"{solver} ({rank:.2f})" for solver, rank in zip(solvers, test.ranks, strict=True)]
        labels = [folded(name, NAME_SIZE, LABEL_WIDTH) for name in names]
        figure = column_figure(0.9 + height_of_rows(labels) * (1.0 + 0.6 * len(groups) / len(labels)))
        axes = figure.subplots()
        for row, rank in enumerate(test.ranks):
            axes.plot([rank], [row], "o", color="black", markersize=3)
            axes.plot([0.4, rank], [row, row], color="0.85", linewidth=0.5, zorder=0)
        for number, (first, last) in enumerate(groups):
            height = len(solvers) + 0.6 * number
            axes.plot([test.ranks[first] - 0.05, test.ranks[last] + 0.05], [height, height], color=GREY, linewidth=2.5)
        axes.set_yticks(range(len(solvers)), labels, fontsize=NAME_SIZE)
        axes.set_ylim(len(solvers) + 0.6 * len(groups), -0.7)
        axes.set_xlim(0.4, len(solvers) + 0.4)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
        caption = (
            f"Mean rank by {metric} on {test.n_blocks} folds, Friedman p = {test.p:.2g}. Bars join ranks closer than "
            f"the critical difference {test.critical_difference:.2f} (Nemenyi, 5%)."
        )
        figure.supxlabel(folded(caption, 7, WIDTH - 0.2), fontsize=7)
    return figure


def _groups(ranks: list[float], critical: float) -> list[tuple[int, int]]:
    """First and last of every longest run of ranks that spans less than the critical difference."""
    groups: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(i for i in range(first, len(ranks)) if ranks[i] - ranks[first] < critical)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups
