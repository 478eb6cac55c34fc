"""Front: number of features against the metric on training, validation and test queries."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.figures.figure import RunFigure
from moerank.figures.notes import title_of
from moerank.figures.style import CHOSEN, GREY, LINES, WIDTH, Style, in_style, put_note
from moerank.studies.result import PARTS, Member, Result

__all__ = ["FIGURE"]

_DASHES = (":", (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2)))


def front_figure(result: Result) -> Figure:
    """Draw the number of features against the metric, for the same members on all three parts.

    If the search did not minimise the number of features, the first other objective takes its place. Horizontal lines
    are the test values of all features, FSMRank and LambdaMART. The band around the test values is the confidence
    interval of their differences from all features: a member whose band meets that line is not shown to differ. The
    chosen member has a grey bar. Members of more than two objectives are points.
    """
    metric, counted = result.metrics[0], _counted(result)
    title = title_of(counted, metric)
    several = len(set(result.objectives) - {counted, "error"}) > 0
    note = f"Searched: {', '.join(result.objectives)}. Shown: {title.lower()} and {metric}." if several else ""
    with in_style():
        figure = Figure(figsize=(WIDTH, 3.25 if note else 3.1), layout="constrained")
        axes = figure.subplots()
        front = sorted(result.front, key=lambda member: _amount(member, counted))
        x = [_amount(member, counted) for member in front]
        for part in PARTS:
            look = LINES[part] | ({"linestyle": "none"} if several else {})
            axes.plot(x, [member.scores[part][metric] for member in front], label=part, **look)
        if not several:
            _put_band(axes, x, front, metric, len(result.queries["test"]))
        references = [baseline for baseline in result.baselines if baseline.name != "best single feature"]
        for baseline, dashes in zip(references, _DASHES, strict=False):
            label = f"{baseline.name} ({_amount(baseline, counted):g}), test"
            axes.axhline(baseline.scores["test"][metric], color=GREY, linewidth=0.9, linestyle=dashes, label=label)
        chosen, value = _amount(result.best, counted), result.best.scores["test"][metric]
        axes.axvline(chosen, color="0.87", linewidth=6, zorder=0, label=f"chosen ({chosen:g})")
        ring: Style = {"marker": "o", "markersize": 7, "fillstyle": "none", "color": CHOSEN}
        axes.plot([chosen], [value], linestyle="none", label=f"its test value, {value:.3f}", **ring)
        axes.set_title(f"{result.problem}, fold {result.fold}: {result.solver}", wrap=True)
        axes.set_xlabel(title)
        axes.set_ylabel(f"{metric} (higher is better)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=counted == "features", steps=[1, 2, 5, 10]))
        figure.legend(loc="outside upper center", ncols=2, handlelength=2.2, columnspacing=1.0)
        put_note(figure, note)
    return figure


def _counted(result: Result) -> str:
    """Return the objective of the x axis."""
    others = [name for name in result.objectives if name != "error"]
    return "features" if "features" in others or not others else others[0]


def _amount(member: Member, objective: str) -> float:
    return len(member.features) if objective == "features" else member.objectives[objective]


def _put_band(axes: Axes, x: list[float], front: list[Member], metric: str, n_queries: int) -> None:
    """Draw the confidence intervals of the members' differences from all features around their test values."""
    errors = [member.paired_error for member in front]
    if None in errors:
        return
    from scipy import stats  # slow to load

    half = stats.t.ppf(0.975, n_queries - 1) * np.array(errors, float)
    values = np.array([member.scores["test"][metric] for member in front])
    band: Style = {"color": LINES["test"]["color"], "alpha": 0.18, "linewidth": 0, "zorder": 1}
    axes.fill_between(x, values - half, values + half, label="95 % against all features", **band)


FIGURE = RunFigure(front_figure)
