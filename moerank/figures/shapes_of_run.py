"""Shapes: what each feature adds to the score.

What each feature adds to the score, minus the mean over the training documents, the largest spread first. All panels
share one vertical scale, and ticks at the bottom are deciles of the documents.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from moerank.data import PER_QUERY
from moerank.figures import View
from moerank.figures.style import GREY, finish_figure, in_style, new_figure, put_ticks, shorten_name
from moerank.rankers.shapes import Shape
from moerank.runs.result import Result
from moerank.studies.results import NoResultsError

N_COLUMNS = 3
MAX_PANELS = 18
# Maximum length of a panel's title, in characters.
TITLE_LENGTH = 18

# Height of a panel, in inches.
PANEL_HEIGHT = 0.62

# An axis is logarithmic if its largest value exceeds the last decile by more than this factor.
LONG_TAIL = 3.0


def shapes_figure(result: Result) -> Figure:
    """Draw the shape functions of the chosen member."""
    note = f"{result.problem}, fold {result.fold}: {result.solver}."
    if result.scaling == PER_QUERY:
        note = f"Values are scaled to [0, 1] in each query. {note}"
    return figure_of_shapes(result.shapes, note)


def shapes_of_study(view: View) -> Figure:
    """Draw the shape functions of the first run on the fold that has some, in the order of the solvers."""
    fold = view.fold
    for run in view.results.first_runs(fold).values():
        if run.shapes:
            return shapes_figure(run)
    raise NoResultsError(f"no solver has shape functions on fold {fold} of {view.problem_name}")


def figure_of_shapes(shapes: Sequence[Shape], note: str = "") -> Figure:
    """Return a figure with a panel for each function: first steps of one feature, then maps of two in grey."""
    visible = sorted(shapes[:MAX_PANELS], key=lambda shape: len(shape.features))
    with in_style():
        figure = new_figure(2.0)
        n_rows = -(-len(visible) // N_COLUMNS)
        panels = figure.subplots(n_rows, N_COLUMNS, squeeze=False).ravel()
        image = _put_shapes(panels, visible)
        for axes in panels[len(visible) :]:
            axes.set_axis_off()
        if image:
            bar = figure.colorbar(
                image, ax=panels.tolist(), location="bottom", aspect=50, shrink=0.6
            )
            bar.ax.tick_params(labelsize=5)
        figure.supylabel("Added to the score", fontsize=7)
        notes = [
            "0 is the average over the training documents. Ticks at the bottom are their deciles."
        ]
        if image:
            notes.append(
                "Maps show pairwise interactions: what two features add beyond their own steps. "
                "The second feature runs upwards."
            )
        if len(shapes) > len(visible):
            notes.append(
                f"{len(shapes) - len(visible)} functions with a smaller spread are left out."
            )
        below = " ".join(filter(None, [*notes, note]))
        return finish_figure(
            figure, panels[0], PANEL_HEIGHT, "What each feature adds to the score", below
        )


def _put_shapes(panels: Iterable[Axes], shapes: Sequence[Shape]) -> AxesImage | None:
    """Draw each function with one vertical scale for all steps and one of grey for all maps; return a map."""
    values = np.concatenate([shape.values for shape in shapes])
    low, high = min(values.min(), 0.0), max(values.max(), 0.0)
    margin = 0.08 * (high - low) or 1.0
    maps = [shape for shape in shapes if len(shape.features) == 2]
    largest = max((np.abs(shape.values).max() for shape in maps), default=0.0)
    image = None
    for index, (axes, shape) in enumerate(zip(panels, shapes, strict=False)):
        size = 6.5 - 0.5 * len(shape.features)
        axes.set_title(_title(shape), loc="left", fontsize=size, pad=2)
        axes.tick_params(labelsize=5, length=2, pad=1.5)
        if shape in maps:
            image = _put_map(axes, shape, largest)
            continue
        axes.set_ylim(low - margin, high + margin)
        _put_steps(axes, shape)
        if index % N_COLUMNS:
            axes.set_yticklabels([])
    return image


def _put_steps(axes: Axes, shape: Shape) -> None:
    """Draw a step function with its zero line, and the deciles of its feature at the bottom."""
    (cuts,), (deciles,) = shape.thresholds, shape.deciles
    edges = [min(deciles[0], *cuts), *cuts, max(deciles[-1], *cuts)]
    axes.stairs(shape.values, edges, baseline=0.0, fill=True, color="0.85")
    axes.stairs(shape.values, edges, baseline=None, color="black", linewidth=1.0)
    axes.axhline(0.0, color=GREY, linewidth=0.5)
    bottom = axes.get_xaxis_transform()
    zeros = np.zeros(len(deciles))
    axes.plot(deciles, zeros, "|", color="black", markersize=4, transform=bottom)
    if edges[0] >= 0.0 and edges[-1] > LONG_TAIL * deciles[-2]:
        if edges[0] > 0.0:
            axes.set_xscale("log")
        else:
            smallest = min(edge for edge in edges if edge > 0.0)
            axes.set_xscale("symlog", linthresh=10.0 ** np.ceil(np.log10(smallest)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.locator_params(axis="x", numticks=3)
        axes.minorticks_off()  # they look like deciles
    else:
        span = 2.0 * (deciles[-2] - deciles[1]) or edges[-1] - edges[0]
        axes.set_xlim(max(edges[0], deciles[1] - span), min(edges[-1], deciles[-2] + span))
        put_ticks(axes, nbins=3, integer=False)
    put_ticks(axes, "y", 3, integer=False)


def _put_map(axes: Axes, shape: Shape, largest: float) -> AxesImage:
    """Draw the values of two features in shades of grey, the second one upwards, with their thresholds."""
    values = np.reshape(shape.values, shape.n_bins).T
    image = axes.imshow(
        values, cmap="Greys", vmin=-largest, vmax=largest, origin="lower", aspect="auto"
    )
    for axis, cuts in zip((axes.xaxis, axes.yaxis), shape.thresholds, strict=True):
        ticks = np.unique(np.linspace(0, len(cuts) - 1, 3).round().astype(int))
        digits = 1 - int(np.floor(np.log10(np.ptp(cuts) or abs(cuts[0]) or 1.0)))
        axis.set_ticks(ticks + 0.5, [f"{round(cuts[tick], digits):g}" for tick in ticks])
    return image


def _title(shape: Shape) -> str:
    """Return the names of the features, shortened to fit over a panel."""
    length = TITLE_LENGTH
    if len(shape.features) == 2:
        length = (TITLE_LENGTH - len(" × ")) // 2
    return " × ".join(shorten_name(name, length) for name in shape.features)
