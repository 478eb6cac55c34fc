"""Options of several commands, and their shell completion."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "Log",
    "Quiet",
    "Settings",
    "complete_problem",
    "complete_solver",
    "complete_solvers",
    "n_processors",
    "read_settings",
]

Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print one line at the end, and what is wrong; no progress, no tables.")
]

Log = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Add the progress to this file, a line with its time each.", show_default=False),
]

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="STAGE.KEY=VALUE", help="Change a value of the problem file; repeatable."),
]


def n_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def complete_problem(incomplete: str) -> list[str]:
    """Return the shipped problems and the problem files that begin so."""
    from moerank.studies.problem import shipped_problems

    folder, _, begin = incomplete.rpartition("/")
    files = sorted(str(path) for path in Path(folder or ".").glob("*.toml") if path.name.startswith(begin))
    return [name for name in [*shipped_problems(), *files] if name.startswith(incomplete)]


def complete_solver(incomplete: str) -> list[str]:
    """Return the solvers that begin so."""
    from moerank.solvers import solvers

    return [name for name in solvers() if name.startswith(incomplete)]


def complete_solvers(incomplete: str) -> list[str]:
    """Return the lists that go on with one more solver."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in [*complete_solver(last), *(["all"] if "all".startswith(last) else [])]]


def read_settings(changes: Sequence[str]) -> dict[str, Any]:
    """Read what is given as STAGE.KEY=VALUE; the value as TOML has it, else as text.

    Raises
    ------
    ValueError
        For text of another form.

    Examples
    --------
    >>> read_settings(["ensemble.generations=5", "metric.name=MAP"])
    {'ensemble.generations': 5, 'metric.name': 'MAP'}
    """
    return dict(_setting(change) for change in changes)


def _setting(change: str) -> tuple[str, Any]:
    from moerank.studies.problem import LONGEST_LINE

    key, equals, value = change.partition("=")
    if not equals or "." not in key:
        raise ValueError(f"--set {change}: write --set STAGE.KEY=VALUE, as in --set ensemble.generations=50")
    if max(len(key), len(value)) > LONGEST_LINE:
        raise ValueError(f"--set {key[:40]}: more than {LONGEST_LINE:,} characters")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        return key, value
