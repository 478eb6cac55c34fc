"""What the command line prints: the frame of its tables, which are in a file for each command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from moerank.cli.messages import printable

__all__ = ["FittedTable", "new_table", "output", "say"]

PLAIN_WIDTH = 120
"""Columns where the output is a file or a pipe, which have no width of their own."""


WIDEST = 30
"""Columns of a terminal that a column of a table is given; longer texts are broken."""

GAP = 2
"""Columns between two columns of a table."""


def output() -> Console:
    """Return the console of standard output."""
    plain: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
    console = Console(**plain)
    return console if console.is_terminal else Console(**plain, width=PLAIN_WIDTH)


def say(console: Console, text: str) -> None:
    """Print a paragraph, broken between words on a terminal; files and pipes get it as one line."""
    console.print(printable(text), soft_wrap=not console.is_terminal)


def new_table(title: str | None) -> FittedTable:
    """Return an empty table, whose cells show what commands a terminal instead of doing it."""
    return FittedTable(None if title is None else printable(title))


class FittedTable:
    """A table that is readable on any terminal: what does not fit beside each other stands below each other.

    The first column is repeated in every part. Columns whose heads begin with the same line stay together where there
    is room for them.

    Parameters
    ----------
    title : str, optional
    """

    def __init__(self, title: str | None) -> None:
        self._title = title
        self._columns: list[tuple[str, Literal["left", "right"]]] = []
        self._rows: list[tuple[list[str], str | None]] = []
        self._sections: set[int] = set()

    def add_column(self, head: str, *, justify: Literal["left", "right"] = "left") -> None:
        """Add a column."""
        self._columns.append((printable(head), justify))

    def add_row(self, *cells: str, style: str | None = None) -> None:
        """Add a row of texts, which may come from files."""
        self._rows.append(([printable(cell) for cell in cells], style))

    def add_section(self) -> None:
        """Put a line below the last row."""
        self._sections.add(len(self._rows) - 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the parts that fit."""
        for number, columns in enumerate(self._parts(options.max_width)):
            if number:
                yield ""
            yield self._part(columns, self._title if number == 0 else None)

    def _parts(self, width: int) -> list[list[int]]:
        """Return the columns of each part."""
        groups: list[list[int]] = []
        for column in range(1, len(self._columns)):
            first = self._head(column).partition("\n")
            together = groups and first[1] and self._head(groups[-1][-1]).partition("\n")[0] == first[0]
            if together and self._width([0, *groups[-1], column]) <= width:
                groups[-1].append(column)
            else:
                groups.append([column])
        parts: list[list[int]] = [[0]]
        for group in groups:
            if len(parts[-1]) > 1 and self._width([*parts[-1], *group]) > width:
                parts.append([0])
            parts[-1] += group
        return parts

    def _width(self, columns: Sequence[int]) -> int:
        wishes = [self._longest(column) if column == 0 else min(self._longest(column), WIDEST) for column in columns]
        return sum(wishes) + GAP * (len(columns) - 1)

    def _longest(self, column: int) -> int:
        lines = [line for row, _ in self._rows if column < len(row) for line in row[column].splitlines()]
        return max(map(cell_len, [*self._head(column).splitlines(), *lines]), default=0)

    def _head(self, column: int) -> str:
        return self._columns[column][0]

    def _part(self, columns: Sequence[int], title: str | None) -> Table:
        table = Table(
            title=title,
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            padding=(0, 0, 0, 1),
            show_edge=False,
            pad_edge=False,
        )
        for column in columns:
            head, justify = self._columns[column]
            table.add_column(head, justify=justify, no_wrap=column == 0)
        for number, (cells, style) in enumerate(self._rows):
            shown = [cells[column] if column < len(cells) else "" for column in columns]
            table.add_row(*shown, style=style, end_section=number in self._sections)
        return table
