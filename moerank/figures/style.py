"""Style, files and layout of figures: one column wide, and legible in colour, in grey and for colour-blind readers."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, TypeAlias

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import LogLocator, NullFormatter

from moerank.arrays import Bounds, Vector
from moerank.files import replace_file
from moerank.verdict import MARGIN

# Width of a column of a two-column paper, in inches.
WIDTH = 3.4

GREY = "0.45"
CHOSEN = "#D55E00"

# Properties of a line or marker, as matplotlib names them.
Style: TypeAlias = dict[str, Any]

POINTS: Style = {"linestyle": "none"}
STEPS: Style = {"drawstyle": "steps-post"}

# Look of the chosen member.
RING: Style = {
    **POINTS,
    "marker": "o",
    "markersize": 7,
    "fillstyle": "none",
    "color": CHOSEN,
}

# Colours of Okabe and Ito (2008). Markers and dashes differ as well, so that no reader depends on colour.
LINES: dict[str, Style] = {
    "train": dict(color="#0072B2", marker="o", linestyle="-", label="Training"),
    "validation": dict(color="#E69F00", marker="s", linestyle="--", label="Validation"),
    "test": dict(color="#009E73", marker="^", linestyle="-.", label="Test"),
}

_SETTINGS = matplotlib.rc_params_from_file(
    Path(__file__).with_name("figures.mplstyle"), use_default_template=False
)

# File formats, each with the metadata to omit.
FIGURE_FILES: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
}


@dataclass(frozen=True)
class Paper:
    """Settings of a figure for a paper: its title or none, its width in millimetres, and names of solvers."""

    title: bool = True
    width: float = 25.4 * WIDTH
    names: Mapping[str, str] = field(default_factory=dict)


DEFAULT_PAPER = Paper()
_paper = ContextVar("paper", default=DEFAULT_PAPER)


@contextmanager
def in_style(paper: Paper | None = None) -> Iterator[None]:
    """Let matplotlib create and save figures in this style within the context, by default for the same paper."""
    token = _paper.set(paper or _paper.get())
    try:
        with matplotlib.rc_context(_SETTINGS):
            yield
    finally:
        _paper.reset(token)


def rename_solvers(text: str) -> str:
    """Replace the names of solvers in a text by those of the paper.

    >>> with in_style(Paper(names={"gas": "GAS", "gas-e": "GAS-E"})):
    ...     rename_solvers("gas-e is better than gas")
    'GAS-E is better than GAS'
    """
    names = _paper.get().names
    if not names:
        return text
    longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    pattern = rf"(?<![\w-])(?:{longest_first})(?![\w\[-])"
    return re.sub(pattern, lambda match: names[match[0]], text)


def shorten_name(name: str, length: int) -> str:
    """Shorten a name to at most `length` characters.

    >>> shorten_name("price", 5), shorten_name("prices", 5)
    ('price', 'pric…')
    """
    return name if len(name) <= length else f"{name[: length - 1]}…"


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure in the format of the path's ending (png at 200 dpi, pdf or svg), and return the path.

    A missing folder is created. Files of these formats have no date, so that the same figure gives the same bytes. An
    ending that matplotlib does not know raises a ValueError.
    """
    kind = path.suffix.lstrip(".").lower()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, encode(figure, kind))
    return path


def encode(figure: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a file, whose ending is `kind`."""
    content = io.BytesIO()
    with in_style():
        figure.savefig(content, format=kind, metadata=FIGURE_FILES.get(kind))
    return _reproducible(content.getvalue()) if kind == "svg" else content.getvalue()


def _reproducible(svg: bytes) -> bytes:
    """Return SVG with numbered clip paths and rounded coordinates, because layouts differ in their last bits."""
    for number, name in enumerate(dict.fromkeys(re.findall(rb"url\(#(p[0-9a-f]{10})\)", svg))):
        svg = svg.replace(name, b"clip%d" % number)
    svg = re.sub(rb'(<g|<text) id="[^"]*"', rb"\1", svg)
    coordinates = rb' (?:d|x|y|width|height)="[^"]*"|translate\([^)]*\)'
    return re.sub(coordinates, lambda match: re.sub(rb"(\.\d\d)\d+", rb"\1", match[0]), svg)


def new_figure(height: float) -> Figure:
    """Return an empty figure of this height in inches, as wide as the paper asks."""
    return Figure(figsize=(_paper.get().width / 25.4, height), layout="constrained")


def one_panel(height: float) -> tuple[Figure, Axes]:
    """Return a figure as `new_figure` does, and its only axes."""
    figure = new_figure(height)
    return figure, figure.subplots()


NOTE_SIZE = 6
MAX_COLUMNS = 3
_LEGEND: Style = {
    "loc": "outside upper left",
    "title": "title",
    "alignment": "left",
    "fontsize": NOTE_SIZE,
    "title_fontproperties": {"size": 8, "weight": "bold"},
}
# Width that titles, legends and notes leave free, in inches.
MARGINS = 0.1


def put_title(figure: Figure, title: str, lines: Axes | None = None) -> None:
    """Write the title, if the paper has one, and below it the legend of the axes `lines` in as many columns as fit."""
    if not _paper.get().title:
        title = ""
    if lines is None:
        _fit(figure, figure.suptitle("", x=0.02, ha="left", fontsize=8, fontweight="bold"), title)
        return
    handles, labels = lines.get_legend_handles_labels()
    labels = [fill(rename_solvers(label), 52) for label in labels]
    for n_columns in range(MAX_COLUMNS, 0, -1):
        figure.legends.clear()
        legend = figure.legend(handles, labels, ncols=n_columns, **_LEGEND)
        if _fits(figure, legend):
            break
    _fit(figure, legend.get_title(), title)
    legend.get_title().set_visible(bool(title))


def _fit(figure: Figure, label: Text, text: str) -> None:
    """Break the text of a label into lines that fit the figure."""
    for n_characters in range(100, 30, -2):
        label.set_text(fill(rename_solvers(text), n_characters, break_on_hyphens=False))
        if _fits(figure, label):
            break


def _fits(figure: Figure, artist: Artist) -> bool:
    """Whether a title, legend or note is narrower than its figure."""
    return artist.get_window_extent().width <= (figure.get_figwidth() - MARGINS) * figure.dpi


def finish_figure(
    figure: Figure,
    axes: Axes,
    height: float,
    title: str,
    note: str = "",
    lines: Axes | None = None,
) -> Figure:
    """Add the title, the legend of `lines` and the note, make `axes` as high as `height` inches; return the figure."""
    put_title(figure, title, lines)
    if note:
        _fit(figure, figure.supxlabel("", x=0.02, ha="left", fontsize=NOTE_SIZE, color="0.3"), note)
    fit_height(figure, axes, height)
    return figure


ROUND_STEPS = [1, 2, 5, 10]


def put_ticks(
    axes: Axes, axis: Literal["x", "y"] = "x", nbins: int = 10, *, integer: bool = True
) -> None:
    """Put ticks at round numbers, at most `nbins` intervals."""
    axes.locator_params(axis=axis, nbins=nbins, integer=integer, steps=ROUND_STEPS)


# Minimum span of an axis of metric values, so that differences that do not matter in practice do not fill it.
MIN_SPAN = 4.0 * MARGIN


def widen(axes: Axes) -> None:
    """Widen the y axis to at least `MIN_SPAN`, so that it does not magnify small differences of a metric."""
    low, high = axes.get_ylim()
    missing = MIN_SPAN - (high - low)
    if missing > 0:
        axes.set_ylim(low - missing / 2.0, high + missing / 2.0)


def fit_height(figure: Figure, axes: Axes, height: float) -> None:
    """Set the height of a figure so that these axes are `height` inches high.

    Legends and notes have fixed heights. The height of the axes is therefore linear in that of the figure. A single row
    of axes takes all that the figure gains; for more rows a second layout measures the share of one.
    """
    layout = figure.get_layout_engine()
    assert layout is not None

    def laid_out(figure_height: float) -> float:
        figure.set_figheight(figure_height)
        layout.execute(figure)
        return axes.get_position().height * figure_height

    high = 4.0 * figure.get_figheight()  # high enough for every layout
    axes_height, grid = laid_out(high), axes.get_gridspec()
    share = 1.0 if grid is not None and grid.nrows == 1 else laid_out(high + 1.0) - axes_height
    figure.set_figheight(high + (height - axes_height) / share)


def put_log_scale(axes: Axes, amounts: Sequence[float] | Vector, axis: str = "x") -> None:
    """Make an axis logarithmic, with plain numbers at its ticks; `amounts`, its values, are 0 or more."""
    amounts = np.asarray(amounts)
    positive = amounts[amounts > 0.0]
    if not positive.size:
        return
    set_scale, ticks = getattr(axes, f"set_{axis}scale"), getattr(axes, f"{axis}axis")
    if len(positive) == len(amounts):
        set_scale("log")
    else:
        set_scale("symlog", linthresh=positive.min())
    if positive.max() < 100.0 * positive.min():  # powers of ten would give only one or two ticks
        ticks.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ticks.set_major_formatter("{x:g}")
    ticks.set_minor_formatter(NullFormatter())


def axis_limits(values: Mapping[str, Vector], required: Sequence[float] = ()) -> Bounds:
    """Return axis limits for the values of each solver, where larger is better.

    The limits include the best value of every solver and the `required` values. The poorest twentieth of all values,
    such as those of single features, is cut off if it takes more than half of the axis.
    """
    best = [np.nanmax(value) for value in values.values() if np.isfinite(value).any()]
    finite = np.concatenate([*values.values(), np.asarray(required, float)])
    finite = finite[np.isfinite(finite)]
    high = finite.max()
    low = min(max(finite.min(), 2.0 * np.quantile(finite, 0.05) - high), *best, *required)
    margin = 0.05 * (high - low) or 0.01
    return float(low - margin), float(high + margin)


def solvers_outside(values: Mapping[str, Vector], limits: Bounds) -> list[str]:
    """Return the solvers that have values beyond the limits."""
    low, high = limits
    return [solver for solver, value in values.items() if ((value < low) | (value > high)).any()]
