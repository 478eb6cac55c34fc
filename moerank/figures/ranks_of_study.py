"""Demšar's diagram: mean ranks of searches over problems, with bars over groups that do not differ significantly."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.figures.panels import ROW
from moerank.figures.style import (
    GREY,
    NOTE_SIZE,
    finish_figure,
    one_panel,
    put_ticks,
    rename_solvers,
)
from moerank.studies.searches import SearchStudy

# Largest number of searches in the diagram, those with the best ranks; more names leave no room for the axis.
MAX_RANKED = 16

# Distance of the bars, in inches.
BAR_DISTANCE = 0.05


def ranks_figure(study: SearchStudy, **options: object) -> Figure:
    """Draw the mean ranks of searches over all problems, by the medians of their hypervolume shares.

    An axis of ranks has a line to each name, and bars join groups that do not differ significantly (Demšar, 2006).
    """
    names, test = study.ranks(tested=True)
    ranks = test.ranks[:MAX_RANKED].tolist()
    groups = rank_groups(ranks, test.critical_difference)
    figure, axes = one_panel(2.0)
    height = ROW * ((len(ranks) + 1) // 2 + 1) + BAR_DISTANCE * (len(groups) + 1)
    for index, (best, worst) in enumerate(groups, start=1):
        ends = ranks[best] - 0.05, ranks[worst] + 0.05
        y, label = BAR_DISTANCE * index, f"_bar {index}"
        axes.plot(ends, [y, y], color=GREY, linewidth=2.0, solid_capstyle="butt", label=label)
    _put_names(axes, names, ranks, height)
    axes.set(xlim=(1.0, ranks[-1]), ylim=(height, 0.0), yticks=[])
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.spines["top"].set_visible(True)
    axes.xaxis.tick_top()
    put_ticks(axes, "x", 3)
    note = (
        f"1 is best. Friedman p = {test.p:.2g}; "
        f"critical difference {test.critical_difference:.2f} (Nemenyi, 5 %)."
    )
    if len(names) > len(ranks):
        note += f" {len(names) - len(ranks)} more searches rank behind."
    title = f"Mean ranks by median hypervolume share on {test.n_blocks} problems"
    return finish_figure(figure, axes, height, title, note)


def _put_names(axes: Axes, names: Sequence[str], ranks: Sequence[float], height: float) -> None:
    """Draw a line from each rank to its name: the better half on the left, the best one on top."""
    n_left = (len(ranks) + 1) // 2
    for index, (name, rank) in enumerate(zip(names, ranks, strict=False)):
        if index < n_left:
            end, side, row = 1.0, "right", n_left - index
        else:
            end, side, row = ranks[-1], "left", index - n_left + len(ranks) % 2
        y = height - ROW * row
        axes.plot([rank, rank, end], [0.0, y, y], color="black", linewidth=0.6, label=name)
        label = f" {rename_solvers(name)} ({rank:.2f}) "
        axes.text(end, y, label, ha=side, va="center", fontsize=NOTE_SIZE)


def rank_groups(ranks: list[float], critical: float) -> list[tuple[int, int]]:
    """Return the best and worst rank of each maximal group that spans less than the critical difference."""
    groups: list[tuple[int, int]] = []
    for best, rank in enumerate(ranks):
        worst = max(i for i in range(best, len(ranks)) if ranks[i] - rank < critical)
        if worst > best and (not groups or worst > groups[-1][1]):
            groups.append((best, worst))
    return groups
