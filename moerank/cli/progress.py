"""Progress on standard error: bars on a terminal, lines elsewhere, and neither with --quiet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from time import monotonic
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from moerank.cli.messages import is_quiet, printable, remark
from moerank.studies.study import Cell


def _text(name: str) -> TextColumn:
    return TextColumn(f"{{task.{name}}}", markup=False)


class _Bars:
    """Bars on a terminal; elsewhere `_line` prints what they tell."""

    def __init__(self, *columns: ProgressColumn) -> None:
        console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._bars = Progress(*columns, console=console, disable=is_quiet() or not console.is_terminal)

    def _line(self, text: str) -> None:
        if self._bars.disable:
            remark(text)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bars.stop()


class CellProgress(_Bars):
    """Progress of a study, with the cells that run: a bar on a terminal, else a line per cell.

    Inside a ``with``, `started` is called when a cell begins, and ``progress(cell, succeeded)`` when it ends. `states`
    are "finished", "failed" or "open" at the start.
    """

    def __init__(self, states: Mapping[Cell, str]) -> None:
        columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(), _text("description")
        super().__init__(*columns)
        self._states, self._counts = states, Counter(states.values())
        self._done = len(states) - self._counts["open"]
        self._running: list[Cell] = []
        self._begin = monotonic()
        self._task = self._bars.add_task("", total=len(states), completed=self._done)

    def started(self, cell: Cell) -> None:
        """Name a running cell."""
        self._running.append(cell)
        self._update()

    def __call__(self, cell: Cell, succeeded: bool) -> None:
        """Count a cell that was open at the start."""
        self._running = [other for other in self._running if other != cell]
        if self._states[cell] == "open":
            self._done += 1
            self._counts["failed"] += not succeeded
            failed = "" if succeeded else ": failed"
            self._line(f"{self._done}/{len(self._states)} {cell.label}{failed} ({monotonic() - self._begin:.1f} s)")
        self._update()

    def _update(self) -> None:
        words = [f"{self._counts['failed']} failed"] if self._counts["failed"] else []
        if self._running:
            others = f" and {len(self._running) - 1} more" if len(self._running) > 1 else ""
            words.append(self._running[0].label + others)
        self._bars.update(self._task, completed=self._done, description=printable(", ".join(words)))

    def __enter__(self) -> Self:
        if self._done:
            failed = f", {self._counts['failed']} of them failed" if self._counts["failed"] else ""
            self._line(f"{self._done} of {len(self._states)} cells are done already{failed}")
        return super().__enter__()


class StageProgress(_Bars):
    """Progress of the stages of a run: a bar each on a terminal, else a line at the end of each.

    It is called as ``progress(stage, fraction, text)`` inside a ``with``.
    """

    def __init__(self) -> None:
        columns = _text("description"), BarColumn(14), TimeElapsedColumn(), TimeRemainingColumn(), _text("fields[text]")
        super().__init__(*columns)
        self._tasks: dict[str, TaskID] = {}
        self._stage = self._shown = ""
        self._begin = monotonic()

    def __call__(self, stage: str, fraction: float, text: str) -> None:
        """Show that `fraction` of a stage is done, with a text such as the generation."""
        if stage == "verdict":  # the command prints it at its end
            return
        if stage != self._stage:
            self._end_stage()
            self._stage, self._begin = stage, monotonic()
        self._shown = text
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(printable(stage.replace("_", " ")), total=1.0, text="")
        self._bars.update(self._tasks[stage], completed=fraction, text=printable(text))

    def _end_stage(self) -> None:
        if self._stage:
            self._line(f"{self._stage.replace('_', ' ')}: {self._shown} ({monotonic() - self._begin:.1f} s)")
            self._stage = ""

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._end_stage()


@contextmanager
def _compiling() -> Iterator[Callable[[float], None]]:
    with StageProgress() as stages:
        yield partial(stages, "compiling kernels", text="once on this machine")


def compiled(groups: Sequence[str], later: Sequence[str] = ()) -> AbstractContextManager[None]:
    """Compile kernels that are not on disk, on all processors; see `moerank.kernels.ahead.compiled_ahead`."""
    from loky import cpu_count

    from moerank.kernels.ahead import compiled_ahead

    return compiled_ahead(groups, later, cpu_count(), _compiling)
