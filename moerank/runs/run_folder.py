"""The folder of a run: run what is missing, load its models, and compare them with others on new data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from moerank.arrays import Vector
from moerank.checks import check_at_least
from moerank.data import PER_QUERY, UNSCALED, RankingData, load_letor, load_table
from moerank.data.read.table import reader_of
from moerank.data.trec import document_keys, write_qrels, write_run
from moerank.evolution.memo import differences
from moerank.files import AnyPath, Json, last_change, prepare_folder
from moerank.metrics import Metric
from moerank.rankers.model import Model
from moerank.runs.draft import data_remarks
from moerank.runs.problem import MetricSection, Problem
from moerank.runs.result import (
    FILES,
    MEMO,
    RESULT,
    Member,
    Result,
    find_result,
    read_result,
    unfinished,
    write_result,
)
from moerank.runs.run_fold import ALL_FEATURES, Progress, run_fold
from moerank.runs.solver import Solver, configuration
from moerank.statistics import Tail
from moerank.verdict import MARGIN, judge
from moerank.version import VERSION

if TYPE_CHECKING:
    from distributed import Client


def run_folds(
    problem: Problem,
    solver: Solver,
    folders: Mapping[int, Path],
    seed: int,
    data: Path | None,
    *,
    resume: bool,
    again: bool,
    trec: bool,
    workers: int | Client,
    progress: Callable[[], AbstractContextManager[Progress]],
    say: Callable[[str], object],
) -> Iterator[Result]:
    """Run the folds that are not finished, and yield the result of each fold once it is on disk in its folder.

    All checks happen before the first fold begins. `resume` continues from the memo of an interrupted run; `again` runs
    finished folds again; `trec` writes the rankings of the test queries, see `write_trec`. ``progress()`` makes the
    context in which a fold runs, and ``say`` is called with each sentence for the user. The other arguments are those
    of `run_fold`.
    """
    extremes, leaks = _check_data(problem, list(folders), data, trec=trec)
    for sentence in extremes + leaks:
        say(sentence)
    for folder in folders.values():
        prepare_folder(folder)
    finished = {
        fold: _finished(folder, configuration(problem, fold, solver, seed))
        for fold, folder in folders.items()
    }
    for fold, folder in folders.items():
        result = None if again else finished[fold]
        files = problem.files(fold, data)
        if result and not resume and _is_outdated(result, folder, files):
            say(
                f"{folder} holds a run on older data or by another version of moerank; "
                "running it again"
            )
            result = None
        if result:
            say(f"{folder} already holds the finished run (--again repeats it)")
            if not all((folder / name).exists() for name in FILES):
                write_result(result, folder)
        else:
            for memo in () if resume else unfinished(folder):
                say(
                    f"starting anew and removing {memo} of an interrupted run "
                    "(to continue a run, use --resume)"
                )
                memo.unlink(missing_ok=True)
            with progress() as report:
                result = run_fold(
                    problem,
                    fold,
                    solver,
                    seed,
                    workers=workers,
                    data=data,
                    memo=folder / MEMO,
                    resume=resume,
                    progress=report,
                )
            result = result.model_copy(update={"leaks": leaks})
            write_result(result, folder)
        if trec:
            write_trec(result, problem.load_fold(fold, data)[2], folder)
        # Only now, so that a run that is killed earlier can continue from them.
        for memo in unfinished(folder):
            memo.unlink(missing_ok=True)
        yield result


def _check_data(
    problem: Problem, folds: list[int], data: Path | None, *, trec: bool
) -> tuple[list[str], list[str]]:
    """Raise the errors in the data of any fold, and return the remarks on the first one."""
    for fold in reversed(folds):
        parts = problem.load_fold(fold, data)
        if trec:
            document_keys(parts[-1])
    return data_remarks(parts, problem.metric.make())


def _is_outdated(result: Result, folder: Path, files: Iterable[Path]) -> bool:
    """Return whether a finished run is older than its files, or by another version of moerank."""
    date = (folder / RESULT).stat().st_mtime
    return result.versions["moerank"] != VERSION or any(last_change(file) > date for file in files)


def _finished(folder: Path, settings: Json) -> Result | None:
    """Return the finished result in a folder; refuse a result of another configuration."""
    result = read_result(folder)
    changes = result and differences(result.configuration, settings)
    if changes:
        raise ValueError(
            f"{folder} holds the result of another configuration ({changes}); "
            "choose another folder with --out, or remove this one"
        )
    return result


def write_trec(result: Result, test: RankingData, folder: Path) -> None:
    """Write the ranking of the test queries by the chosen member to test.run, and their labels to test.qrels.

    `test` must have the scaling of the result. Raises the errors of `write_run`.
    """
    model = result.model(result.best).model_copy(update={"scaling": UNSCALED, "missing_values": ()})
    write_run(folder / "test.run", test, model.scores(test.X), tag=result.solver.replace(" ", ""))
    write_qrels(folder / "test.qrels", test)


def load_model(run: AnyPath, *, member: int | None = None) -> Model:
    """Return the chosen model of a finished run, or another member of its front.

    Parameters
    ----------
    run : path-like
        The folder of a run, or the file of a cell of a study.
    member : int, optional
        Index of the member in the front, from 0; by default the chosen one.

    Returns
    -------
    Model
        ``predict(X)`` scores raw values. ``names``, ``columns``, ``weights`` or ``trees``, ``scaling`` and ``missing``
        come from training. If the ranker scores by trees, only the chosen member has them.

    Raises
    ------
    ValueError
        If the result cannot be read, or has no such member.
    OSError
        If there is no result.
    """
    result = find_result(Path(run))
    check_at_least(0, len(result.front) - 1, or_none=True, member=member)
    return result.model(result.front[result.chosen if member is None else member])


def judge_on_new(
    run: Path,
    new: Path,
    against: Path | None = None,
    *,
    label: str | None = None,
    query: str | None = None,
) -> Json:
    """Compare the chosen model of a run with another model on new data, query by query.

    The new data are a LETOR, CSV or Parquet file with the raw features of both models under their names; `label` and
    `query` are columns of a table, by default those of the first run, as are its columns of weights and its rule for
    labels. The other model is the chosen one of the run `against`, by default the ranker on all features of the first
    run. The metric and the margin come from the first run, too.

    Returns plain JSON values: ``finding``, ``equivalent``, ``difference``, its ``interval`` with None for an infinite
    end, ``metric``, ``margin``, ``n_queries``, ``n_differing``, ``result`` and ``against`` with their numbers of
    features, ``data``, and a ``sentence`` that begins with the finding.
    """
    result = find_result(run)
    if against is None:
        rival_run, rival = result, _member_on_all_features(result)
        if rival is None:
            raise ValueError(f"{run} has no model on all features; name another run with --against")
        rival_title = f"the model on all features of {run}"
        rival_features = f"all {rival.n_features} features"
    else:
        rival_run = find_result(against)
        rival, rival_title = rival_run.best, f"the chosen model of {against}"
        rival_features = f"{rival.n_features} of {against}"
    metric = MetricSection(**result.configuration["metric"]).make()
    columns = {**result.configuration["data"]}
    columns |= {name: column for name, column in {"label": label, "query": query}.items() if column}
    data, selection = _values(
        new, result, result.best, columns, metric, f"the chosen model of {run}"
    )
    remedy = "; or compare with another run by --against"
    _, reference = _values(new, rival_run, rival, columns, metric, rival_title, remedy)
    size = result.best.n_features
    verdict = judge(
        selection,
        reference,
        "new",
        metric.name,
        size,
        rival.n_features,
        can_differ=metric.can_differ(data),
        weights=data.query_weights,
        margin=getattr(result.verdict, "margin", MARGIN),
        # It may have seen differences of other models.
        tail=getattr(result.verdict, "tail", Tail())._replace(n=0),
    )
    features = "feature" if size == 1 else "features"
    comparison = f"{size} {features} of {run} against {rival_features}"
    names = ["finding", "equivalent", "difference", "metric", "margin", "n_queries", "n_differing"]
    low, high = (end if isfinite(end) else None for end in verdict.interval)
    return {
        **{name: getattr(verdict, name) for name in names},
        "interval": (low, high),
        "result": str(run),
        "n_features": size,
        "against": None if against is None else str(against),
        "n_features_against": rival.n_features,
        "data": str(new),
        "sentence": f"{verdict.finding}: {comparison}; {verdict.outcome}",
    }


def _values(
    path: Path,
    source: Result,
    member: Member,
    columns: Json,
    metric: Metric,
    title: str,
    remedy: str = "",
) -> tuple[RankingData, Vector]:
    """Return new data as a model of `source` takes them, and the metric of the model by query."""
    try:
        model = source.model(member)
        data = _read(path, model, source.configuration["data"], columns)
        scores = np.ascontiguousarray(model.predict(data)[:, None], float)
    except ValueError as error:
        raise ValueError(f"cannot rank by {title}: {error}{remedy}") from None
    return data, data.weighted(metric.per_query(data, scores))[:, 0]


def _member_on_all_features(result: Result) -> Member | None:
    """Return the baseline on all features, if its weights or trees are stored."""
    for ranker in result.baselines:
        if ranker.name == ALL_FEATURES and (ranker.weights is not None or ranker.trees is not None):
            return ranker
    return None


def _read(path: Path, model: Model, origin: Json, columns: Json) -> RankingData:
    """Read new data for a model, whose training data had the settings `origin`; `columns` has their columns.

    They are scaled here if the scaling needs the whole query.
    """
    try:
        if reader_of(path) is None:
            data = load_letor(
                path,
                zero_based=origin.get("zero_based", False),
                missing=model.missing,
                missing_values=model.missing_values,
            )
        else:
            data = load_table(
                path,
                features=model.names,
                missing=model.missing,
                missing_values=model.missing_values,
                label=columns.get("label"),
                query=columns.get("query"),
                labels=columns.get("labels"),
                query_weight=columns.get("query_weight"),
                document_weight=columns.get("document_weight"),
            )
    except ValueError as error:
        fault, _, remedy = str(error).partition("; ")
        if not any(rule in remedy for rule in ("missing=", "labels = ", "to labels")):
            raise
        raise ValueError(
            f"{fault}; change it, or run again with a rule for it in [data] of the problem file"
        ) from None
    if model.scaling != PER_QUERY:
        return data
    return PER_QUERY.apply(data) if origin["normalize"] == "query" else data.mark_scaled("query")
