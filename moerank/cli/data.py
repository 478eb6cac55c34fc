"""The command moerank init, and the commands of moerank data."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moerank.cli import options
from moerank.cli.messages import notice, reading, say
from moerank.solvers import split

if TYPE_CHECKING:
    from moerank.data import RankingData
    from moerank.data.read.table import Labels


def init_command(
    table: Path,
    *,
    label: str | None = None,
    query: str | None = None,
    exclude: str = "",
    labels: str | None = None,
) -> None:
    """Write a problem file for a table, and print what it assumes about each column.

    The file is written next to the table, such as shop.toml next to shop.csv,
    and has comments. Correct a wrong guess there, or name the column with an
    option. The table is read as a run reads it, so that a run can use the file.

    Parameters
    ----------
    table
        A CSV or Parquet file, or a folder with a training, validation and test table.
    exclude : NAME,NAME
        Columns that are not features.

    Examples
    --------
    moerank init shop.csv
    moerank init shop.csv --label bought --query session --exclude title,added
    moerank init judged.csv --label esci_label --labels E=3,S=2,C=1,I=0
    moerank init logs/
    """
    from moerank.runs.draft import data_remarks, draft_problem

    with reading(table):
        draft = draft_problem(
            table, label=label, query=query, exclude=split(exclude), labels=_labels(labels)
        )
        if draft.path.exists():
            raise ValueError(
                f"{draft.path} exists; edit it, or remove it and run the command again"
            )
        draft, parts, metric = draft.read()
    extremes, leaks = data_remarks(parts, metric)
    for reason in draft.reasons + extremes + leaks:
        notice(reason)
    draft.path.write_text(draft.text, encoding="utf-8")
    say(f"Wrote {draft.path}. Next: moerank run {draft.path}")


def _labels(text: str | None) -> Labels | None:
    """Return the labels of an option: a mapping of texts to labels, or limits."""
    from moerank.data.read.table import checked_labels_rule

    if text is None:
        return None
    value = f"{{{text}}}" if "=" in text else f"[{text}]"
    try:
        labels = tomllib.loads(f"labels = {value}")["labels"]
    except tomllib.TOMLDecodeError:
        raise ValueError(
            f"--labels {text}: write E=3,S=2 or increasing limits such as 0.25,0.5"
        ) from None
    return checked_labels_rule(labels)


def describe_command(
    what: str,
    *,
    fold: options.Count = 1,
    data: Path | None = None,
    allow_code: options.AllowCode = False,
    as_json: options.AsJson = False,
) -> None:
    """Count documents, queries, labels and preference pairs, and warn of problems in the data.

    The command guesses the columns of a table as moerank init does. If a guess
    is wrong, correct it in a problem file, and describe the problem. Without a
    problem file, missing values become 0.

    Parameters
    ----------
    what : WHAT
        A LETOR, CSV or Parquet file, the folder of a fold, or a problem.
    fold
        Fold of a problem, or of a folder with several folds.

    Examples
    --------
    moerank data describe MQ2008/Fold1
    moerank data describe MQ2008/Fold1/train.txt --json
    moerank data describe shop.csv
    moerank data describe my_problem.toml --fold 2
    """
    import numpy as np

    from moerank.data import describe as describe_data
    from moerank.data.scaling import negative_features
    from moerank.exports.deployable import obstacles_of_data, refused_below_zero
    from moerank.runs.draft import data_remarks
    from moerank.runs.problem import load_problem, with_settings

    is_problem = what.endswith(".toml") or not Path(what).exists()
    with reading(what):
        problem = (
            with_settings(load_problem(what), {"data.overlap": "allow"}) if is_problem else None
        )
        parts = _read(Path(what), fold) if problem is None else problem.load_fold(fold, data)
        descriptions = [describe_data(part) for part in parts]
    if as_json:
        options.print_json([entry.as_dict() for entry in descriptions])
        return
    from moerank.cli.tables import description_table, output

    output().print(description_table(what, descriptions))
    remarks = [remark for entry in descriptions for remark in entry.remarks()]
    metric = None if problem is None else problem.metric.make()
    for sentences in data_remarks(parts, metric):
        remarks += sentences
    rule = next((part.missing for part in parts if part.n_missing.any()), None)
    remarks += [f"No export: {reason}." for reason in obstacles_of_data(parts[0].scaling, rule)]
    negative = np.any([negative_features(part) for part in parts], axis=0)
    names = np.array(parts[0].feature_names)[negative].tolist()
    remarks += [f"{text}." for text in refused_below_zero(names)]
    say("\n".join(dict.fromkeys(remarks)))


def _read(path: Path, fold: int) -> Sequence[RankingData]:
    """Return the data of a file, or the training, validation and test part of a fold."""
    from moerank.data import load_fold, load_letor, load_table, load_table_fold
    from moerank.data.folds import count_folds, part_paths
    from moerank.data.read.table import find_part, reader_of
    from moerank.runs.draft import draft_problem

    if path.is_dir() and (n_folds := count_folds(path)):
        path = path / f"Fold{fold}"
        if n_folds > 1:
            notice(f"fold {fold} of {n_folds}; choose another with --fold")
    file = find_part(path) if path.is_dir() else path
    if file is None or reader_of(file) is None:
        if not path.is_dir():
            return [load_letor(path, missing=0.0)]
        if len(part_paths(path, needs_validation=False)) == 2:
            notice(
                "no validation part: a fifth of the training queries becomes one "
                "(split = {validation = 0.2})"
            )
        return load_fold(path, missing=0.0, validation=0.2)
    draft = draft_problem(path)
    for reason in draft.reasons:
        notice(reason)
    load: Callable[..., Any] = load_table_fold if path.is_dir() else load_table
    data = load(
        path,
        label=draft.label,
        query=draft.query,
        document=draft.document,
        exclude=draft.left_out,
        missing=0.0,
    )
    return data if path.is_dir() else [data]


def ingest_command(
    logs: list[Path],
    *,
    judgments: Path,
    out: Path,
    columns: str | None = None,
    labels: str | None = None,
    log: str | None = None,
    id_: str | None = None,
    exclude: list[str] | None = None,
    unjudged: Annotated[int | None, typer.Option(min=0)] = None,
) -> None:
    """Join the feature logs of a search engine and relevance judgments into a table.

    A log has one response of Elasticsearch, OpenSearch, Solr or Vespa per
    line: {"query": "trail shoes", "response": {...}}. The Parquet file
    records which column is what.

    Parameters
    ----------
    logs : LOG
        Files with one response per line.
    judgments
        Relevance judgments: a CSV, TSV or TREC qrels file.
    out
        The Parquet file to write.
    columns : QUERY,DOCUMENT,GRADE
        Columns of the judgments; by default guessed by name.
    log
        Log to read, such as main, or the Solr field.
    id_
        Field of document ids in Solr or Vespa.
    exclude
        Leave out this feature; repeatable.
    unjudged
        Label of unjudged documents; by default they are left out.

    Examples
    --------
    moerank data ingest log.jsonl --judgments judgments.csv --out shop.parquet
    moerank data ingest monday.jsonl.gz tuesday.jsonl.gz --judgments qrels.txt --out shop.parquet
    moerank data ingest log.jsonl --judgments ratings.csv --columns keywords,sku,stars --out shop.parquet
    """
    from moerank.data.ingest import ingest as make_table

    with reading(*logs):
        report = make_table(
            logs,
            out,
            judgments=judgments,
            columns=None if columns is None else columns.split(","),
            labels=_labels(labels),
            log=log,
            document=id_,
            exclude=exclude or (),
            unjudged=unjudged,
        )
    for line in report.lines:
        say(line)


def convert_command(file: Path, *, out: Path) -> None:
    """Convert a LETOR file to Parquet, which loads several times as fast.

    The columns are label, query, document (if the comments name documents) and
    the features 1, 2 and so on. Missing values (NULL) stay missing. Read the
    table with source = "table" in a problem file, or with load_table.

    Parameters
    ----------
    file : FILE
        A LETOR file, plain or .gz.
    out
        Parquet file to write.

    Examples
    --------
    moerank data convert Fold1/train.txt --out Fold1/train.parquet
    """
    from moerank.data.read import in_single_if_exact
    from moerank.data.read.letor import read_letor
    from moerank.data.read.table import write_documents

    with reading(file):
        [documents] = in_single_if_exact([read_letor(file, nulls=True)])
    write_documents(out, documents)
    n_documents, n_features = documents.X.shape
    say(f"{n_documents:,} documents with {n_features:,} features in {out}")
