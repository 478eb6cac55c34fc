"""moerank solvers: the table of solvers."""

from __future__ import annotations

import json
from typing import Annotated

import typer

__all__ = ["solvers"]


def solvers(as_json: Annotated[bool, typer.Option("--json", help="Print JSON, nothing else.")] = False) -> None:
    """List the solvers: what they are, what they need, and who published them (--json names the paper).

    The one with an asterisk is recommended: of all searches it finds good
    fronts soonest, as tests/benchmarks/fronts.py measures them.
    """
    from moerank.solvers import solvers as table

    if as_json:
        keys = ("name", "family", "paper", "year", "linear", "selects", "needs", "backend", "recommended")
        entries = [{key: getattr(entry, key) for key in keys} for entry in table().values()]
        typer.echo(json.dumps(entries, indent=1, ensure_ascii=False))
        return
    from moerank.cli.tables import output
    from moerank.cli.tables.solvers import solver_table

    output().print(solver_table(table().values()))
