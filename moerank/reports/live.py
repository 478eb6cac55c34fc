"""Pages and notebooks that show the front of a search while it grows.

A page is two files: the page itself, and beside it a script with the present state, which the page reads each second.
It needs no server, and asks nothing of any machine. In the end the page itself holds the last state, too. In a notebook
the page is drawn anew in a frame below the cell.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import Any, Self

import numpy as np

from moerank.evolution import Archive
from moerank.files import Json, replace_file
from moerank.mofsrank import MOFSRank
from moerank.mofsrank.instance_selection import InstanceSelection
from moerank.mofsrank.objectives import FRONT
from moerank.mofsrank.searching import watching
from moerank.reports.page import POLICY, a_member, as_script, document, of_members
from moerank.studies.result import Result

EVERY, EVERY_IN_NOTEBOOK = 0.5, 2.0
"""Least number of seconds between two states."""

FROM_BESIDE = POLICY.replace("script-src", "script-src 'self' file:")
"""This policy also allows the script beside the page."""

Show = Callable[["LiveView"], object]


class LiveView:
    """State of a run on some folds, and the fronts of its searches, as a page.

    `show` is called with the view when it has changed, but at most once in `every` seconds; its OSErrors are ignored.
    `hear` and `grow` listen to the run. Inside a ``with`` the page says what has ended the run, and names the command
    `again` that continues it.
    """

    def __init__(self, title: str, show: Show, every: float, folds: Sequence[int] = (1,), again: str = "") -> None:
        self.title, self._show, self._every, self._folds, self._again = title, show, every, folds, again
        self._searches: dict[str, tuple[Any, Archive]] = {}
        self._results: dict[Path, Result] = {}
        self.state: Json = {"said": "The run begins.", "share": 0.0, "ended": False}
        self._publish()

    def hear(self, stage: str, fraction: float, text: str) -> None:
        """Take the progress of `run_fold`."""
        fold = f"fold {self._folds[len(self._results)]}, " if len(self._folds) > 1 else ""
        self.state |= {"said": f"{fold}{stage.replace('_', ' ')}: {text}", "share": fraction}
        if time.monotonic() >= self._next:
            self._publish()

    def grow(self, name: str, fraction: float, generation: int, stage: Any, archive: Archive) -> None:
        """Take the non-dominated individuals of a search after a generation."""
        if isinstance(stage, InstanceSelection) or "instance_selection" in self._searches:
            self._searches.clear()  # strings of pairs have other axes than strings of features
        self._searches[name] = stage, archive
        self.hear(name, fraction, f"generation {generation}")

    def finish(self, result: Result, folder: Path) -> None:
        """Take the result of a fold, which is in a folder."""
        self._searches.clear()
        self._results[folder] = result
        if len(self._results) == len(self._folds):
            verdict = f" Verdict: {result.verdict.sentence}." if result.verdict and len(self._folds) == 1 else ""
            self.end(f"The run has ended.{verdict}", _of_results(self._results))

    def end(self, said: str, fronts: Json | None = None) -> None:
        """Show a last state."""
        self.state |= {"said": said, "ended": True}
        self._publish(fronts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KeyboardInterrupt):
            self.end(f"The run was interrupted.{self._again and f' Continue with: {self._again}'}")
        elif error is not None:
            self.end(f"The run has failed. {error}")

    def _publish(self, fronts: Json | None = None) -> None:
        self.state |= {"fronts": fronts or self._growing(), "time": time.time()}
        with suppress(OSError):
            self._show(self)
        self._next = time.monotonic() + self._every

    def _growing(self) -> Json | None:
        """Return the fronts of the searches under way; None without one that minimises the error."""
        for stage, _ in self._searches.values():
            objectives = [objective.name for objective in stage.objectives]
            if "error" in objectives:
                names = [] if isinstance(stage, InstanceSelection) else stage.train.feature_names
                runs = [(None, None, None, "", _members(*found, objectives)) for found in self._searches.values()]
                return _fronts([stage.metric.name], names, objectives, self._searches, runs)
        return None

    def page(self, script: str = "") -> str:
        """Return the page with the present state; it reads the next states from the file `script` beside it."""
        body = (
            '<p><progress id="share"></progress> <span id="said"></span> <span id="age" class="note"></span></p>\n'
            f'<div class="explorer" id="live" data-beside="{escape(script)}"></div>\n'
        )
        return document(self.title, body, self.state, ("fronts.js", "live.js"), FROM_BESIDE if script else POLICY)

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 46rem; border: 0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(self.page())}"></iframe>'


def _fronts(
    metrics: Sequence[str],
    names: Sequence[str],
    objectives: Sequence[str],
    solvers: Sequence[str] | Mapping[str, object],
    runs: Sequence[tuple[object, ...]],
) -> Json:
    """Return what the explorer draws, with a run (fold, seed, chosen, file, members) for each solver or fold."""
    return {
        "metrics": metrics,
        "names": names,
        "further": [name for name in objectives if name not in FRONT],
        "solvers": [name.replace("_", " ") for name in solvers],
        "place": "the folder in which the command was started",
        "shown": list(range(len(solvers))),
        "runs": [[number if len(solvers) > 1 else 0, *run] for number, run in enumerate(runs)],
    }


def _members(stage: Any, archive: Archive, objectives: list[str]) -> list[list[object]]:
    """Return the members of a growing front, with the metric on the training data alone."""
    masks = [()] * len(archive) if isinstance(stage, InstanceSelection) else stage.feature_mask(archive.X)
    order = np.lexsort(archive.F.T[::-1])
    rows = [dict(zip(objectives, archive.F[member].tolist(), strict=True)) for member in order]
    return [
        a_member(
            np.flatnonzero(mask).tolist(),
            [1.0 - row["error"], None, None],
            [value for name, value in row.items() if name not in FRONT],
        )
        for mask, row in zip((masks[member] for member in order), rows, strict=True)
    ]


def _of_results(results: Mapping[Path, Result]) -> Json:
    """Return the fronts of finished folds, which are in these folders."""
    first, *_ = results.values()
    metrics, further = first.metrics, first.further_objectives
    runs = [
        (run.fold, run.seed, run.chosen, shlex.quote(str(folder)), of_members(run, metrics, further))
        for folder, run in results.items()
    ]
    return _fronts(metrics, first.feature_names, first.objectives, [first.solver], runs)


def _of_solver(solver: Any) -> Json:
    """Return the front of a fitted MOFSRank."""
    table = solver.front_.astype(object).where(solver.front_.notna(), None)
    further = [name for name in table if name not in ("n_features", "error", "validation", "features")]
    members = [
        a_member(row["features"], [1.0 - row["error"], row["validation"], None], row[further])
        for _, row in table.iterrows()
    ]
    names = getattr(solver, "feature_names_in_", range(1, solver.n_features_in_ + 1))
    run = None, None, solver.chosen_, "", members
    return _fronts([solver._scored_by.name], [*map(str, names)], further, [type(solver).__name__], [run])


def written_to(path: Path) -> Show:
    """Return what keeps a view in a page at a path, and in a script beside it; a ValueError refuses foreign files."""
    script = path.with_suffix(".js")
    for file, mark in ((path, 'class="explorer" id="live"'), (script, "live({")):
        if file.exists() and mark not in file.read_text(encoding="utf-8", errors="replace"):
            raise ValueError(f"{file} is there, but not from a live view; choose another place for the page")
    path.unlink(missing_ok=True)

    def show(view: LiveView) -> None:
        replace_file(script, f"live({as_script(view.state)});\n".encode())
        if view.state["ended"] or not path.exists():
            replace_file(path, view.page(script.name).encode())

    return show


def opened(path: Path) -> str:
    """Open a page in the browser where there is a display, and return its address."""
    address = path.resolve().as_uri()
    if sys.platform in ("win32", "darwin") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(address)
    return address


@contextmanager
def live(solver: MOFSRank, page: str | Path | None = None) -> Iterator[MOFSRank]:
    """Show the front of a solver as it grows, while it is fitted inside this ``with``.

    In a notebook the front is drawn below the cell, anew every two seconds. Elsewhere, and where `page` is given, it is
    drawn on a page in a file, whose address is printed, and which opens where there is a display. The page loads
    nothing but its own file, and can be closed at any time. Results have the same bits as without it.

    Parameters
    ----------
    solver : MOFSRank
        Also one of `make_solver`, as "mofsrank-staircase".
    page : path, optional
        File of the page; outside a notebook by default one in a new temporary folder.

    Raises
    ------
    TypeError
        For a solver without a search.

    Notes
    -----
    During the search members have values on the training queries alone. At its end the chosen member is marked, and
    with validation data every member has its value on them.

    Examples
    --------
    >>> import moerank as mr
    >>> train, vali, _ = mr.load_planted_fold(1)
    >>> solver = mr.MOFSRank(algorithm="staircase", instance_selection=False, ensemble=False, random_state=0)
    >>> with mr.live(solver, "front.html"):  # doctest: +SKIP
    ...     solver.fit(train, validation=vali)
    """
    if not isinstance(solver, MOFSRank):
        raise TypeError(f"live: {type(solver).__name__} has no search; give a MOFSRank or an evolutionary solver")
    ipython, title = sys.modules.get("IPython"), f"The front of {type(solver).__name__}"
    if page is None and ipython is not None and hasattr(ipython.get_ipython(), "kernel"):
        handle = ipython.display.display(display_id=True)
        view = LiveView(title, handle.update, EVERY_IN_NOTEBOOK)
    else:
        path = Path(page or Path(tempfile.mkdtemp(prefix="moerank-"), "live.html"))
        view = LiveView(title, written_to(path), EVERY)
        print(f"live view: {opened(path)}", file=sys.stderr)
    with view, watching(view.grow):
        yield solver
        view.end("The search has ended.", _of_solver(solver) if hasattr(solver, "front_") else None)
