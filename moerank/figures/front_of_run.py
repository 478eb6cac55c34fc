"""Front: the metric on training, validation and test queries against the number of features."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.figures.panels import title_of
from moerank.figures.style import (
    GREY,
    LINES,
    NOTE_SIZE,
    RING,
    Style,
    finished,
    one_panel,
    put_log_scale,
    put_ticks,
)
from moerank.runs.result import PARTS, Member, Result

# Markers of the baselines: all features and LambdaMART; older results have FSMRank as well.
BASELINES = ("D", "v", "P")

# The x axis is logarithmic if the largest baseline exceeds the largest member by more than this factor.
WIDE = 4.0


def front_figure(result: Result) -> Figure:
    """Draw the number of features against the metric, for the same members on all three parts.

    If the search did not minimise the number of features, the first other objective takes its place. Named grey marks
    are the test values of the baselines at their own number of features or cost; a dotted line continues that of all
    features.
    The band around the test values is the confidence interval of their differences from all features, as in a verdict:
    if a member's band meets that line, the test queries cannot tell the two apart. The chosen member has a ring. With
    more than two objectives, the members are points without a line.
    """
    metric, counted = result.metrics[0], _counted(result)
    title = title_of(counted, metric)
    several = len(set(result.objectives) - {counted, "error"}) > 0
    notes = (
        [f"Searched: {', '.join(result.objectives)}. Shown: {title.lower()} and {metric}."]
        if several
        else []
    )
    notes.append(f"{result.problem}, fold {result.fold}: {result.solver}.")
    figure, axes = one_panel(3.2)
    front = sorted(result.front, key=lambda member: _amount(member, counted))
    x = [_amount(member, counted) for member in front]
    for part in PARTS:
        look = LINES[part] | ({"linestyle": "none"} if several else {})
        axes.plot(x, [member.scores[part][metric] for member in front], **look)
    references = [
        baseline for baseline in result.baselines if baseline.name != "best single feature"
    ]
    if not several and any(member.difference_interval for member in front):
        _put_band(axes, x, front, references[0].scores["test"][metric])
    best = max((baseline.scores["test"][metric] for baseline in references), default=0.0)
    for number, (baseline, marker) in enumerate(zip(references, BASELINES, strict=False)):
        amount, value = _amount(baseline, counted), baseline.scores["test"][metric]
        axes.plot([amount], [value], marker, color=GREY, label=f"_{baseline.name}")
        offset, side = (
            ((6, 4), "bottom") if value == best else ((6, -4), "top")
        )  # off the line of all features
        where: Style = {
            "textcoords": "offset points",
            "ha": "right",
            "va": side,
            "fontsize": NOTE_SIZE,
        }
        where["bbox"] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5}
        axes.annotate(f"{baseline.name} ({amount:g})", (amount, value), offset, **where)
        if number == 0:
            axes.axhline(value, color=GREY, linewidth=0.7, linestyle=":", zorder=0)
    chosen, value = _amount(result.best, counted), result.best.scores["test"][metric]
    axes.plot([chosen], [value], **RING, label=f"chosen ({chosen:g}), test {value:.3f}")
    axes.set(xlabel=title, ylabel=f"{metric} (higher is better)")
    amounts = [*x, *(_amount(baseline, counted) for baseline in references)]
    if counted == "cost" or max(amounts) > WIDE * max(x) > 0.0:
        put_log_scale(axes, amounts)
    else:
        put_ticks(axes, integer=counted == "features")
    size = f"{len(result.best.features)} of {result.n_allowed} features are chosen"
    finding = size if result.verdict is None else result.verdict.title
    return finished(figure, axes, 2.0, finding, " ".join(notes), axes)


def _counted(result: Result) -> str:
    """Return the objective of the x axis."""
    others = [name for name in result.objectives if name != "error"]
    return "features" if "features" in others or not others else others[0]


def _amount(member: Member, objective: str) -> float:
    return len(member.features) if objective == "features" else member.objectives[objective]


def _put_band(axes: Axes, x: list[float], front: list[Member], reference: float) -> None:
    """Draw the intervals of the members' differences from all features, whose test value is the `reference`."""
    low, high = (
        reference + np.array([member.difference_interval or (np.nan, np.nan) for member in front]).T
    )
    band: Style = {"color": LINES["test"]["color"], "alpha": 0.18, "linewidth": 0, "zorder": 1}
    axes.fill_between(x, low, high, label="95 % interval, against all features", **band)
