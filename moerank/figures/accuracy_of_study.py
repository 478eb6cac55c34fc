"""Accuracy against number of features, for all solvers of a study and published results.

The test metric of the best ranker (by validation) with at most k features, as a mean over folds and seeds, for the
sizes that all runs offer. In colour: the best solver of each family, by validation.
"""

from collections import defaultdict
from itertools import cycle

import numpy as np

from moerank.arrays import Bounds
from moerank.figures import View
from moerank.figures.panels import (
    Curve,
    Panel,
    Panels,
    best_of_families,
    error_note,
)
from moerank.figures.style import GREY, POINTS, axis_limits, solvers_outside
from moerank.studies.comparison import name_solvers
from moerank.studies.results import (
    NoResultsError,
    Results,
    chosen_solver,
    mean_by_size,
    offers_sizes,
)

# Markers of published results, different from those of solvers.
MARKERS_OF_PUBLISHED = ("*", "h", "d", "8", "H", (4, 1, 0), (6, 1, 0))

# Largest number of published methods that the legend names one by one.
MAX_PUBLISHED = 4


def accuracy_panels(view: View, *, exact: bool = False, limits: Bounds | None = None) -> Panels:
    """Return the mean test metric of the best ranker (by validation) with at most k features.

    With `exact`, the ranker has exactly k features, as in the papers, for the sizes that all runs offer.

    If there are many solvers, the best of each family by validation has a colour, and the others are grey. A ranker
    without selection is a point at its number of features. Published results are grey; a line joins those of one
    method. `limits` of the y axis come from `style.axis_limits` by default; a note names the solvers with values beyond
    them.
    """
    results, metric = view.results, view.metric
    means = results.means()[0][["n_features", f"test {metric}"]].T.to_dict("list")
    best, title = _chosen(results)
    curves, values = {}, {}
    for solver, folds in results.by_solver().items():
        size, value = means[solver]
        values[solver] = np.array([value])
        curve = Curve([size], [value], style=POINTS, drops=True)
        if offers_sizes(folds):
            values[solver] = mean_by_size(folds, "test", metric, exact=exact)
            curve = Curve(
                range(1, len(values[solver]) + 1),
                values[solver],
                ring=(size, value) if solver == best else None,
                ring_label=f"chosen, mean of {solver}",
            )
        curves[solver] = [curve]
    references = _references(view)
    if limits is None:
        limits = axis_limits(values, [value for curve in references for value in curve.y])
    notes = [error_note(results, metric)]
    if references:
        numbers = ", ".join(map(str, results.folds))
        notes.append(f"Published: all folds, by the papers' programs. Ours: fold {numbers}.")
    notes.append(name_solvers("Some values lie beyond the axis", solvers_outside(values, limits)))
    return Panels(
        title=title,
        panels=[Panel(curves, references=references, limits=limits)],
        coloured=best_of_families(results, results.solvers),
        height=2.2,
        labels=("Number of features" if exact else "Number of features, at most", f"Test {metric}"),
        notes=notes,
    )


def _references(view: View) -> list[Curve]:
    """Return a grey curve for each published method; if there are many, the legend does not name them one by one."""
    points = defaultdict(list)
    for entry in sorted(view.published, key=lambda entry: entry.features or 0.0):
        value = entry.value(view.metric)
        if entry.features is not None and value is not None:
            points[f"{entry.method}, published"].append((entry.features, value))
    curves: list[Curve] = []
    for (label, pairs), marker in zip(points.items(), cycle(MARKERS_OF_PUBLISHED), strict=False):
        if len(points) > MAX_PUBLISHED:
            label = "_published" if curves else "published"
        sizes, values = np.transpose(pairs)
        style = {
            "label": label,
            "marker": marker,
            "markersize": 5,
            "color": GREY,
            "linestyle": "-" if len(pairs) > 1 else "none",
            "linewidth": 0.7,
            "zorder": 3,
            "clip_on": False,
        }
        curves.append(Curve(sizes, values, style=style))
    return curves


def _chosen(results: Results) -> tuple[str, str]:
    """Return the solver that validation chooses and the verdict on it, or the reason why there is none."""
    try:
        choice, rivals = chosen_solver(results)
    except NoResultsError as error:
        return "", str(error).capitalize()
    solver = choice["solver"]
    start = f"Validation chooses {solver}. " if rivals else f"{solver}: "
    return solver, f"{start}{choice['verdict'].title}"
