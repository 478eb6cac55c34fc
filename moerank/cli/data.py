"""The command moerank init, and the commands of moerank data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from moerank.cli.messages import notice, printable, say
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

if TYPE_CHECKING:
    from moerank.data import RankingData
    from moerank.data.measured_costs import MeasuredCosts
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
    from moerank.data.describe import MISSING, drifts

    with StageProgress():
        options = dict(label=label, query=query, missing=repr(MISSING), features=None, exclude=None)
        parts = [_read(file, options, 1, None)[0] for file in (first, second)]
        found = drifts(parts[0], parts[1])
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


def _differing(metric: Metric, data: RankingData) -> str:
    """Return the remark on queries that cannot differ, which a search would refuse if they are all."""
    from moerank.metrics import check_differing

    try:
        return check_differing(metric, data)
    except ValueError as error:
        return str(error)


def _read(what: str, options: dict[str, str | None], fold: int, data: Path | None) -> Sequence[RankingData]:
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


def design(
    features: Annotated[
        Path, typer.Argument(help="TOML file with a table for each feature, and group = in some.", metavar="FEATURES")
    ],
    runs: Annotated[int | None, typer.Option(help="Runs; by default the least number.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often each run is measured.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the design and of the order.")] = 0,
    out: Annotated[Path, typer.Option(help="CSV file for the runs.")] = Path("measurements.csv"),
) -> None:
    """Write which features to switch on in which run, so that their costs can be told apart.

    Measure each run with the same queries, in the order of the file, and write
    its time into the column time. moerank data costs makes costs of the times.

    Examples
    --------
    moerank data design features.toml --runs 32
    moerank data design features.toml --runs 32 --rounds 3 --out runs.csv
    """
    from moerank.data.measured_costs import design_table, fewest_runs, switch_design
    from moerank.exports.deployable import read_features
    from moerank.files import replace_file
    from moerank.kernels.blas import one_blas_thread

    described = read_features(features)
    if not described:
        raise ValueError(f"{features}: no feature; write a table for each, as [price]")
    if out.exists():
        raise ValueError(f"{out} is there, and may hold measurements; choose another file with --out")
    groups = [feature.group for feature in described.values()]
    try:
        with one_blas_thread():
            chosen = switch_design(groups, fewest_runs(groups) if runs is None else runs, seed)
    except ValueError as error:
        raise ValueError(f"{features}: {error}") from None
    replace_file(out, design_table(list(described), groups, chosen, rounds, seed).encode())
    said = f"{len(chosen)} runs" if rounds == 1 else f"{len(chosen)} runs in {rounds} rounds"
    notice(f"wrote {out}: {said} of {len(groups)} features; fill in the column time")


def costs(
    measurements: Annotated[Path, typer.Argument(help="CSV file of moerank data design with the measured times.")],
    own: Annotated[
        Path | None,
        typer.Option(help="Table of costs of the features, as of profiles; only groups are estimated then."),
    ] = None,
    out: Annotated[Path, typer.Option(help="CSV file for the table of costs.")] = Path("features.csv"),
) -> None:
    """Estimate what features and groups cost from the times of runs with some of them.

    The unit is that of the times. The standard errors are written to a file
    beside the table, which [features] table of a problem file names.

    Examples
    --------
    moerank data costs measurements.csv
    moerank data costs measurements.csv --own profiled.csv --out features.csv
    """
    from moerank.cli.tables import output
    from moerank.data.costs import read_cost_table
    from moerank.data.measured_costs import MOST_BYTES, Measurements, estimate_costs
    from moerank.files import read_text

    measured = Measurements.read(read_text(measurements, MOST_BYTES), str(measurements))
    known = None if own is None else read_cost_table(read_text(own, MOST_BYTES), str(own), measured.names).own
    try:
        found = estimate_costs(measured, known)
    except ValueError as error:
        raise ValueError(f"{measurements}: {error}") from None
    output().print(_table(found))
    for remark in found.remarks():
        typer.echo(f"{remark[0].upper()}{remark[1:]}.")
    beside = found.write(out)
    missing = f", {measured.n_open} not measured" if measured.n_open else ""
    notice(f"{found.n_measured} runs{missing}; without any feature a run takes {found.constant:.4g}")
    notice(f"wrote {out}, and {beside} with the standard errors")


def _table(found: MeasuredCosts) -> object:
    """Return a row for each feature and group."""
    from moerank.cli.tables import text_table

    heads = ("cost", "standard error", "95 % from", "to")
    rows = []
    for label, *numbers in zip(found.labels, found.values, found.errors, found.low, found.high, strict=True):
        rows.append({"": label, **{head: f"{number:.4g}" for head, number in zip(heads, numbers, strict=True)}})
    return text_table("costs", rows)


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
        say(line)
