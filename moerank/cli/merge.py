"""moerank merge: several studies as one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moerank.cli.messages import printable, sentences

__all__ = ["MERGE_EXAMPLES", "merge"]

MERGE_EXAMPLES = """\
Example:

moerank merge results/office results/cluster --out results/both
"""


def merge(
    folders: Annotated[list[Path], typer.Argument(help="Folders of two or more studies.")],
    out: Annotated[Path, typer.Option(help="Folder of the union: a new one, or that of a study, which is extended.")],
) -> None:
    """Make one study of several, which ran on other machines or asked for other solvers.

    Nothing is run, and nothing that is there is replaced. Studies that
    contradict each other (other settings of a problem, other results of the
    same cell) are refused before anything is written.
    """
    with sentences():
        from moerank.studies.merge import merge_studies

        merged = merge_studies(folders, out)
        states = list(merged.states().values())
        failed = f", {states.count('failed')} failed" * ("failed" in states)
        typer.echo(printable(f"{states.count('finished')} of {len(states)} cells are finished{failed}, in {out}"))
