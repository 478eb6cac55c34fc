"""The command moerank data ingest, which makes a table of the feature logs of a search engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from moerank.cli.messages import sentences


def ingest(
    logs: Annotated[list[str], typer.Argument(help="Files or folders of logs; - is standard input.", metavar="LOG")],
    out: Annotated[Path, typer.Option(help="The table: .parquet, .csv or .csv.gz.")],
    judgments: Annotated[
        Path | None, typer.Option(help="File of relevance judgments; by default the log has labels.")
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="KIND",
            help="elasticsearch, opensearch, elastic (its own LTR), solr, vespa, pyvespa or letor; by default the "
            "first response tells.",
        ),
    ] = None,
    join: Annotated[
        str | None, typer.Option(help="Join judgments by the text of the query, or by its id: query or id.")
    ] = None,
    grade: Annotated[str | None, typer.Option(help="Column of grades in the judgments.")] = None,
    grades: Annotated[
        str | None,
        typer.Option(help="Rule that makes labels of grades: scale=K, bins=.25,.5,.75, quantiles=N or clip."),
    ] = None,
    unjudged: Annotated[
        int | None, typer.Option(min=0, help="Label of documents without a judgment; by default they are left out.")
    ] = None,
    log: Annotated[str | None, typer.Option(help="Log of several, as main or matchfeatures.")] = None,
    field: Annotated[str | None, typer.Option(help="Field of Solr with the features.")] = None,
    id_: Annotated[str | None, typer.Option("--id", help="Field of Solr or Vespa with the document id.")] = None,
    names: Annotated[
        Path | None, typer.Option(help="File of feature names, one a line, or a feature map of XGBoost.")
    ] = None,
    features: Annotated[list[str] | None, typer.Option(help="Read only this feature; repeatable.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Leave out this feature; repeatable.")] = None,
    separators: Annotated[
        str | None, typer.Option(help="Two signs of Solr: between name and value, and between features.")
    ] = None,
    sparse_default: Annotated[
        float | None, typer.Option(help="Solr's format is sparse; the value of features that it leaves out: 0 or nan.")
    ] = None,
    requests: Annotated[Path | None, typer.Option(help="The file of requests of _msearch.")] = None,
    query_param: Annotated[
        str | None, typer.Option(help="Parameter that holds the user's query, as q of Solr.")
    ] = None,
    repeats: Annotated[
        str | None, typer.Option(help="Values that count if a document was logged twice: first or last.")
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Take responses that are not whole.")] = False,
    missing_as_zero: Annotated[bool, typer.Option("--missing-as-zero", help="Missing values become 0.")] = False,
    costs_out: Annotated[
        Path | None, typer.Option(help="Also write what features cost, by the profiles in the log: features.csv.")
    ] = None,
    definitions: Annotated[
        Path | None,
        typer.Option(
            help="The engine's definitions of features, for features.toml: JSON of Solr's feature store, of a feature "
            "set of Elasticsearch or OpenSearch, or of a model of Elastic."
        ),
    ] = None,
    no_position: Annotated[
        bool, typer.Option("--no-position", help="The order of hits is none that users saw.")
    ] = False,
    weigh_queries: Annotated[
        bool, typer.Option("--weigh-queries", help="The weight of a query is the number of its responses.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the table if it is there.")] = False,
) -> None:
    """Make a table of the feature logs of a search engine and of relevance judgments.

    A log holds a response a line, {"query": "trail shoes", "response": {...}},
    of Elasticsearch, OpenSearch, Solr or Vespa, or lines of LETOR or pyvespa.
    Judgments are TREC qrels, CSV or TSV, or JSON of Rated Ranking Evaluator
    or the Search Relevance Workbench. moerank run reads the Parquet file
    without being told its columns. features.toml beside it is for moerank
    export --features.

    Examples
    --------
    moerank data ingest log.jsonl --judgments judgments.csv --out shop.parquet
    moerank data ingest logs/ --judgments qrels.txt --join id --out shop.parquet
    moerank data ingest log.jsonl.gz --judgments ctr.csv --grades bins=.25,.5,.75 --out shop.parquet
    moerank data ingest features.csv --from pyvespa --out shop.parquet
    """
    from moerank.cli.progress import StageProgress

    with sentences():
        from moerank.cli.tables import output, say
        from moerank.data.logs.ingest import ingest as make_table
        from moerank.data.logs.responses import LogOptions

        options = LogOptions(
            engine=from_,
            log=log,
            field=field,
            id=id_,
            names=names,
            features=tuple(features or ()),
            exclude=tuple(exclude or ()),
            separators=separators,
            sparse_default=sparse_default,
            requests=requests,
            query_param=query_param,
            missing_as_zero=missing_as_zero,
            partial=partial,
        )
        with StageProgress():
            done = make_table(
                logs,
                out,
                judgments=judgments,
                join=cast('Literal["query", "id"] | None', join),
                grade=grade,
                grades=grades,
                unjudged=unjudged,
                repeats=cast('Literal["first", "last"] | None', repeats),
                positions=not no_position,
                weigh_queries=weigh_queries,
                costs=costs_out,
                definitions=definitions,
                force=force,
                options=options,
            )
        for line in done.lines:
            say(output(), line)
