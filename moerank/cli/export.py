"""The command moerank export, which writes the ranker of a run for another system."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from moerank.cli.messages import notice, printable, sentences
from moerank.cli.options import AllowCode, Ran
from moerank.exports.formats import FORMATS, find_format
from moerank.exports.formats import export as write

if TYPE_CHECKING:
    from moerank.exports.deployable import Phase
    from moerank.studies.result import Result


def export(
    result: Ran,
    format_: Annotated[
        str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}, or a format of an installed package.")
    ],
    member: Annotated[
        int | None, typer.Option(min=1, help="Row of front.csv, from 1; by default the chosen one.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File of the model; by default it is named after the format, in the folder of the run, or in the "
            "current folder for a cell."
        ),
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="TOML file with the names and definitions of features in the search engine.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the model in the other system.")] = "moerank",
    target_version: Annotated[
        str | None,
        typer.Option(
            help="Version of OpenSearch, as 3.1, on which its rule for absent values in trees depends, or of "
            "Elasticsearch for --format elastic."
        ),
    ] = None,
    phase: Annotated[
        str | None, typer.Option(help="Phase of Vespa that scores by the ranker: first or second (default).")
    ] = None,
    inherits: Annotated[
        str | None, typer.Option(help="Profile of Vespa with the other phase; by default default.", metavar="PROFILE")
    ] = None,
    allow_code: AllowCode = False,
) -> None:
    """Write the chosen ranker, or another member of the front, for a search engine or as a function.

    The export includes the fitted scaling, so it scores raw values. Scaling
    and rules for missing values that depend on other documents of a query
    are refused: train with normalize = "minmax" or "standard" and a number
    for missing. In names of features, characters other than ASCII letters,
    digits and _ become _, and f goes before a first digit. The file of
    --features sets other names, and defines how the engine computes each
    feature:

    ["BM25 of the title"]

    name = "bm25_title"

    solr = {class = "SolrFeature", params = {q = "{!field f=title}${user_query}"}}

    elasticsearch = {params = ["q"], template = {match = {title = "{{q}}"}}}

    vespa = "bm25(title)"

    The output tells how to upload the files and what to check.

    Examples
    --------
    moerank export results/shop-fold1-seed0 --format solr
    moerank export results/shop-fold1-seed0 --format elasticsearch --member 3 --name shop_v2
    moerank export results/shop-fold1-seed0 --format vespa --features features.toml --out moerank.profile
    moerank export results/shop-fold1-seed0 --format vespa --member 1 --name shop_first --phase first
    moerank export results/study/cells/0123456789abcdef01234567.json --format onnx --out ranker.onnx
    """
    with sentences():
        from moerank.studies.result_files import find_result

        file = find_format(format_).file.format(name)
        found = find_result(result)
        place = _place(found, member)
        path = out or (result if result.is_dir() else Path()) / file
        model = found.model(found.front[place])
        deployment = write(
            model,
            format_,
            path,
            name=name,
            features=features,
            target_version=target_version,
            phase=cast("Phase | None", phase),  # the writer checks its name
            inherits=inherits,
        )
        notice(f"wrote {' and '.join(map(str, deployment.files))}: {_member(found, place)}")
        typer.echo(printable(deployment.next_step))


def _place(result: Result, member: int | None) -> int:
    """Return the index of a member in the front, counted from 0."""
    if member is None:
        return result.chosen
    if member > len(result.front):
        members = f"members 1 to {len(result.front)}" if len(result.front) > 1 else "only member 1"
        raise ValueError(f"--member {member}: the front has {members}, the rows of front.csv")
    return member - 1


def _member(result: Result, place: int) -> str:
    """Describe the exported ranker."""
    size = len(result.front[place].features)
    chosen = ", the chosen one" if place == result.chosen else ""
    return (
        f"member {place + 1} of {len(result.front)}{chosen}, with {size} {'feature' if size == 1 else 'features'}, of "
        f"{result.solver} on fold {result.fold} of {result.problem}"
    )
