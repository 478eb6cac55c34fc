"""The command moerank judge, which compares a stored model with another one on new data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from moerank.cli.messages import printable, sentences
from moerank.cli.options import FAILED_BOUND, AllowCode, AsJson, Label, Query, Ran


def judge(
    result: Ran,
    new: Annotated[Path, typer.Argument(help="LETOR, CSV or Parquet file with raw values of the features.")],
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="RESULT", help="Compare with the model of another run; by default with the ranker on all features."
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(help=f"Exit code {FAILED_BOUND} for this finding: loss, gain or none; repeatable."),
    ] = None,
    label: Label = None,
    query: Query = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Compare the chosen model of a run with another model on new data, query by query.

    Standard output has one line, which begins with the finding: loss, gain
    or none. With --json it is an object of JSON with all numbers.

    Examples
    --------
    moerank judge results/shop-fold1-seed0 new.parquet --fail-on loss
    moerank judge results/today new.parquet --against results/yesterday --fail-on loss --json >> dashboard.jsonl
    """
    with sentences():
        from typing import get_args

        from moerank.checks import check_choice
        from moerank.studies.served import judge_on_new
        from moerank.verdict import Finding

        for finding in fail_on or ():
            check_choice(get_args(Finding), **{"--fail-on": finding})
        found = judge_on_new(result, new, against, label=label, query=query)
        line = json.dumps(found.as_dict(), ensure_ascii=False) if as_json else found.sentence
        typer.echo(printable(line))
    if found.verdict.finding in (fail_on or ()):
        raise typer.Exit(FAILED_BOUND)
