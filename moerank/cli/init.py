"""The command moerank init."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moerank.cli.messages import notice, sentences
from moerank.cli.options import Exclude, Label, Missing, Query, as_rule, names_of

if TYPE_CHECKING:
    from moerank.studies.draft import Draft


def init(
    table: Annotated[
        Path, typer.Argument(help="A CSV or Parquet file, or a folder of a training, validation and test table.")
    ],
    label: Label = None,
    query: Query = None,
    exclude: Exclude = "",
    missing: Missing = None,
) -> None:
    """Write a problem file for a table, and say what it guesses of the columns.

    The file stands beside the table, as shop.toml beside shop.csv, and has
    comments. On a terminal the command asks whether the guesses of label and
    query are right. Correct the rest in the file.

    Examples
    --------
    moerank init shop.csv
    moerank init shop.csv --label bought --query session --exclude title,added
    moerank init logs/ --missing query-worst
    """
    with sentences():
        from moerank.studies.draft import draft_problem

        def draft(label: str | None, query: str | None) -> Draft:
            rule = as_rule(missing)
            return draft_problem(table, label=label, query=query, exclude=names_of(exclude), missing=rule)

        found = draft(label, query)
        if sys.stdin.isatty() and sys.stderr.isatty():
            label = label or _asked("Column of relevance labels", found.label)
            query = query or _asked("Column of query ids", draft(label, query).query)
            found = draft(label, query)
        for reason in found.reasons:
            notice(reason)
        if found.path.exists():
            raise ValueError(f"{found.path} exists; correct it, or remove it and begin again")
        found.path.write_text(found.text, encoding="utf-8")
        typer.echo(f"Wrote {found.path}. Next: moerank run {found.path}")


def _asked(question: str, guess: str) -> str | None:
    """Return the answer of the user; None if the guess is right."""
    answer = typer.prompt(question, default=guess, err=True)
    return None if answer == guess else str(answer)
