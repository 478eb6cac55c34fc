"""Progress on standard error: bars on a terminal, lines elsewhere, and neither with --quiet."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from rich import progress
from rich.console import Console

from moerank.cli.messages import escape_controls, is_quiet, remark
from moerank.solvers import solver_entry


def _text(name: str) -> progress.TextColumn:
    return progress.TextColumn(f"{{task.{name}}}", markup=False)


class _Bars(progress.Progress):
    """Bars on a terminal; elsewhere `_line` prints the same as text."""

    def __init__(self, *columns: progress.ProgressColumn) -> None:
        console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        super().__init__(
            *columns, console=console, disable=is_quiet.get() or not console.is_terminal
        )

    def _line(self, text: str) -> None:
        if self.disable:
            remark(text)


class CellProgress(_Bars):
    """Progress of a study: a bar with the last cell on a terminal, else a line per cell.

    Use it in a ``with`` block, and call ``progress(cell, succeeded)`` when a cell ends. `states` are the states of the
    cells at the start: "finished", "failed" or "open".
    """

    def __init__(self, states: Mapping[Any, str]) -> None:
        times = progress.TimeElapsedColumn(), progress.TimeRemainingColumn()
        count = progress.BarColumn(), progress.MofNCompleteColumn()
        super().__init__(*count, *times, _text("description"))
        self._open = {cell for cell, state in states.items() if state == "open"}
        n_done = len(states) - len(self._open)
        self.add_task("", total=len(states), completed=n_done)
        if n_done:
            self._line(f"{n_done} of {len(states)} cells are already done")

    def __call__(self, cell: Any, succeeded: bool) -> None:
        """Count a cell that was open at the start."""
        if cell not in self._open:
            return
        self._open.remove(cell)
        label = cell.label if succeeded else f"{cell.label}: failed"
        [task] = self.tasks
        self.update(task.id, advance=1, description=escape_controls(label))
        self._line(f"{task.completed}/{task.total} {label} (after {task.elapsed:.1f} s)")


class StageProgress(_Bars):
    """Progress of a run: a bar for each stage on a terminal, else a line when a stage ends.

    Use it in a ``with`` block, and call ``progress(stage, fraction, text)``.
    """

    def __init__(self) -> None:
        times = progress.TimeElapsedColumn(), progress.TimeRemainingColumn()
        super().__init__(
            _text("description"), progress.BarColumn(14), *times, _text("fields[text]")
        )

    def __call__(self, stage: str, fraction: float, text: str) -> None:
        """Show that `fraction` of a stage is done, with a text such as the generation."""
        title = escape_controls(stage.replace("_", " "))
        if title not in [task.description for task in self.tasks[-1:]]:
            self._end_stage()
            self.add_task(title, total=1.0, text="")
        self.update(self.tasks[-1].id, completed=fraction, text=escape_controls(text))

    def _end_stage(self) -> None:
        for task in self.tasks[-1:]:
            self._line(f"{task.description}: {task.fields['text']} ({task.elapsed:.1f} s)")

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self._end_stage()


@contextmanager
def _compiling() -> Iterator[Callable[[float], None]]:
    with StageProgress() as stages:
        yield partial(stages, "compiling kernels", text="once on this machine")


def compile_kernels(backends: Iterable[str] | None = None) -> None:
    """Compile the kernels of searches with some backends, or all kernels, on all processors; skip those on disk."""
    from loky import cpu_count

    from moerank.kernels.compiled import GROUPS, compile_ahead

    groups = set(GROUPS)
    if backends is not None:
        kinds = [getattr(solver_entry(name), "kind", None) for name in backends]
        groups = {getattr(kind, "kernels", "pairs") for kind in kinds} | {"front"}
    compile_ahead(groups, cpu_count(), _compiling)
