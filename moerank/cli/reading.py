"""Progress of files that take long to read, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from moerank.cli.messages import printable

__all__ = ["PATIENCE", "shown_reading"]

PATIENCE = 2.0
"""Seconds of which nothing is said."""


@contextmanager
def shown_reading(clock: Callable[[], float] = monotonic) -> Iterator[None]:
    """Show how far files have been read, of those that take over `PATIENCE`: a bar on a terminal, else a line each.

    The line is printed when the file has been read. `clock` returns seconds.
    """
    from moerank.data.progress import reading_progress

    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=30), TimeElapsedColumn())
    words = (TextColumn("elapsed"), TimeRemainingColumn(), TextColumn("left"))
    bars = Progress(*columns, *words, console=console, transient=True)
    tasks: dict[Path, TaskID] = {}
    begins: dict[Path, float] = {}

    def show(path: Path, share: float) -> None:
        begin = begins.setdefault(path, clock())
        seconds = clock() - begin
        if share >= 1.0:
            del begins[path]
            if path in tasks:
                bars.remove_task(tasks.pop(path))
            if seconds > PATIENCE:
                console.print(printable(f"read {path.name} ({seconds:.1f} s)"), soft_wrap=True)
        elif seconds > PATIENCE and console.is_terminal:
            if path not in tasks:
                bars.start()
                tasks[path] = bars.add_task(printable(f"reading {path.name}"), total=1.0)
            bars.update(tasks[path], completed=share)

    with reading_progress(show):
        try:
            yield
        finally:
            if console.is_terminal:
                bars.stop()
