"""One look for all figures: a column of a paper wide, legible in colour, to the colour-blind, and in grey."""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from moerank.files import replace_file

__all__ = ["CHOSEN", "GREY", "LINES", "WIDTH", "encode", "in_style", "save_figure"]

WIDTH = 3.4
"""Inches of a column of a two-column paper."""

GREY = "0.45"
CHOSEN = "#D55E00"

# Colours of Okabe and Ito (2008); marker and dashes differ as well, so that none depends on colour.
LINES: dict[str, dict[str, Any]] = {
    "train": dict(color="#0072B2", marker="o", linestyle="-"),
    "validation": dict(color="#E69F00", marker="s", linestyle="--"),
    "test": dict(color="#009E73", marker="^", linestyle="-."),
}

_SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "figure.dpi": 200,  # that of the files, or letters would be measured as others than those that are drawn
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.hashsalt": "moerank",  # else every file has its own names inside
    "text.parse_math": False,  # names come from data: a $ in them is a $
}


FORMATS: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
}
"""What files can be written, and what of their metadata is left out."""


def in_style() -> AbstractContextManager[None]:
    """Return a context in which figures are made and saved in this style."""
    return matplotlib.rc_context(_SETTINGS)


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure in the format of the path's ending (png at 200 dpi, pdf, …), and return the path.

    The folder is made if it is not there. Files carry no date, so the same figure gives the same bytes.

    Raises
    ------
    ValueError
        If the ending is no format.
    OSError
        If the file cannot be written.
    """
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise ValueError(f"{path}: a figure's file ends in one of {', '.join('.' + name for name in FORMATS)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, encode(figure, kind))
    return path


def encode(figure: Figure, kind: str) -> bytes:
    """Return the content of a file of one of the `FORMATS`."""
    content = io.BytesIO()
    with in_style():
        figure.savefig(content, format=kind, metadata=FORMATS[kind])
    return _smaller(content.getvalue()) if kind == "svg" else content.getvalue()


def _smaller(svg: bytes) -> bytes:
    """Leave out what is less than a hundredth of a point, and indentation; lines become steps from point to point.

    That halves the file. Sizes of letters are factors, and stay. The layout is not the same to the last bit each time,
    so the names that are made of it become numbers. Names that nothing refers to, and turns by nothing, go.
    """
    for number, name in enumerate(dict.fromkeys(re.findall(rb"url\(#(p[0-9a-f]{10})\)", svg))):
        svg = svg.replace(name, b"clip%d" % number)
    svg = re.sub(rb"\n *(?=<)", b"\n", svg)
    svg = re.sub(rb'(<g|<text) id="[^"]*"', rb"\1", svg)
    svg = re.sub(rb' transform="rotate\(-0 [^)]*\)"', b"", svg)
    svg = re.sub(rb"M [-\d.]+ [-\d.]+ \n(?:L [-\d.]+ [-\d.]+ \n)+", _steps, svg)
    svg = re.sub(
        rb'<g([^>]*)>\n((?:<use [^>]* style="([^"]*)"/>\n)(?:<use [^>]* style="\3"/>\n)*)</g>', _one_style, svg
    )
    places = re.compile(rb' (?:d|x|y|width|height)="[^"]*"|translate\([^)]*\)')
    return places.sub(lambda found: re.sub(rb"(\.\d\d)\d+", rb"\1", found[0]).replace(b" \n", b" "), svg)


def _one_style(group: re.Match[bytes]) -> bytes:
    """Write the style that all markers of a line share once."""
    style = b' style="' + group[3] + b'"'
    return b"<g" + group[1] + style + b">\n" + group[2].replace(style, b"") + b"</g>"


def _steps(path: re.Match[bytes]) -> bytes:
    """Write a line as a point and steps from each point to the next, exact to a hundredth: errors do not add up."""
    values = np.rint(100.0 * np.array(path[0].translate(None, b"ML").split(), float)).astype(int).reshape(-1, 2)
    first, steps = values[0], np.diff(values, axis=0)
    words = [f"h{dx / 100:g}" if dy == 0 else f"l{dx / 100:g} {dy / 100:g}" for dx, dy in steps.tolist()]
    return f"M{first[0] / 100:g} {first[1] / 100:g}{''.join(words)}".replace(" -", "-").encode()
