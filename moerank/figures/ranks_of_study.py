"""Critical differences: mean ranks of the solvers, with bars that join indistinguishable ones.

Mean ranks of the solvers over folds; bars join solvers that do not differ significantly.
"""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.figures import View
from moerank.figures.panels import named, rows_figure
from moerank.figures.style import GREY, finished
from moerank.studies.results import solver_ranks

BAR = 0.055
"""Width of a bar as a share of the axes."""


def ranks_figure(view: View) -> Figure:
    """Draw the mean ranks of at least three solvers over the folds of one or all problems, the best first.

    Bars beside the names join solvers whose ranks are closer than the critical difference.
    """
    solvers, test = solver_ranks(view.results, view.metric)
    n = len(solvers)
    values = test.ranks
    groups = _groups(values.tolist(), test.critical_difference)
    names = [f"{solver} ({rank:.2f})" for solver, rank in zip(solvers, values, strict=True)]
    figure, axes, bars, y = rows_figure(names, 0.05 + BAR * len(groups))
    axes.hlines(y, 0.4, values, color="0.85", linewidth=0.5, zorder=0)
    axes.plot(values, y, "o", color="black", markersize=3, label="mean rank", clip_on=False)
    for number, (first, last) in enumerate(groups):
        ends = y[first] - 0.03, y[last] + 0.03
        bars.plot([number, number], ends, color=GREY, linewidth=2.0, solid_capstyle="butt")
    bars.set_xlim(-0.7, max(len(groups), 1) - 0.3)
    axes.set(xlim=(0.4, 1.02 * max(values) + 0.4), xlabel="Mean rank (1 is best)")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
    folds = f"{test.n_blocks} folds of {view.problem.name}" if view.problem else f"{test.n_blocks} folds"
    less = "" if groups == [(0, n - 1)] else f"smaller than {test.critical_difference:.2f} mean ranks "
    unranked = named("Not ranked", [solver for solver in view.results.solvers if solver not in solvers])
    note = (
        f"Ranks by {view.metric}; they span {values[-1] - values[0]:.2f}, the critical difference is "
        f"{test.critical_difference:.2f} (Nemenyi, 5 %); Friedman p = {test.p:.2g}. {unranked}"
    )
    finding = f"No difference {less}between {n} solvers is detected on {folds}"
    return finished(figure, axes, axes.get_ylim()[0], finding, note.strip())


def _groups(ranks: list[float], critical: float) -> list[tuple[int, int]]:
    """Return the first and last of each maximal group of ranks that spans less than the critical difference."""
    groups: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(i for i in range(first, len(ranks)) if ranks[i] - ranks[first] < critical)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups
