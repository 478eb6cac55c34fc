"""Accuracy against number of features, for all solvers of a study and published results.

Test value of the ranker with at most so many features that validation data choose, means over folds and seeds for the
sizes that all runs offer; grey: solvers that are not the best of their family by validation.
"""

from __future__ import annotations

from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.figures import View
from moerank.figures.panels import Look, best_of_families, errors_noted, judged, named, panels_figure
from moerank.figures.style import GREY, Style, beyond, limits_of
from moerank.studies.results import Results, by_validation, mean_by_size, offers_sizes, verdicts

PUBLISHED = ("*", "h", "d", "8", "H", (4, 1, 0), (6, 1, 0))
"""Markers of published results, different from those of solvers."""

MOST_PUBLISHED = 4
"""Largest number of published methods with a name each."""


def accuracy_figure(view: View, *, limits: tuple[float, float] | None = None) -> Figure:
    """Draw the test metric of the rankers with at most k features that validation chooses, means over folds and seeds.

    Of many solvers the best of each family by validation has a colour, and the others are grey. A ranker without
    selection is a point at its number of features. Published results and those of other tools are grey; a line joins
    those of one method. `limits` are those of the y axis, by default from `style.limits_of`; a note names the solvers
    with values beyond them.
    """
    by_solver, metric = view.results.by_solver(), view.metric
    means = {s: (m.mean("n_features")[0], m.mean(f"test {metric}")[0]) for s, m in view.results.means().items()}
    curves = {solver: mean_by_size(folds, "test", metric) for solver, folds in by_solver.items() if offers_sizes(folds)}
    points = {solver: point for solver, point in means.items() if solver not in curves}
    published: dict[str, list[tuple[float, float]]] = {}
    entries = () if view.problem is None else view.problem.published
    for entry in sorted(entries, key=lambda entry: entry.features or 0.0):
        if entry.features is not None and (value := entry.value(metric)) is not None:
            published.setdefault(entry.label, []).append((entry.features, value))
    theirs = any(entry.features is not None for entry in entries)
    values = {**curves, **{solver: np.array([value]) for solver, (_, value) in points.items()}}
    limits = limits or limits_of(values, [value for pairs in published.values() for _, value in pairs])

    def draw(look: Look) -> None:
        if look.label in curves:
            look.plot(np.arange(1, len(curves[look.label]) + 1), curves[look.label])
            return
        size, value = points[look.label]
        look.plot([size], [value], linestyle="none")
        if not look.faint:
            look.axes.hlines(value, 1.0, size, color=look.colour, linewidth=0.5, linestyle=":")

    def prepare(axes: Axes, _: str) -> None:
        for (label, pairs), marker in zip(published.items(), cycle(PUBLISHED), strict=False):
            style: Style = {"marker": marker, "markersize": 5, "color": GREY, "linewidth": 0.7, "zorder": 3}
            line = "-" if len(pairs) > 1 else "none"
            one_name = "published" if label == next(iter(published)) else "_published"
            shown = label if len(published) <= MOST_PUBLISHED else one_name
            axes.plot(*np.transpose(pairs), label=shown, linestyle=line, clip_on=False, **style)
        axes.set_ylim(*limits)

    return panels_figure(
        draw,
        list(by_solver),
        best_of_families(view.results, list(by_solver)),
        finding=_finding(view.results),
        height=2.2,
        labels=("Number of features, at most", f"Test {metric}"),
        notes=[
            errors_noted(view.results, metric),
            "Published values are means over all folds." if theirs and len(view.results.folds) == 1 else "",
            named("Some values lie beyond the axis", beyond(values, limits)),
        ],
        prepare=prepare,
    )


def _finding(results: Results) -> str:
    """Return what the choice of features costs that validation likes best."""
    if not (liked := by_validation(results)):
        return "No solver selects features"
    by = f"{liked[0]}, chosen by validation" if len(liked) > 1 else liked[0]
    return f"{by}: {judged(verdicts(results.among(liked[:1])).iloc[0]['verdict'])}"
