"""Words in figures: legends in as many columns as fit, notes below, and figures as high as both leave room for."""

from __future__ import annotations

from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

from moerank.figures.style import WIDTH

__all__ = ["fit_height", "lines_of", "put_legend", "put_note", "shorten"]

LEGEND_SIZE = NOTE_SIZE = 6
MOST_COLUMNS = 4
OVER = 0.25
"""Inches that a legend begins left of its panels, above the numbers of the y axis."""

LEGEND_WIDTH = WIDTH - 0.65 + OVER
"""Inches of a legend at most."""

NOTE_WIDTH = WIDTH - 0.15
LONGEST = 30


def lines_of(label: str) -> int:
    """Return the number of lines of a folded label."""
    return 1 + label.count("\n")


def shorten(name: str) -> str:
    """Leave out the end of a name that would take most of the figure."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def put_legend(place: Axes, lines: Axes, title: str = "") -> None:
    """Put the legend of what `lines` shows above `place`, in as many columns as the names leave room for."""
    handles, labels = lines.get_legend_handles_labels()
    figure = place.get_figure(root=True)
    assert figure is not None
    for columns in range(min(len(labels), MOST_COLUMNS), 0, -1):
        legend = place.legend(
            handles,
            [fill(label, 44) for label in labels],
            loc="lower left",
            bbox_to_anchor=(0.0, 0.0),
            bbox_transform=place.transAxes + ScaledTranslation(-OVER, 0.0, figure.dpi_scale_trans),
            title=title or None,
            title_fontproperties={"size": 7, "weight": "bold"},
            alignment="left",
            ncols=columns,
            fontsize=LEGEND_SIZE,
            handlelength=2.9,
            handletextpad=0.6,
            labelspacing=0.3,
            columnspacing=0.8,
            borderaxespad=0.0,
            borderpad=0.2,
        )
        if legend.get_window_extent().width <= LEGEND_WIDTH * figure.dpi:
            break


def put_note(figure: Figure, text: str) -> None:
    """Write what the figure leaves out below it; an empty text is no note."""
    if not text:
        return
    note = figure.supxlabel("", x=0.02, ha="left", fontsize=NOTE_SIZE, color="0.3")
    for n_characters in range(100, 40, -2):
        note.set_text(fill(text, n_characters, break_on_hyphens=False))
        if note.get_window_extent().width <= NOTE_WIDTH * figure.dpi:
            break


def fit_height(figure: Figure, axes: Axes, height: float) -> None:
    """Make a figure so high that these axes have a height in inches, whatever legends, names and notes take.

    All that is not axes keeps its height, so that of the axes is linear in the figure's: two layouts tell it.
    """
    layout = figure.get_layout_engine()
    assert layout is not None

    def laid_out(figure_height: float) -> float:
        figure.set_figheight(figure_height)
        layout.execute(figure)
        return axes.get_position().height * figure_height

    high = 4.0 * figure.get_figheight()  # so that nothing collapses
    tall, taller = laid_out(high), laid_out(high + 1.0)
    figure.set_figheight(high + (height - tall) / (taller - tall))
