"""What reports are made of, before they are written in any format: sections, tables, illustrations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from matplotlib.figure import Figure

__all__ = ["Entry", "Illustration", "Section", "Table", "mark_best", "number", "p_value", "text", "with_error"]


@dataclass
class Entry:
    """One cell of a table.

    Attributes
    ----------
    text : str
    value : float, optional
        What the column is sorted by; None for text.
    best : bool
        Whether it is the best of its column.
    mark : str
        A sign of significance behind the text.
    """

    text: str
    value: float | None = None
    best: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under column heads.

    Attributes
    ----------
    name : str
        A word for files and links.
    caption : str
        A sentence that says what is shown.
    columns : list of str
    rows : list of list of Entry
    note : str
        What the marks mean.
    """

    name: str
    caption: str
    columns: list[str]
    rows: list[list[Entry]] = field(default_factory=list)
    note: str = ""

    def numeric(self) -> list[bool]:
        """Whether each column holds numbers, which stand to the right."""
        return [any(row[column].value is not None for row in self.rows) for column in range(len(self.columns))]

    def marked(self) -> bool:
        """Whether any entry has a mark, which `note` explains."""
        return any(entry.mark for row in self.rows for entry in row)


@dataclass(frozen=True)
class Illustration:
    """A figure, and the sentence that says what it shows."""

    figure: Figure
    caption: str


@dataclass
class Section:
    """A part of a report.

    Attributes
    ----------
    title : str
    paragraphs : list of str
    tables : list of Table
    illustrate : list of callable
        Draw `figures`, once a format asks for them: tables are written without.
    code : str
        Commands, set apart.
    explored : str
        The problem whose fronts a page lets readers explore here; "" for none.
    """

    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    illustrate: list[Callable[[], dict[str, Illustration]]] = field(default_factory=list)
    code: str = ""
    explored: str = ""

    @cached_property
    def figures(self) -> dict[str, Illustration]:
        """The figures by a word for files and links; they are drawn when they are first asked for."""
        return {name: figure for draw in self.illustrate for name, figure in draw().items()}


def text(value: object) -> Entry:
    """Return an entry that is sorted as text."""
    return Entry(str(value))


def number(value: float, digits: int = 4) -> Entry:
    """Return an entry with a fixed number of decimals, empty for NaN."""
    return Entry("" if np.isnan(value) else f"{value:.{digits}f}", None if np.isnan(value) else float(value))


def with_error(mean: float, error: float, digits: int = 4) -> Entry:
    """Return a mean with its standard error; a mean of one value has none."""
    plain = number(mean, digits)
    return plain if np.isnan(error) or np.isnan(mean) else Entry(f"{plain.text} ± {error:.{digits}f}", plain.value)


def p_value(p: float) -> Entry:
    """Return an entry with three decimals; a p value is never printed as nothing."""
    return Entry("< 0.001" if p < 0.0005 else f"{p:.3f}", float(p))


def mark_best(entries: list[Entry], *, largest: bool = True) -> None:
    """Mark the best values of a column, as they are printed: what looks equal is equally good."""
    shown = [(entry, float(entry.text.split()[0])) for entry in entries if entry.value is not None]
    if len(shown) > 1:
        best = (max if largest else min)(value for _, value in shown)
        for entry, value in shown:
            entry.best = value == best
