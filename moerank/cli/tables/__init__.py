"""What the command line prints: the frame of its tables, which are in a file for each command."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from moerank.cli.messages import printable

__all__ = ["new_table", "output"]

PLAIN_WIDTH = 120
"""Columns where the output is a file or a pipe, which have no width of their own."""


def output() -> Console:
    """Return the console of standard output."""
    plain: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
    console = Console(**plain)
    return console if console.is_terminal else Console(**plain, width=PLAIN_WIDTH)


def new_table(title: str | None) -> Table:
    """Return an empty table, whose cells show what commands a terminal instead of doing it."""
    return _Table(
        title=None if title is None else printable(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        show_edge=False,
        pad_edge=False,
    )


class _Table(Table):
    """A table of texts that come from files."""

    def add_row(self, *cells: Any, **settings: Any) -> None:
        super().add_row(*(printable(cell) if isinstance(cell, str) else cell for cell in cells), **settings)
