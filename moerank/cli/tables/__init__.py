"""What the command line prints: the frame of its tables, which are in a file for each command."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["new_table", "output"]

PLAIN_WIDTH = 120
"""Columns where the output is a file or a pipe, which have no width of their own."""


def output() -> Console:
    """Return the console of standard output."""
    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=PLAIN_WIDTH)


def new_table(title: str | None) -> Table:
    """Return an empty table."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        show_edge=False,
        pad_edge=False,
    )
