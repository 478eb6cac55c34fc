"""Words in figures: how wide they are, where they break, legends that fit, and notes below."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.transforms import blended_transform_factory

from moerank.figures.style import WIDTH

__all__ = [
    "folded",
    "legend_height",
    "lines_of",
    "note_height",
    "put_legend",
    "put_note",
    "shorten",
    "width_of",
]

LEGEND_SIZE = 6
LEGEND_LINE = 0.125
"""Inches from one line of a legend to the next."""

HANDLE = 0.24
"""Inches of line beside each name."""

MOST_COLUMNS = 4
NOTE_SIZE = 6
NOTE_WIDTH = WIDTH - 0.15
LEFT = 0.2
"""Inches from the left edge to legends, which leave room for the name of the y axis."""

LONGEST = 30

DPI = 1200.0
"""Dots to the inch in which letters are measured, so fine that rounding to dots does not matter."""


def width_of(text: str, size: float, weight: str = "normal") -> float:
    """Return the inches that a line of text takes in a font of this size and weight."""
    font = get_font(findfont(FontProperties(weight=weight)))
    font.set_size(size, DPI)
    font.set_text(text.replace("\n", " "))
    return float(font.get_width_height()[0]) / 64.0 / DPI  # it counts in 64ths of a dot


def folded(label: str, size: float, width: float, *, at_hyphens: bool = True, weight: str = "normal") -> str:
    """Break a label into lines that take at most `width` inches."""
    full = width_of(label, size, weight)
    if full <= width:
        return label
    n_characters = int(len(label) * width / full) + 8
    while n_characters > 1:
        lines = wrap(label, n_characters, break_on_hyphens=at_hyphens)
        if max(width_of(line, size, weight) for line in lines) <= width:
            break
        n_characters -= 1
    return "\n".join(lines)


def lines_of(label: str) -> int:
    """Return the number of lines of a folded label."""
    return 1 + label.count("\n")


def shorten(name: str) -> str:
    """Leave out the end of a name that would take most of the figure."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def legend_height(labels: Sequence[str], title: str = "") -> float:
    """Return the inches that `put_legend` takes for these labels."""
    tallest = max(sum(map(lines_of, column)) for column in _columns(labels))
    return LEGEND_LINE * tallest + (0.17 if title else 0.03)


def put_legend(place: Axes, lines: Axes, title: str = "") -> None:
    """Put the legend of what `lines` shows into `place`, in as many columns as the names leave room for."""
    handles, labels = lines.get_legend_handles_labels()
    columns = _columns(labels)
    figure = lines.get_figure(root=True)
    if figure is None:
        raise ValueError("axes without a figure have no legend")
    legend = place.legend(
        handles,
        [name for column in columns for name in column],
        loc="lower left",
        bbox_to_anchor=(LEFT, 0.0),
        bbox_transform=blended_transform_factory(figure.dpi_scale_trans, place.transAxes),
        title=title or None,
        title_fontproperties={"size": 7, "weight": "bold"},
        alignment="left",
        ncols=len(columns),
        fontsize=LEGEND_SIZE,
        handlelength=HANDLE * 72.0 / LEGEND_SIZE,
        handletextpad=0.6,
        labelspacing=0.3,
        columnspacing=0.8,
        borderaxespad=0.0,
        borderpad=0.0,
    )
    legend.set_in_layout(False)  # its row is as high as it needs


def note_height(text: str) -> float:
    """Return the inches that `put_note` takes."""
    return 0.05 + 0.1 * lines_of(folded(text, NOTE_SIZE, NOTE_WIDTH, at_hyphens=False)) if text else 0.0


def put_note(figure: Figure, text: str) -> None:
    """Write what the figure leaves out below it; an empty text is no note."""
    if text:
        figure.supxlabel(
            folded(text, NOTE_SIZE, NOTE_WIDTH, at_hyphens=False), x=0.02, ha="left", fontsize=NOTE_SIZE, color="0.3"
        )


def _columns(labels: Sequence[str]) -> list[list[str]]:
    """Divide the labels of a legend into as many columns as there is room for, as matplotlib does.

    Labels that are wider than the page are broken into lines.
    """
    names = [folded(label, LEGEND_SIZE, WIDTH - LEFT - HANDLE - 0.2) for label in labels]
    widths = [max(width_of(line, LEGEND_SIZE) for line in name.split("\n")) for name in names]
    for number in range(max(1, min(len(names), MOST_COLUMNS)), 1, -1):
        columns = np.array_split(np.arange(len(names)), number)
        if sum(HANDLE + 0.14 + max(widths[i] for i in column) for column in columns) <= WIDTH - LEFT + 0.07:
            return [[names[i] for i in column] for column in columns]
    return [names]
