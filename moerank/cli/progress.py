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
    RenderableColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from moerank.cli.messages import is_quiet, keep, printable
from moerank.data.read.files import reading_progress
from moerank.studies.study import Cell

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


class _Shown:
    """Bars on a terminal of standard error, else lines, and neither with --quiet.

    `columns` returns those of the bars, which take the whole width of a terminal that is narrower than `room`.
    """

    def __init__(self, room: int, columns: Callable[[bool], Iterable[ProgressColumn]]) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        narrow = self._console.width < room
        self._bars = Progress(*columns(narrow), console=self._console, expand=narrow)
        self._on_terminal = self._console.is_terminal and not is_quiet()

    def _say(self, line: str) -> None:
        """Print a line where there are no bars, and append it to the file of --log."""
        keep(line)
        if not is_quiet() and not self._on_terminal:
            self._console.print(printable(line), soft_wrap=True)

    def __enter__(self) -> Self:
        if self._on_terminal:
            self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._on_terminal:
            self._bars.stop()


def _texts(source: str, *, shortened: bool = False) -> TextColumn:
    """Return a column of texts, which are cut if the terminal is too narrow."""
    column = Column(no_wrap=True, overflow="ellipsis", ratio=1) if shortened else None
    return TextColumn(source, markup=False, table_column=column)


class CellProgress(_Shown):
    """Progress of a study, with the cell that runs: a bar on a terminal, else a line per cell.

    Inside a ``with``, `started` is called when a cell begins, and ``progress(cell, succeeded)`` when it ends. `states`
    are "finished", "failed" or "open" at the start, and ``cost(cell)`` the processor seconds of a finished cell.
    """

    def __init__(self, states: Mapping[Cell, str], cost: Callable[[Cell], float]) -> None:
        super().__init__(100, self._columns)
        self._bars.expand = True
        self._states, self._cost = states, cost
        self._task = self._bars.add_task("", total=len(states))
        self._done = self._failed = 0
        self._running: list[Cell] = []
        self._left = TimeLeft(cell for cell, state in states.items() if state == "open")
        self._begin = monotonic()
        self._end: float | None = None

    def _columns(self, narrow: bool) -> Iterable[ProgressColumn]:
        wide = not narrow
        yield from [TextColumn("cells")] * wide
        yield BarColumn(bar_width=20 if wide else 8)
        yield MofNCompleteColumn()
        yield _texts("{task.description}", shortened=True)
        yield from (TimeElapsedColumn(), TextColumn("elapsed")) * wide
        yield RenderableColumn(self)  # as `__rich__` has it at each refresh

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
            now = monotonic()
            seconds = self._left.seconds(now - self._begin)
            self._end = None if seconds is None else now + seconds
            times = ", ".join(filter(None, (f"{now - self._begin:.1f} s", self._words_left())))
            line = f"{self._done}/{len(self._states)} {cell.label}{': failed' * (not succeeded)} ({times})"
            self._say(line)
        self._describe()

    def _describe(self) -> None:
        words = [f"{self._failed} failed"] if self._failed else []
        if self._running:
            others = f" and {len(self._running) - 1} more" if len(self._running) > 1 else ""
            words.append(self._running[0].label + others)
        self._bars.update(self._task, completed=self._done, description=printable(", ".join(words)))

    def _words_left(self) -> str:
        """Return the estimate, or "" if it was too small or everything is done."""
        left = 0.0 if self._end is None else self._end - monotonic()
        return f"about {in_words(left)} left" if left > 0 else ""

    def __rich__(self) -> Text:
        return Text(self._words_left())

    def __enter__(self) -> Self:
        counts = Counter(self._states.values())
        if counts["open"]:  # one cell of each kind suffices
            finished = {_kind(cell): cell for cell, state in self._states.items() if state == "finished"}
            for cell in finished.values():
                self._left.measured(cell, self._cost(cell))
        if there := counts["finished"] + counts["failed"]:
            failed = f", {counts['failed']} of them failed" if counts["failed"] else ""
            self._say(f"{there} of {len(self._states)} cells are done already{failed}")
        return super().__enter__()


class StageProgress(_Shown):
    """Progress of the stages of a run on standard error: bars on a terminal, else lines.

    A line comes at the end of each stage, and once a minute. It is called as ``progress(stage, fraction, text)`` inside
    a ``with``, and calls `listener` alike. Slow reading of a file is a stage, too.
    """

    def __init__(self, listener: Callable[[str, float, str], object] | None = None) -> None:
        super().__init__(80, self._columns)
        self._listener = listener
        self._tasks: dict[str, TaskID] = {}
        self._stage = self._text = ""
        self._begin, self._next_line = monotonic(), monotonic()
        self._reading: dict[Path, float] = {}
        self._listening = reading_progress(self._read)

    @staticmethod
    def _columns(narrow: bool) -> Iterable[ProgressColumn]:
        yield _texts("{task.description}")
        yield BarColumn(bar_width=4 if narrow else 14)
        yield _texts("{task.fields[text]}", shortened=narrow)
        yield from (TimeElapsedColumn(), TextColumn("elapsed")) * (not narrow)
        yield from (TimeRemainingColumn(), TextColumn("left"))

    def __call__(self, stage: str, fraction: float, text: str) -> None:
        """Show that `fraction` of a stage is done, with a text such as the generation."""
        if self._listener is not None:
            self._listener(stage, fraction, text)
        if stage != self._stage:
            self._finish_line()
        if stage == "verdict":  # at once, as baselines follow that are only looked at
            if not is_quiet():
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
        self._say(line)

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
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        self._listening.__exit__(None, None, None)
        super().__exit__(*exception)
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
