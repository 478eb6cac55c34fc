"""The command moerank init, and the commands of moerank data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from moerank.cli.messages import notice, printable, say
from moerank.cli.options import (
    AllowCode,
    AsJson,
    Data,
    Exclude,
    Label,
    Missing,
    Query,
    as_rule,
    names_of,
    print_json,
)

if TYPE_CHECKING:
    from moerank.data import RankingData
    from moerank.data.scaling import MissingRule
    from moerank.metrics import Metric
    from moerank.studies.draft import Draft
    from moerank.studies.problem import Problem


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
    from moerank.studies.draft import draft_problem

    def draft(label: str | None, query: str | None) -> Draft:
        rule = as_rule(missing)
        return draft_problem(table, label=label, query=query, exclude=names_of(exclude), missing=rule)

    result = draft(label, query)
    if sys.stdin.isatty() and sys.stderr.isatty():
        label = label or _asked("Column of relevance labels", result.label)
        query = query or _asked("Column of query ids", draft(label, query).query)
        result = draft(label, query)
    for reason in result.reasons:
        notice(reason)
    if result.path.exists():
        raise ValueError(f"{result.path} exists; correct it, or remove it and begin again")
    result.path.write_text(result.text, encoding="utf-8")
    typer.echo(f"Wrote {result.path}. Next: moerank run {result.path}")


def _asked(question: str, guess: str) -> str | None:
    """Return the answer of the user; None if the guess is right."""
    answer = typer.prompt(question, default=guess, err=True)
    return None if answer == guess else str(answer)


def describe(
    what: Annotated[
        str, typer.Argument(help="A LETOR, CSV or Parquet file, the folder of a fold, or a problem.", metavar="WHAT")
    ],
    label: Label = None,
    query: Query = None,
    missing: Missing = None,
    features: Annotated[
        str, typer.Option(metavar="NAME,NAME", help="Columns of features; by default all others that hold numbers.")
    ] = "",
    exclude: Exclude = "",
    fold: Annotated[int, typer.Option(min=1, help="Fold of a problem, or of a folder of folds.")] = 1,
    data: Data = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Count documents, queries, labels and preference pairs, and point out oddities of the data.

    Examples
    --------
    moerank data describe MQ2008/Fold1
    moerank data describe MQ2008/Fold1/train.txt --json
    moerank data describe shop.csv --label clicks --query session --missing query-worst --exclude title,added
    moerank data describe my_problem.toml --fold 2
    """
    from moerank.cli.progress import StageProgress
    from moerank.data import describe as describe_data
    from moerank.exports.deployable import obstacles_of_data
    from moerank.metrics import NDCG

    with StageProgress():
        metric: Metric = NDCG(10)
        if what.endswith(".toml") or not Path(what).exists():
            metric = _problem(what, {}).metric.make()
        options = dict(label=label, query=query, missing=missing, features=features, exclude=exclude)
        parts = _read(what, options, fold, data)
        descriptions = [describe_data(part) for part in parts]
    if as_json:
        print_json([entry.as_dict() for entry in descriptions])
        return
    from moerank.cli.tables import description_table, output

    output().print(description_table(what, descriptions))
    remarks = dict.fromkeys(remark for entry in descriptions for remark in entry.remarks())
    remarks |= dict.fromkeys(f"{remark}." for part in parts if (remark := _differing(metric, part)))
    rule = next((part.missing for part in parts if part.n_missing.any()), None)
    remarks |= dict.fromkeys(f"No export: {reason}." for reason in obstacles_of_data(parts[0].scaling, rule))
    typer.echo("\n".join(remarks))


def _differing(metric: Metric, data: RankingData) -> str:
    """Describe the queries whose metric cannot change."""
    from moerank.metrics import check_differing

    try:
        return check_differing(metric, data)
    except ValueError as error:
        return str(error)


def _read(what: str, options: dict[str, str | None], fold: int, data: Path | None) -> Sequence[RankingData]:
    """Return the data of a file, or the parts of a fold."""
    from moerank.data import load_fold, load_letor, load_table, load_table_fold
    from moerank.data.folds import count_folds, part_paths
    from moerank.data.read.table import find_part, reader_of
    from moerank.studies.draft import draft_problem

    path, rule = Path(what), cast("MissingRule | None", as_rule(options["missing"]))  # the readers check its name
    if path.suffix == ".toml" or not path.exists():
        return _problem(what, options).load_fold(fold, data)
    if path.is_dir() and (n_folds := count_folds(path)):
        if fold > n_folds:
            raise ValueError(f"--fold {fold}: {path} has folds 1 to {n_folds}")
        path = path / f"Fold{fold}"
        if n_folds > 1:
            notice(f"fold {fold} of {n_folds}; choose another with --fold")
    first = find_part(path) if path.is_dir() else path
    if first is None or reader_of(first) is None:
        if not path.is_dir():
            return [load_letor(path, missing=rule)]
        if len(part_paths(path, drawn=True)) == 2:
            notice("no validation part: a fifth of the training queries is drawn, as by split = {validation = 0.2}")
        return load_fold(path, missing=rule, validation=0.2)
    features, exclude = names_of(options["features"] or ""), names_of(options["exclude"] or "")
    draft = draft_problem(path, label=options["label"], query=options["query"], exclude=exclude, missing=rule)
    for reason in draft.reasons:
        notice(reason)
    load = load_table_fold if path.is_dir() else load_table
    read = load(
        path,
        label=draft.label,
        query=draft.query,
        features=features or None,
        exclude=() if features else draft.left_out,
        document=draft.document,
        missing=cast("MissingRule", draft.missing),
    )
    return read if isinstance(read, tuple) else [read]


def _problem(what: str, options: dict[str, str | None]) -> Problem:
    """Return a problem; options of data files are a ValueError."""
    from moerank.studies.problem import load_problem

    given = [name for name, value in options.items() if value]
    if given:
        raise ValueError(f"--{given[0]} is for data files; in a problem, set it in the problem file")
    return load_problem(what)


def ingest(
    logs: Annotated[list[Path], typer.Argument(help="Files with a response on each line.", metavar="LOG")],
    judgments: Annotated[Path, typer.Option(help="Relevance judgments: CSV, TSV or qrels of TREC.")],
    out: Annotated[Path, typer.Option(help="The table to write, a Parquet file.")],
    columns: Annotated[
        str | None,
        typer.Option(metavar="QUERY,DOCUMENT,GRADE", help="Columns of the judgments; by default those of usual names."),
    ] = None,
    log: Annotated[
        str | None, typer.Option(help="Log of several, such as main or matchfeatures, or the field of Solr.")
    ] = None,
    document: Annotated[
        str | None, typer.Option("--id", help="Field of Solr or Vespa with the document id, such as sku.")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Leave out this feature; repeatable.")] = None,
    unjudged: Annotated[
        int | None, typer.Option(min=0, help="Label of documents without a judgment; by default they are left out.")
    ] = None,
    definitions: Annotated[
        Path | None,
        typer.Option(
            help="The engine's definitions of features, for features.toml: JSON of Solr's feature store, or of a "
            "feature set of Elasticsearch or OpenSearch."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the table if it is there.")] = False,
) -> None:
    """Make a table of the feature logs of a search engine and of relevance judgments.

    A log holds a response a line, {"query": "trail shoes", "response": {...}},
    of Elasticsearch, OpenSearch, Solr or Vespa. moerank run reads the Parquet
    file without being told its columns. moerank export takes features.toml,
    which is written beside it.

    Examples
    --------
    moerank data ingest log.jsonl --judgments judgments.csv --out shop.parquet
    moerank data ingest monday.jsonl.gz tuesday.jsonl.gz --judgments qrels.txt --out shop.parquet
    moerank data ingest log.jsonl --judgments ratings.csv --columns keywords,sku,stars --out shop.parquet
    """
    from moerank.cli.progress import StageProgress
    from moerank.data.ingest import ingest as make_table

    with StageProgress():
        done = make_table(
            logs,
            out,
            judgments=judgments,
            columns=None if columns is None else columns.split(","),
            log=log,
            document=document,
            exclude=exclude or (),
            unjudged=unjudged,
            definitions=definitions,
            force=force,
        )
    for line in done.lines:
        say(line)


def convert(
    file: Annotated[Path, typer.Argument(help="A LETOR file: plain, .gz or .xz.", metavar="FILE")],
    out: Annotated[Path, typer.Option(help="Parquet file to write.")],
) -> None:
    """Write a LETOR file as Parquet, which is read several times as fast.

    The table tells its columns: label, query, document if the comments name
    the documents, and the features 1, 2 and so on. Missing values (NULL) stay
    missing. Read it with source = "table" in a problem file, or load_table.

    Examples
    --------
    moerank data convert Fold1/train.txt --out Fold1/train.parquet
    """
    from moerank.data.read.letor import read_letor
    from moerank.data.read.table import reader_of, write_documents

    if reader_of(file) is not None:
        raise ValueError(f"{file} is a table already; data convert reads LETOR text")
    documents = read_letor(file, nulls=True)
    write_documents(out, documents)
    n, width = documents.X.shape
    typer.echo(printable(f"{n:,} documents with {width:,} features in {out}"))
