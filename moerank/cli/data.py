"""moerank data: looking at ranking data before anything is learnt from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from moerank.cli.messages import sentences

__all__ = ["DESCRIBE_EXAMPLES", "describe"]

DESCRIBE_EXAMPLES = """\
Examples:

moerank data describe MQ2008/Fold1

moerank data describe MQ2008/Fold1/train.txt --json
"""


def describe(
    path: Annotated[Path, typer.Argument(help="A LETOR file, or the folder of a fold.")],
    missing: Annotated[
        float | None, typer.Option(help="What the value NULL stands for; without it NULL is an error.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, nothing else.")] = False,
) -> None:
    """Count documents, queries, labels, pairs, and what deserves a look before anything is learnt."""
    with sentences():
        from moerank.data import describe as describe_data
        from moerank.data import load_fold, load_letor

        parts = load_fold(path, missing=missing) if path.is_dir() else [load_letor(path, missing=missing)]
        descriptions = [describe_data(part) for part in parts]
        if as_json:
            typer.echo(json.dumps([entry.as_dict() for entry in descriptions], indent=1, ensure_ascii=False))
            return
        from moerank.cli.tables import output
        from moerank.cli.tables.data import description_table

        output().print(description_table(str(path), descriptions))
        typer.echo("\n".join(dict.fromkeys(remark for entry in descriptions for remark in entry.remarks())))
