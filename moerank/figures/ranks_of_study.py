"""Demšar's diagram: mean ranks of searches over problems, with bars that join those that tests cannot tell apart."""

import numpy as np
from matplotlib.figure import Figure

from moerank.figures.panels import ROW
from moerank.figures.style import GREY, NOTE_SIZE, finished, one_panel, put_ticks, renamed
from moerank.studies.searches import SearchStudy

# Largest number of searches in the diagram, those with the best ranks; more names leave no room for the axis.
MOST_RANKED = 16


def ranks_figure(
    study: SearchStudy, problem: str | None = None, count: str = "evaluations"
) -> Figure:
    """Draw the mean ranks of searches over all problems, by the medians of their hypervolume shares.

    An axis of ranks has a line to each name, and bars join groups that do not differ significantly (Demšar, 2006).
    """
    names, test = study.ranks(tested=True)
    n, ranks = min(len(names), MOST_RANKED), test.ranks[:MOST_RANKED]
    groups = _groups(ranks.tolist(), test.critical_difference)
    figure, axes = one_panel(2.0)
    half = (n + 1) // 2
    height = ROW * (half + 1) + 0.05 * (len(groups) + 1)
    for number, (first, last) in enumerate(groups, 1):
        ends = ranks[first] - 0.05, ranks[last] + 0.05
        axes.plot(
            ends,
            [0.05 * number] * 2,
            color=GREY,
            linewidth=2.0,
            solid_capstyle="butt",
            label=f"_bar {number}",
        )
    for number, (name, rank) in enumerate(zip(names[:n], ranks, strict=True)):
        left = number < half
        y, end = (
            height - ROW * (half - number if left else number - half + n % 2),
            1.0 if left else float(ranks[-1]),
        )
        axes.plot([rank, rank, end], [0.0, y, y], color="black", linewidth=0.6, label=name)
        where = {"ha": "right" if left else "left", "va": "center", "fontsize": NOTE_SIZE}
        axes.text(end, y, f" {renamed(name)} ({rank:.2f}) ", where)
    axes.set(xlim=(1.0, ranks[-1]), ylim=(height, 0.0), yticks=[])
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.spines["top"].set_visible(True)
    axes.xaxis.tick_top()
    put_ticks(axes, "x", 3)
    apart = np.abs(test.ranks[:, None] - test.ranks) >= test.critical_difference
    counts = f"{apart.sum() // 2} of {len(names) * (len(names) - 1) // 2} differences are detected"
    numbers = f"Friedman p = {test.p:.2g}; critical difference {test.critical_difference:.2f} (Nemenyi, 5 %)."
    behind = f"{len(names) - n} more searches rank behind." if len(names) > n else ""
    finding = f"Mean ranks by median hypervolume share on {test.n_blocks} problems: {counts}"
    return finished(figure, axes, height, finding, f"1 is best. {numbers} {behind}".strip())


def _groups(ranks: list[float], critical: float) -> list[tuple[int, int]]:
    """Return the first and last rank of each maximal group that spans less than the critical difference."""
    groups: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(i for i in range(first, len(ranks)) if ranks[i] - ranks[first] < critical)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups
