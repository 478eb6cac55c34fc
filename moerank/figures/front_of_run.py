"""Front: the metric on training, validation and test queries against the number of features."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.figures.panels import axis_title, has_log_axis
from moerank.figures.style import (
    GREY,
    LINES,
    NOTE_SIZE,
    POINTS,
    RING,
    finish_figure,
    one_panel,
    put_log_scale,
    put_ticks,
)
from moerank.runs.result import PARTS, Result

# Markers of the baselines: all features and LambdaMART.
BASELINE_MARKERS = ("D", "v")

# The x axis is logarithmic if the largest baseline exceeds the largest member by more than this factor.
LOG_AXIS_RATIO = 4.0


def front_figure(result: Result) -> Figure:
    """Draw the number of features against the metric, for the same members on all three parts.

    If the search did not minimise the number of features, the first other objective takes its place. Named grey marks
    are the test values of the baselines at their own number of features or cost; a dotted line continues that of all
    features.
    The band around the test values is the confidence interval of their differences from all features, as in a verdict:
    if a member's band meets that line, the test queries cannot tell the two apart. The chosen member has a ring. With
    more than two objectives, the members are points without a line.
    """
    members, baselines = front_frame(result)
    metric, objective = result.metric, _objective_of_axis(result)
    label = axis_title(objective, metric)
    is_curve = set(result.objectives) <= {objective, "error"}
    note = f"{result.problem}, fold {result.fold}: {result.solver}."
    if not is_curve:
        searched = ", ".join(result.objectives)
        note = f"Searched: {searched}. Shown: {label.lower()} and {metric}. {note}"
    figure, axes = one_panel(3.2)
    for part in PARTS:
        look = LINES[part] if is_curve else LINES[part] | POINTS
        axes.plot(members["amount"], members[part], **look)
    if is_curve and members["low"].notna().any():
        reference = baselines["test"].iloc[0]
        axes.fill_between(
            members["amount"],
            reference + members["low"],
            reference + members["high"],
            label="95 % interval, against all features",
            color=LINES["test"]["color"],
            alpha=0.18,
            linewidth=0,
            zorder=1,
        )
    _put_baselines(axes, baselines)
    amount, value = members.loc[result.chosen, ["amount", "test"]]
    axes.plot([amount], [value], **RING, label=f"chosen ({amount:g}), test {value:.3f}")
    axes.set(xlabel=label, ylabel=f"{metric} (higher is better)")
    amounts = [*members["amount"], *baselines["amount"]]
    if has_log_axis(objective) or max(amounts) > LOG_AXIS_RATIO * max(members["amount"]) > 0.0:
        put_log_scale(axes, amounts)
    else:
        put_ticks(axes, integer=objective == "features")
    title = f"{result.best.n_features} of {result.n_allowed} features are chosen"
    if result.verdict:
        title = result.verdict.title
    return finish_figure(figure, axes, 2.0, title, note, axes)


def front_frame(result: Result) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row for each member of the front, the smallest amount first, and a row for each baseline.

    The columns are ``name``, ``amount`` of the objective on the x axis, the metric on ``train``, ``validation`` and
    ``test``, and the differences from all features, ``low`` and ``high``. The index counts the members.
    """
    objective = _objective_of_axis(result)
    rows = []
    for member in [*result.front, *result.baselines]:
        is_size = objective == "features"
        amount = member.n_features if is_size else member.objectives[objective]
        values = [member.scores[part][result.metric] for part in PARTS]
        low, high = member.difference_interval or (np.nan, np.nan)
        rows.append((member.name, amount, *values, low, high))
    frame = pd.DataFrame(rows, columns=["name", "amount", *PARTS, "low", "high"])
    n_members = len(result.front)
    members, baselines = frame[:n_members], frame[n_members:]
    members = members.sort_values("amount", kind="stable")
    return members, baselines[baselines["name"] != "best single feature"]


def _objective_of_axis(result: Result) -> str:
    """Return the number of features, or else the first objective besides the error."""
    objectives = [name for name in result.objectives if name != "error"] or ["features"]
    return "features" if "features" in objectives else objectives[0]


def _put_baselines(axes: Axes, baselines: pd.DataFrame) -> None:
    """Mark each baseline with its name; the first one, of all features, also has a dotted line."""
    best = max(baselines["test"], default=0.0)
    for row, marker in zip(baselines.itertuples(), BASELINE_MARKERS, strict=False):
        point = row.amount, row.test
        axes.plot(*point, marker, color=GREY, label=f"_{row.name}")
        above = row.test == best  # off the line of all features
        axes.annotate(
            f"{row.name} ({row.amount:g})",
            point,
            (6, 4) if above else (6, -4),
            textcoords="offset points",
            ha="right",
            va="bottom" if above else "top",
            fontsize=NOTE_SIZE,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
        )
    if len(baselines):
        value = baselines["test"].iloc[0]
        axes.axhline(value, color=GREY, linewidth=0.7, linestyle=":", zorder=0)
