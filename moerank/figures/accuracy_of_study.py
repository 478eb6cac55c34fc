"""Accuracy against number of features, for all solvers of a study and published results.

The test value of the ranker that validation chooses among those with at most that many features, as a mean over folds
and seeds, for the sizes that all runs offer. Solvers that validation does not rank first in their family are grey.
"""

from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.figures import View
from moerank.figures.panels import Look, best_of_families, errors_noted, named, panels_figure
from moerank.figures.style import GREY, RING, Style, beyond, limits_of
from moerank.studies.results import Results, by_validation, mean_by_size, offers_sizes, verdicts

# Markers of published results, different from those of solvers.
PUBLISHED = ("*", "h", "d", "8", "H", (4, 1, 0), (6, 1, 0))

# Largest number of published methods that the legend names one by one.
MOST_PUBLISHED = 4


def accuracy_figure(
    view: View, *, exact: bool = False, limits: tuple[float, float] | None = None
) -> Figure:
    """Draw the test metric of the ranker that validation chooses among those with at most k features, as a mean.

    With `exact`, it has exactly k features, as the papers draw it, where all runs have such a ranker.

    If there are many solvers, the best of each family by validation has a colour, and the others are grey. A ranker
    without selection is a point at its number of features. Published results are grey; a line joins those of one
    method. `limits` of the y axis come from `style.limits_of` by default; a note names the solvers with values beyond
    them.
    """
    by_solver, metric = view.results.by_solver(), view.metric
    means = view.results.means()[0][["n_features", f"test {metric}"]].T.to_dict("list")
    offering = {solver: folds for solver, folds in by_solver.items() if offers_sizes(folds)}
    curves = {
        solver: mean_by_size(folds, "test", metric, exact=exact)
        for solver, folds in offering.items()
    }
    first = next(iter(by_validation(view.results)), None)
    points = {solver: point for solver, point in means.items() if solver not in curves}
    published: dict[str, list[tuple[float, float]]] = {}
    entries = () if view.problem is None else view.problem.published
    for entry in sorted(entries, key=lambda entry: entry.features or 0.0):
        if entry.features is not None and (value := entry.value(metric)) is not None:
            published.setdefault(f"{entry.method}, published", []).append((entry.features, value))
    values = {**curves, **{solver: np.array([value]) for solver, (_, value) in points.items()}}
    folds = ", ".join(map(str, view.results.folds))
    limits = limits or limits_of(
        values, [value for pairs in published.values() for _, value in pairs]
    )

    def draw(look: Look) -> None:
        if look.label in curves:
            look.plot(np.arange(1, len(curves[look.label]) + 1), curves[look.label])
            if look.label == first:
                look.axes.plot(*means[first], label=f"chosen, mean of {first}", **RING)
            return
        size, value = points[look.label]
        look.plot([size], [value], linestyle="none")
        if not look.faint:
            look.axes.hlines(value, 1.0, size, color=look.colour, linewidth=0.5, linestyle=":")

    def prepare(axes: Axes, _: str) -> None:
        for (label, pairs), marker in zip(published.items(), cycle(PUBLISHED), strict=False):
            style: Style = {
                "marker": marker,
                "markersize": 5,
                "color": GREY,
                "linewidth": 0.7,
                "zorder": 3,
            }
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
        labels=("Number of features" + ", at most" * (not exact), f"Test {metric}"),
        notes=[
            errors_noted(view.results, metric),
            f"Published: all folds, by the papers' programs. Ours: fold {folds}."
            if published
            else "",
            named("Some values lie beyond the axis", beyond(values, limits)),
        ],
        prepare=prepare,
    )


def _finding(results: Results) -> str:
    """Return the verdict on the solver that validation chooses."""
    if not (ranked := by_validation(results)):
        return "No solver selects features"
    by = f"{ranked[0]}, chosen by validation" if len(ranked) > 1 else ranked[0]
    return f"{by}: {verdicts(results.among(ranked[:1])).iloc[0]['verdict'].title}"
