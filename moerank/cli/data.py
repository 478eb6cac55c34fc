"""The commands moerank data describe and moerank data cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moerank.cli.messages import notice, printable, sentences
from moerank.cli.run import connected

if TYPE_CHECKING:
    from moerank.data import RankingData
    from moerank.studies.problem import Problem

__all__ = ["DESCRIBE_EXAMPLES", "cache", "describe"]

DESCRIBE_EXAMPLES = """\
Examples:

moerank data describe MQ2008/Fold1

moerank data describe MQ2008/Fold1/train.txt --json

moerank data describe shop.csv --label clicks --query session --missing query-worst

moerank data describe my_problem.toml --fold 2

moerank data describe web --dask tcp://scheduler:8786
"""


def describe(
    what: Annotated[
        str, typer.Argument(help="A LETOR, CSV or Parquet file, the folder of a fold, or a problem.", metavar="WHAT")
    ],
    label: Annotated[
        str | None, typer.Option(help="Column of the labels of a table, else one of a usual name.", show_default=False)
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="Column of its query ids, else one of a usual name.", show_default=False)
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="What missing values become: a number, query-min, query-mean or query-worst; without it they are an "
            "error.",
            show_default=False,
        ),
    ] = None,
    fold: Annotated[int, typer.Option(min=1, help="Fold of a problem, or of a folder of folds.")] = 1,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder that holds a problem's data, else MOERANK_DATA, else ./data.", show_default=False),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Count the training part of a problem in shards on the workers of this Dask scheduler.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, nothing else.")] = False,
) -> None:
    """Count documents, queries, labels, pairs, and what deserves a look before anything is learnt."""
    from moerank.cli.progress import shown_reading

    with sentences(), shown_reading():
        from moerank.data import describe as describe_data
        from moerank.metrics import NDCG, Metric, check_differing

        with connected(dask) as cluster:
            metric: Metric = NDCG(10)
            if what.endswith(".toml") or not Path(what).exists():
                metric = _problem(what, {}).metric.make()
            if cluster is None:
                parts = _read(what, label, query, missing, fold, data)
            else:
                options = {"--label": label, "--query": query, "--missing": missing}
                parts = _problem(what, options, dask).load_limited_fold(fold, data, cluster)[0]
            descriptions = [describe_data(part) for part in parts]
        if as_json:
            typer.echo(json.dumps([entry.as_dict() for entry in descriptions], indent=1, ensure_ascii=False))
            return
        from moerank.cli.tables import description_table, output

        output().print(description_table(what, descriptions))
        remarks = dict.fromkeys(remark for entry in descriptions for remark in entry.remarks())
        typer.echo("\n".join([*remarks, *(f"{said}." for part in parts if (said := check_differing(metric, part)))]))


def _read(
    what: str, label: str | None, query: str | None, missing: str | None, fold: int, data: Path | None
) -> Sequence[RankingData]:
    """Return the data of a file, or the parts of a fold."""
    from moerank.data import load_fold, load_letor, load_table, load_table_fold
    from moerank.data.folds import count_folds
    from moerank.data.read.files import reader_of
    from moerank.data.read.table import find_part, guess_columns

    path, rule = Path(what), _rule(missing)
    if path.suffix == ".toml" or not path.exists():
        options = {"--label": label, "--query": query, "--missing": missing}
        return _problem(what, options).load_fold(fold, data)
    if path.is_dir() and (n_folds := count_folds(path)):
        if fold > n_folds:
            raise ValueError(f"--fold {fold}: {path} has folds 1 to {n_folds}")
        path = path / f"Fold{fold}"
        if n_folds > 1:
            notice(f"fold {fold} of {n_folds}; --fold names another")
    first = find_part(path) if path.is_dir() else path
    reader = reader_of(first) if first is not None else None
    if first is None or reader is None or not reader.tabular:
        return load_fold(path, **rule) if path.is_dir() else [load_letor(path, **rule)]
    columns = guess_columns(first, label, query)
    if label is None or query is None:
        notice(f"label: column {columns[0]!r}, query: column {columns[1]!r}")
    if path.is_dir():
        return load_table_fold(path, label=columns[0], query=columns[1], **rule)
    return [load_table(path, label=columns[0], query=columns[1], **rule)]


def _problem(what: str, options: dict[str, str | None], dask: str | None = None) -> Problem:
    """Return a problem, with shards for a Dask cluster; refuse options that are for files."""
    from moerank.studies.problem import load_problem

    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ValueError(f"{given[0]} is for files; of a problem its file says this")
    problem = load_problem(what)
    return problem if dask is None else problem.in_shards()


def _rule(missing: str | None) -> dict[str, Any]:
    """Return --missing, a number or the name of a rule, as an argument of the readers."""
    if missing is None:
        return {}
    try:
        return {"missing": float(missing)}
    except ValueError:
        return {"missing": missing}


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove everything that is kept.")] = False,
) -> None:
    """Show how much is kept of files that were read, and where; with --clear remove it.

    What is kept makes the next reading of the same file fast, and may be
    removed at any time. MOERANK_CACHE names another folder, or off;
    MOERANK_CACHE_SIZE limits its size, in GiB.
    """
    with sentences():
        from moerank.data.read.cache import cache_entries, cache_folder, cache_limit, clear_cache

        folder = cache_folder()
        if folder is None:
            typer.echo("Nothing is kept: MOERANK_CACHE=off, or there is no home folder.")
            return
        limit, entries = cache_limit(), cache_entries()
        n_entries, n_bytes = clear_cache() if clear else (len(entries), sum(entry.n_bytes for entry in entries))
        files = f"{n_entries:,} file{'s' * (n_entries != 1)}, {n_bytes / 2**30:.3g} GiB"
        size = f"of at most {limit / 2**30:.4g} GiB"
        typer.echo(printable(f"removed {files}, from {folder}" if clear else f"{files} {size}, in {folder}"))
