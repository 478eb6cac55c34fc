"""The commands moerank data describe, compare and cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from moerank.cli.messages import notice, printable, sentences
from moerank.cli.options import (
    FAILED_BOUND,
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
from moerank.cli.run import connected

if TYPE_CHECKING:
    from moerank.data import AnyData
    from moerank.data.scaling import MissingRule
    from moerank.metrics import Metric
    from moerank.studies.problem import Problem


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
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Count the training part in shards on the workers of this Dask scheduler."
        ),
    ] = None,
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
    moerank data describe web --dask tcp://scheduler:8786
    """
    from moerank.cli.progress import StageProgress

    with sentences():
        from moerank.data import describe as describe_data
        from moerank.exports.deployable import obstacles_of_data
        from moerank.metrics import NDCG

        with StageProgress(), connected(dask) as cluster:
            metric: Metric = NDCG(10)
            if what.endswith(".toml") or not Path(what).exists():
                metric = _problem(what, {}).metric.make()
            options = dict(label=label, query=query, missing=missing, features=features, exclude=exclude)
            if cluster is None:
                parts = _read(what, options, fold, data)
            else:
                parts = _problem(what, options).in_shards().load_limited_fold(fold, data, cluster)[0]
            descriptions = [describe_data(part) for part in parts]
        if as_json:
            print_json([entry.as_dict() for entry in descriptions])
            return
        from moerank.cli.tables import description_table, output

        output().print(description_table(what, descriptions))
        remarks = dict.fromkeys(remark for entry in descriptions for remark in entry.remarks())
        remarks |= dict.fromkeys(f"{said}." for part in parts if (said := _differing(metric, part)))
        rule = next((part.missing for part in parts if part.n_missing.any()), None)
        remarks |= dict.fromkeys(f"No export: {reason}." for reason in obstacles_of_data(parts[0].scaling, rule))
        typer.echo("\n".join(remarks))


def compare(
    first: Annotated[str, typer.Argument(help="LETOR, CSV or Parquet file, as of training.", metavar="A")],
    second: Annotated[str, typer.Argument(help="A later file with the same features.", metavar="B")],
    most_psi: Annotated[
        float | None,
        typer.Option(min=0, help=f"Exit code {FAILED_BOUND} if a feature has a larger population stability index."),
    ] = None,
    most_missing: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help=f"Exit code {FAILED_BOUND} if the share of missing values of a feature grows by more."
        ),
    ] = None,
    label: Label = None,
    query: Query = None,
    as_json: AsJson = False,
) -> None:
    """Compare the values of each feature in two files, the largest drift first.

    The population stability index (PSI) is 0 for equal distributions. By the
    usual rule of thumb a feature is stable below 0.1, and has shifted above
    0.25. Shares of missing values and ranges are shown beside it.

    Examples
    --------
    moerank data compare trained.parquet new.parquet --most-psi 0.25 --most-missing 0.05
    """
    from moerank.cli.progress import StageProgress

    with sentences():
        from moerank.data.describe import MISSING, drifts
        from moerank.data.ranking_data import in_one_piece

        with StageProgress():
            options = dict(label=label, query=query, missing=repr(MISSING), features=None, exclude=None)
            parts = [_read(file, options, 1, None)[0] for file in (first, second)]
            found = drifts(in_one_piece(parts[0]), in_one_piece(parts[1]))
        if as_json:
            print_json([asdict(drift) for drift in found])
        else:
            from moerank.cli.tables import drift_table, output

            output().print(drift_table(f"{first} and {second}", found))
    beyond = [
        drift.name
        for drift in found
        if (most_psi is not None and drift.psi > most_psi)
        or (most_missing is not None and drift.missing[1] - drift.missing[0] > most_missing)
    ]
    if beyond:
        notice(f"beyond the bounds: {', '.join(beyond)}")
        raise typer.Exit(FAILED_BOUND)


def _differing(metric: Metric, data: AnyData) -> str:
    """Return the remark on queries that cannot differ, which a search would refuse if they are all."""
    from moerank.metrics import check_differing

    try:
        return check_differing(metric, data)
    except ValueError as error:
        return str(error)


def _read(what: str, options: dict[str, str | None], fold: int, data: Path | None) -> Sequence[AnyData]:
    """Return the data of a file, or the parts of a fold."""
    from moerank.data import load_fold, load_letor, load_table, load_table_fold
    from moerank.data.folds import count_folds
    from moerank.data.read.files import part_paths, reader_of
    from moerank.data.read.table import find_part
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
    reader = reader_of(first) if first is not None else None
    if first is None or reader is None or not reader.tabular:
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


def cache(clear: Annotated[bool, typer.Option("--clear", help="Remove all cached files.")] = False) -> None:
    """Show the size and the folder of the cache of data files; with --clear empty it.

    The cache speeds up the next reading of a file, and may be removed at any
    time. MOERANK_CACHE sets another folder, or off; MOERANK_CACHE_SIZE sets
    the largest size, in GiB.
    """
    with sentences():
        from moerank.data.read.cache import cache_entries, cache_folder, cache_limit, clear_cache

        folder = cache_folder()
        if folder is None:
            typer.echo("There is no cache: MOERANK_CACHE is off, or there is no home folder.")
            return
        limit, entries = cache_limit(), cache_entries()
        n_entries, n_bytes = clear_cache() if clear else (len(entries), sum(entry.n_bytes for entry in entries))
        files = f"{n_entries:,} file{'s' * (n_entries != 1)}, {n_bytes / 2**30:.3g} GiB"
        size = f"of at most {limit / 2**30:.4g} GiB"
        typer.echo(printable(f"removed {files}, from {folder}" if clear else f"{files} {size}, in {folder}"))
