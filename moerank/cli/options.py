"""Arguments and options that several commands share.

Parameters
----------
problem
    A problem file, or a shipped problem such as digits.
result
    Folder of a run, or file of a cell of a study.
folder
    Folder of a study.
solver
    Name of a solver, see moerank solvers; by default that of the problem file, else mofsrank.
label
    Column of relevance labels; by default it is guessed.
query
    Column of query ids; by default it is guessed.
labels
    E=3,S=2 for text labels, or limits such as 0.25,0.5.
data
    Folder with the data of problems; by default $MOERANK_DATA, else ./data.
seed
    Seed of all random draws.
workers
    Number of processors to use (threads or processes); it does not change results.
dask : ADDRESS
    Use the workers of this Dask scheduler (moerank and the data must be there).
set_ : STAGE.KEY=VALUE
    Change a value of the problem file; repeatable.
"""

import json
import os
import tomllib
from collections.abc import Sequence
from typing import Annotated

import typer

from moerank.solvers import allow_code

# Exit code for a finding that --fail-on names.
EXIT_FINDING = 3


def _allow_code(context: typer.Context, allowed: bool) -> bool:
    """Allow the user's code until the command ends."""
    if allowed:
        context.with_resource(allow_code())
    return allowed


AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        callback=_allow_code,
        help="Run the code of solvers, rankers, metrics and objectives with names of the form "
        "package.module:name.",
    ),
]


AsJson = Annotated[bool, typer.Option("--json", help="Print only JSON.")]

Seed = Annotated[int, typer.Option(min=0)]

# Processors that this process may use.
N_PROCESSORS = (
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)

Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print only errors and one line at the end: no progress, no tables."
    ),
]


# A positive integer.
Count = Annotated[int, typer.Option(min=1)]

CountOrNone = Annotated[int | None, typer.Option(min=1)]


def print_json(values: object) -> None:
    """Print JSON on standard output, in ASCII, so that every terminal can show it."""
    typer.echo(json.dumps(values, indent=1))


def fold_numbers(folds: str) -> list[int] | None:
    """Return the fold numbers of a text with commas; None for "all"."""
    if folds == "all":
        return None
    try:
        return [int(fold) for fold in folds.split(",")]
    except ValueError:
        raise ValueError(f"folds {folds}: give numbers separated by commas, or write all") from None


def read_settings(changes: Sequence[str] | None) -> dict[str, object]:
    """Read settings of the form STAGE.KEY=VALUE; a value that is not TOML is text.

    Examples
    --------
    >>> read_settings(["ensemble.generations=5", "metric.name=MAP"])
    {'ensemble.generations': 5, 'metric.name': 'MAP'}
    """
    settings = {}
    for change in changes or ():
        key, equals, value = change.partition("=")
        if not equals or "." not in key:
            raise ValueError(
                f"--set {change}: write --set STAGE.KEY=VALUE, "
                "such as --set ensemble.generations=50"
            )
        try:
            settings[key] = tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):
            settings[key] = value
    return settings
