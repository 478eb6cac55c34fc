"""Critical differences: mean ranks of the solvers, joined where the data cannot tell them apart."""

from __future__ import annotations

from matplotlib.figure import Figure

from moerank.figures.style import GREY, WIDTH, in_style
from moerank.studies.comparison import Results, solver_ranks

__all__ = ["ranks_figure"]


def ranks_figure(results: Results, metric: str | None = None) -> Figure:
    """Draw mean ranks over the folds of all problems, with bars over solvers closer than the critical difference.

    Raises
    ------
    ValueError
        If there are fewer than three solvers or two folds.
    """
    metric = metric or next(iter(results.values())).metrics[0]
    ranks = solver_ranks(results, metric)
    if ranks is None:
        raise ValueError("ranks need at least three solvers that have at least two folds in common")
    test, solvers = ranks.test, ranks.solvers
    groups = _groups(test.ranks.tolist(), test.critical_difference)
    with in_style():
        figure = Figure(figsize=(WIDTH, 1.0 + 0.16 * len(solvers) + 0.1 * len(groups)), layout="constrained")
        axes = figure.subplots()
        for row, rank in enumerate(test.ranks):
            axes.plot([rank], [row], "o", color="black", markersize=3)
            axes.plot([0.4, rank], [row, row], color="0.85", linewidth=0.5, zorder=0)
        for number, (first, last) in enumerate(groups):
            height = len(solvers) + 0.6 * number
            axes.plot([test.ranks[first] - 0.05, test.ranks[last] + 0.05], [height, height], color=GREY, linewidth=2.5)
        axes.set_yticks(range(len(solvers)), [f"{s} ({r:.2f})" for s, r in zip(solvers, test.ranks, strict=True)])
        axes.set_ylim(len(solvers) + 0.6 * len(groups), -0.7)
        axes.set_xlim(0.4, len(solvers) + 0.4)
        figure.supxlabel(
            f"Mean rank by {metric} on {test.n_blocks} folds, Friedman p = {test.p:.2g}; bars join\n"
            f"ranks closer than the critical difference {test.critical_difference:.2f} (Nemenyi, 5 %)",
            fontsize=7,
        )
    return figure


def _groups(ranks: list[float], critical: float) -> list[tuple[int, int]]:
    """First and last of every longest run of ranks that spans less than the critical difference."""
    groups: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(i for i in range(first, len(ranks)) if ranks[i] - ranks[first] < critical)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups
