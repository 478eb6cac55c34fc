"""Shapes: what each feature adds to the score.

What each feature adds to the score, minus the mean over the training documents, the largest spread first. All panels
have one vertical scale, and ticks at the bottom are deciles of the documents.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from moerank.data import PER_QUERY
from moerank.figures import View
from moerank.figures.style import GREY, WIDTH, Style, finished, in_style, put_ticks
from moerank.rankers.shapes import Shape
from moerank.runs.result import Result
from moerank.studies.results import NoResultsError

N_COLUMNS = 3
MOST_PANELS = 18
# Characters over a panel.
LONGEST_TITLE = 18

# Inches of the height of a panel.
PANEL = 0.62

# Largest value over the last decile from which an axis is logarithmic.
LONG_TAIL = 3.0


def shapes_figure(result: Result) -> Figure:
    """Draw the shapes of the chosen member."""
    scaled = "Values are scaled to [0, 1] in each query. " if result.scaling == PER_QUERY else ""
    return figure_of_shapes(
        result.shapes, f"{scaled}{result.problem}, fold {result.fold}: {result.solver}."
    )


def shapes_of_study(view: View) -> Figure:
    """Draw the shapes of the first run with any on the fold, in the order of the solvers."""
    fold = view.fold_of(view.results)
    for run in view.results.first_runs(fold).values():
        if run.shapes:
            return shapes_figure(run)
    raise NoResultsError(f"no solver adds up functions of features on fold {fold} of {view.where}")


def figure_of_shapes(shapes: Sequence[Shape], note: str = "") -> Figure:
    """Return a figure with a panel for each function, steps of one feature first, and maps of two as shades of grey."""
    shown = sorted(shapes[:MOST_PANELS], key=lambda shape: len(shape.features))
    values = np.concatenate([shape.values for shape in shown])
    low, high = min(values.min(), 0.0), max(values.max(), 0.0)
    margin = 0.08 * (high - low) or 1.0
    with in_style():
        figure = Figure(figsize=(WIDTH, 2.0), layout="constrained")
        panels = figure.subplots(-(-len(shown) // N_COLUMNS), N_COLUMNS, squeeze=False).ravel()
        image, most = (
            None,
            max((np.abs(s.values).max() for s in shown if len(s.features) == 2), default=0.0),
        )
        for number, (axes, shape) in enumerate(zip(panels, shown, strict=False)):
            axes.set_title(
                _title(shape), loc="left", fontsize=6.5 - 0.5 * len(shape.features), pad=2
            )
            axes.tick_params(labelsize=5, length=2, pad=1.5)
            if len(shape.features) == 2:
                image = _put_map(axes, shape, most)
                continue
            axes.set_ylim(low - margin, high + margin)
            _put_steps(axes, shape)
            if number % N_COLUMNS:
                axes.set_yticklabels([])
        for axes in panels[len(shown) :]:
            axes.set_axis_off()
        if image is not None:
            bar = figure.colorbar(
                image, ax=panels.tolist(), location="bottom", aspect=50, shrink=0.6
            )
            bar.ax.tick_params(labelsize=5)
        figure.supylabel("Added to the score", fontsize=7)
        below = _note(len(shapes) - len(shown), note, maps=image is not None)
        return finished(figure, panels[0], PANEL, _finding(shapes), below)


def _put_steps(axes: Axes, shape: Shape) -> None:
    """Draw a step function with its zero line, and the deciles of its feature at the bottom."""
    (cuts,), (deciles,) = shape.thresholds, shape.deciles
    edges = [min(deciles[0], *cuts), *cuts, max(deciles[-1], *cuts)]
    axes.stairs(shape.values, edges, baseline=0.0, fill=True, color="0.85")
    axes.stairs(shape.values, edges, baseline=None, color="black", linewidth=1.0)
    axes.axhline(0.0, color=GREY, linewidth=0.5)
    axes.plot(
        deciles,
        np.zeros(len(deciles)),
        "|",
        color="black",
        markersize=4,
        transform=axes.get_xaxis_transform(),
    )
    if edges[0] >= 0.0 and edges[-1] > LONG_TAIL * deciles[-2]:
        least = min(edge for edge in edges if edge > 0.0)
        near_zero: Style = {} if edges[0] else {"linthresh": 10.0 ** np.ceil(np.log10(least))}
        axes.set_xscale("symlog" if near_zero else "log", **near_zero)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.locator_params(axis="x", numticks=3)
        axes.minorticks_off()  # they look like deciles
    else:
        span = 2.0 * (deciles[-2] - deciles[1]) or edges[-1] - edges[0]
        axes.set_xlim(max(edges[0], deciles[1] - span), min(edges[-1], deciles[-2] + span))
        put_ticks(axes, nbins=3, integer=False)
    put_ticks(axes, "y", 3, integer=False)


def _put_map(axes: Axes, shape: Shape, most: float) -> AxesImage:
    """Draw the values of two features in shades of grey, the second one upwards, with their thresholds."""
    values = np.reshape(shape.values, shape.n_bins).T
    image = axes.imshow(values, cmap="Greys", vmin=-most, vmax=most, origin="lower", aspect="auto")
    for axis, cuts in zip((axes.xaxis, axes.yaxis), shape.thresholds, strict=True):
        shown = np.unique(np.linspace(0, len(cuts) - 1, 3).round().astype(int))
        digits = 1 - int(np.floor(np.log10(np.ptp(cuts) or abs(cuts[0]) or 1.0)))
        axis.set_ticks(shown + 0.5, [f"{round(cuts[cut], digits):g}" for cut in shown])
    return image


def _title(shape: Shape) -> str:
    """Return the names of the features, shortened to fit over a panel."""
    most = LONGEST_TITLE if len(shape.features) == 1 else (LONGEST_TITLE - len(" × ")) // 2
    return " × ".join(
        name if len(name) <= most else f"{name[: most - 1]}…" for name in shape.features
    )


def _finding(shapes: Sequence[Shape]) -> str:
    """Return the features that move the score most, in words."""
    first, *others = map(_title, shapes[:3])
    then = f", then {' and '.join(others)}" if others else ""
    return f"{first} moves the score most{then}"


def _note(n_hidden: int, note: str, *, maps: bool) -> str:
    lines = (
        "The mean over the training documents is subtracted. Ticks at the bottom mark their deciles.",
        "Maps show what two features add beyond their own steps; the second one runs upwards."
        if maps
        else "",
        f"{n_hidden} with a smaller spread are left out." if n_hidden else "",
        note,
    )
    return " ".join(filter(None, lines))
