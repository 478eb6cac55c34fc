"""Progress on standard error, with an estimate of the time that remains."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean
from time import monotonic
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from moerank.cli.messages import is_quiet, keep, printable, remark
from moerank.data.read.files import reading_progress
from moerank.studies.grid import Cell

__all__ = ["PATIENCE", "CellProgress", "StageProgress", "TimeLeft", "compiled", "in_words"]

Kind = tuple[str, str]
"""A problem and a solver. Cells of one kind cost about the same, but kinds differ up to a thousandfold."""


class TimeLeft:
    """Estimate of the time that the remaining cells of a study will take.

    The expected cost of a cell is the mean of the measured costs of its solver on its problem; without any, the mean
    over the measured solvers of the problem, else over all. The speed is the cost of all cells that any process has
    finished since the start, divided by the time since then.
    """

    def __init__(self, left: Iterable[Cell]) -> None:
        self._left = Counter(_kind(cell) for cell in left)
        self._costs: defaultdict[Kind, list[float]] = defaultdict(list)
        self._done = 0.0

    def measured(self, cell: Cell, cost: float) -> None:
        """Record the processor seconds of a cell that was finished before the start."""
        self._costs[_kind(cell)].append(cost)

    def done(self, cell: Cell, cost: float | None) -> None:
        """Count a cell that was done since the start; the cost of a failed cell is None."""
        self._left[_kind(cell)] -= 1
        if cost is not None:
            self.measured(cell, cost)
            self._done += cost

    def seconds(self, elapsed: float) -> float | None:
        """Return the remaining seconds when `elapsed` have passed since the start; None if no cell has finished."""
        if self._done == 0:
            return None
        means = {kind: fmean(costs) for kind, costs in self._costs.items()}
        cost = 0.0
        for kind, n_cells in self._left.items():
            like = [mean for known, mean in means.items() if known[0] == kind[0]]
            cost += n_cells * means.get(kind, fmean(like or means.values()))
        return cost * elapsed / self._done


def in_words(seconds: float) -> str:
    """Return a rounded duration with its unit.

    Examples
    --------
    >>> in_words(38.2), in_words(240.0), in_words(9000.0), in_words(190_000.0)
    ('40 s', '4 min', '2.5 h', '2.2 days')
    """
    if seconds < 90:
        return f"{max(1, round(seconds)) if seconds < 10 else round(seconds, -1):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    value, unit = (seconds / 3600, "h") if seconds < 36 * 3600 else (seconds / 86400, "days")
    return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"


def _kind(cell: Cell) -> Kind:
    return cell.problem.name, cell.solver.label


PATIENCE = 2.0
"""Seconds that reading a file may take before its progress is shown."""


LINE_EVERY = 60.0
"""Seconds between the lines on a stage where there is no terminal."""

ROOM_FOR_STAGES, ROOM_FOR_CELLS = 80, 100
"""Least widths of a terminal for all columns of the bars."""


class CellProgress:
    """Progress of a study, with the cell that runs: a bar on a terminal, else a line per cell.

    Inside a ``with``, `started` is called when a cell begins, and ``progress(cell, succeeded)`` when it ends.

    Parameters
    ----------
    states : mapping of Cell to str
        "finished", "failed" or "open" for each cell at the start.
    cost : callable
        ``cost(cell)`` returns the processor seconds of a finished cell.
    clock : callable
        Returns seconds.
    """

    def __init__(
        self,
        states: Mapping[Cell, str],
        cost: Callable[[Cell], float],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._states, self._cost, self._clock = states, cost, clock
        self._console = _console()
        self._bars, self._lines = _manner(self._console)
        narrow = self._console.width < ROOM_FOR_CELLS
        self._bar = Progress(
            *([] if narrow else [TextColumn("cells")]),
            BarColumn(bar_width=8 if narrow else 20),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False, table_column=_shortened()),
            *([] if narrow else [TimeElapsedColumn(), TextColumn("elapsed")]),
            _Words(self._words_left),
            console=self._console,
            expand=True,
        )
        self._task = self._bar.add_task("", total=len(states))
        self._done = self._failed = 0
        self._running: list[Cell] = []
        self._left = TimeLeft(cell for cell, state in states.items() if state == "open")
        self._begin = clock()
        self._end: float | None = None

    def started(self, cell: Cell) -> None:
        """Name a running cell."""
        self._running.append(cell)
        self._describe()

    def __call__(self, cell: Cell, succeeded: bool) -> None:
        """Count a cell."""
        self._running = [other for other in self._running if other != cell]
        self._done += 1
        self._failed += not succeeded
        if self._states[cell] == "open":
            self._left.done(cell, self._cost(cell) if succeeded else None)
            now = self._clock()
            seconds = self._left.seconds(now - self._begin)
            self._end = None if seconds is None else now + seconds
            self._print(cell, succeeded, now - self._begin)
        self._describe()

    def _describe(self) -> None:
        words = [self._running[0].label] if self._running else []
        words += [f"and {len(self._running) - 1} more"] if len(self._running) > 1 else []
        words = [f"{self._failed} failed,", *words] if self._failed and words else words
        shown = " ".join(words) or (f"{self._failed} failed" if self._failed else "")
        self._bar.update(self._task, completed=self._done, description=printable(shown))

    def _print(self, cell: Cell, succeeded: bool, elapsed: float) -> None:
        state = "" if succeeded else ": failed"
        times = ", ".join(filter(None, (f"{elapsed:.1f} s", self._words_left())))
        line = f"{self._done}/{len(self._states)} {cell.label}{state} ({times})"
        keep(line)
        if self._lines:
            self._console.print(printable(line), soft_wrap=True)

    def _words_left(self) -> str:
        """Return the estimate, or "" if it was too small or everything is done."""
        left = 0.0 if self._end is None else self._end - self._clock()
        return f"about {in_words(left)} left" if left > 0 else ""

    def __enter__(self) -> Self:
        counts = Counter(self._states.values())
        if counts["open"]:  # one cell of each kind suffices
            finished = {_kind(cell): cell for cell, state in self._states.items() if state == "finished"}
            for cell in finished.values():
                self._left.measured(cell, self._cost(cell))
        there = counts["finished"] + counts["failed"]
        if self._bars:
            self._bar.start()
        elif there:
            failed = f", {counts['failed']} of them failed" if counts["failed"] else ""
            remark(f"{there} of {len(self._states)} cells are done already{failed}")
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bars:
            self._bar.stop()


def _console() -> Console:
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def _manner(console: Console) -> tuple[bool, bool]:
    """Return whether progress is shown by bars, and whether by lines; both are False with --quiet."""
    shown = not is_quiet()
    return shown and console.is_terminal, shown and not console.is_terminal


def _shortened() -> Column:
    """Return a column whose text is cut if the terminal is too narrow."""
    return Column(no_wrap=True, overflow="ellipsis", ratio=1)


class _Words(ProgressColumn):
    """A column whose text is computed at each refresh."""

    def __init__(self, words: Callable[[], str]) -> None:
        super().__init__()
        self._words = words

    def render(self, task: Task) -> Text:
        return Text(self._words())


class StageProgress:
    """Progress of the stages of a run on standard error: bars on a terminal, else lines.

    A line comes at the end of each stage, and once a minute. It is called as ``progress(stage, fraction, text)`` inside
    a ``with``, and calls `listener` alike. Slow reading of a file is a stage, too.
    """

    def __init__(self, listener: Callable[[str, float, str], object] | None = None) -> None:
        self._listener = listener
        console = _console()
        narrow = console.width < ROOM_FOR_STAGES
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=4 if narrow else 14),
            TextColumn("{task.fields[text]}", markup=False, table_column=_shortened() if narrow else None),
            *([] if narrow else [TimeElapsedColumn(), TextColumn("elapsed")]),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            expand=narrow,
        )
        self._console = console
        self._on_terminal, self._lines = _manner(console)
        self._tasks: dict[str, TaskID] = {}
        self._stage = self._text = ""
        self._begin, self._next_line = monotonic(), monotonic()
        self._reading: dict[Path, float] = {}
        self._listening = reading_progress(self._read)

    def __call__(self, stage: str, fraction: float, text: str) -> None:
        """Show that `fraction` of a stage is done, with a text such as the generation."""
        if self._listener is not None:
            self._listener(stage, fraction, text)
        if stage != self._stage:
            self._finish_line()
        if stage == "verdict":  # at once, as baselines follow that are only looked at
            if self._on_terminal or self._lines:
                self._console.print(printable(f"verdict: {text}"), soft_wrap=True)
            return
        if stage != self._stage:
            self._stage, self._begin = stage, monotonic()
            self._next_line = self._begin + LINE_EVERY
        self._text = text
        if fraction < 1.0 and monotonic() >= self._next_line:
            self._next_line = monotonic() + LINE_EVERY
            self._print(fraction)
        if not self._on_terminal:
            return
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage.replace("_", " "), total=1.0, text="")
        self._bars.update(self._tasks[stage], completed=fraction, text=printable(text))

    def _finish_line(self) -> None:
        if self._stage:
            self._print()
            self._stage = ""

    def _print(self, fraction: float = 1.0) -> None:
        """Print a line on the stage, with the share that is done and the time that remains."""
        seconds = monotonic() - self._begin
        left = f", about {in_words(seconds * (1.0 - fraction) / fraction)} left" if 0.0 < fraction < 1.0 else ""
        done = f", {fraction:.0%}" if fraction < 1.0 else ""
        line = f"{self._stage.replace('_', ' ')}: {self._text}{done} ({seconds:.1f} s{left})"
        keep(line)
        if self._lines:
            self._console.print(printable(line), soft_wrap=True)

    def _read(self, path: Path, share: float) -> None:
        """Show the progress of reading a file if it takes longer than `PATIENCE`."""
        begin = self._reading.setdefault(path, monotonic())
        if monotonic() - begin > PATIENCE:
            self(f"reading {path.name}", share, f"{share:.0%}")
            self._begin = begin
        if share >= 1.0:
            del self._reading[path]

    def __enter__(self) -> Self:
        self._listening.__enter__()
        if self._on_terminal:
            self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._listening.__exit__(None, None, None)
        if self._on_terminal:
            self._bars.stop()
        self._finish_line()


def compiled(groups: Sequence[str], later: Sequence[str] = ()) -> AbstractContextManager[None]:
    """Compile kernels that are not on disk, on all processors; see `moerank.kernels.ahead.compiled_ahead`."""
    from loky import cpu_count

    from moerank.kernels.ahead import compiled_ahead

    @contextmanager
    def progress() -> Iterator[Callable[[float], None]]:
        with StageProgress() as stages:
            yield partial(stages, "compiling kernels", text="once on this machine")

    return compiled_ahead(groups, later, cpu_count(), progress)
