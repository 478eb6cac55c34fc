"""The folder of a run: run what is missing, load its models, and compare them with others on new data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moerank.arrays import Vector
from moerank.checks import check_at_least
from moerank.data import PER_QUERY, UNSCALED, RankingData, load_letor, load_table
from moerank.data.read.table import reader_of
from moerank.data.trec import write_qrels, write_run
from moerank.evolution.memo import differences
from moerank.files import Json, last_change, prepare_folder
from moerank.rankers.model import Model
from moerank.runs.draft import data_remarks
from moerank.runs.problem import MetricSection, Problem
from moerank.runs.result import (
    FILES,
    MEMO,
    RESULT,
    Result,
    find_result,
    read_result,
    unfinished,
    write_result,
)
from moerank.runs.run_fold import ALL_FEATURES, Progress, configuration, run_fold
from moerank.runs.solver import Solver
from moerank.verdict import MARGIN, judge
from moerank.version import VERSION

if TYPE_CHECKING:
    from distributed import Client


def run_folds(
    problem: Problem,
    solver: Solver,
    folders: Mapping[int, Path],
    seed: int = 0,
    data: Path | None = None,
    *,
    resume: bool = False,
    again: bool = False,
    workers: int | Client = 1,
    progress: Callable[[], AbstractContextManager[Progress | None]] = nullcontext,
    say: Callable[[str], object] = lambda sentence: None,
) -> Iterator[Result]:
    """Run the folds that are not finished, and yield the result of each fold once it is on disk in its folder.

    All checks happen before the first fold begins. `resume` continues from the memo of an interrupted run; `again` runs
    finished folds again. ``progress()`` makes the context in which a fold runs, and ``say`` is called with each
    sentence for the user. The other arguments are those of `run_fold`.
    """
    requested = problem.spec(solver)
    first, *others = folders
    for fold in others:  # raises errors in the data of any fold before the first run
        problem.load_limited_fold(fold, data)
    extremes, leaks = data_remarks(problem.load_fold(first, data)[0], problem.metric.make())
    for sentence in extremes + leaks:
        say(sentence)
    for folder in folders.values():
        prepare_folder(folder)
    finished = {
        fold: _finished(folders[fold], configuration(problem, fold, requested, seed))
        for fold in folders
    }
    for fold, folder in folders.items():
        stored = None if again else finished[fold]
        if stored is not None and not resume:
            written = (folder / RESULT).stat().st_mtime
            changed = any(last_change(path) > written for path in problem.files(fold, data))
            if changed or stored.versions["moerank"] != VERSION:
                say(
                    f"{folder} holds a run on older data or by another version of moerank; running it again"
                )
                stored = None
        if stored is not None:
            result = stored
            say(f"{folder} already holds the finished run (--again repeats it)")
        else:
            for memo in () if resume else unfinished(folder):
                say(
                    f"starting anew and removing {memo} of an interrupted run (to continue a run, use --resume)"
                )
                memo.unlink(missing_ok=True)
            run: dict[str, Any] = {
                "workers": workers,
                "data": data,
                "memo": folder / MEMO,
                "resume": resume,
            }
            with progress() as report:
                result = run_fold(problem, fold, solver, seed, **run, progress=report)
            result = result.model_copy(update={"leaks": leaks})
        if stored is None or not all((folder / name).exists() for name in FILES):
            write_result(result, folder)
        for memo in unfinished(
            folder
        ):  # only now, so that a run that is killed earlier can continue from them
            memo.unlink(missing_ok=True)
        yield result


def _finished(folder: Path, settings: Json) -> Result | None:
    """Return the finished result in a folder; refuse a result of another configuration."""
    if (result := read_result(folder)) is None:
        return None
    if different := differences(result.configuration, settings):
        raise ValueError(
            f"{folder} holds the result of another configuration ({different}); choose another folder with --out, or "
            "remove this one"
        )
    return result


def write_trec(result: Result, test: RankingData, folder: Path) -> None:
    """Write the ranking of the test queries by the chosen member to test.run, and their labels to test.qrels.

    `test` must have the scaling of the result. Raises the errors of `write_run`.
    """
    model = result.model(result.best).model_copy(update={"scaling": UNSCALED, "missing_values": ()})
    write_run(folder / "test.run", test, model.scores(test.X), tag=result.solver.replace(" ", ""))
    write_qrels(folder / "test.qrels", test)


def load_model(run: str | os.PathLike[str], *, member: int | None = None) -> Model:
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
    run; a run of trees does not store one. The metric and the margin come from the first run, too.

    Returns plain JSON values: ``finding``, ``equivalent``, ``difference``, its ``interval`` with None for an infinite
    end, ``metric``, ``margin``, ``n_queries``, ``n_differing``, ``result`` and ``against`` with their numbers of
    features, ``data``, and a ``sentence`` that begins with the finding.
    """
    result = find_result(run)
    origin = result if against is None else find_result(against)
    other = origin.best
    if against is None:
        full = [
            ranker
            for ranker in result.baselines
            if ranker.name == ALL_FEATURES and ranker.weights is not None
        ]
        if not full or result.best.trees is not None:  # runs do not store trees on all features
            raise ValueError(f"{run} has no model on all features; name another run with --against")
        other = full[0]
    metric = MetricSection(**result.configuration["metric"]).make()
    values: list[Vector] = []
    which = "the chosen model" if against is not None else "the model on all features"
    for title, source, member, remedy in (
        (f"the chosen model of {run}", result, result.best, ""),
        (
            f"{which} of {against or run}",
            origin,
            other,
            "; or compare with another run by --against",
        ),
    ):
        model = source.model(member)
        try:
            data = _read(new, model, source, result, label, query)
            scores = np.ascontiguousarray(model.predict(data)[:, None], dtype=np.float64)
        except ValueError as error:
            raise ValueError(f"cannot rank by {title}: {error}{remedy}") from None
        values.append(data.weighted(metric.per_query(data, scores))[:, 0])
    size, other_size = len(result.best.features), len(other.features)
    margin = MARGIN if result.verdict is None else result.verdict.margin
    chosen, reference = values
    verdict = judge(
        chosen,
        reference,
        "new",
        metric.name,
        size,
        other_size,
        can_differ=metric.can_differ(data),
        weights=data.query_weights,
        margin=margin,
    )
    others = f"all {other_size} features" if against is None else f"{other_size} of {against}"
    sizes = f"{size} feature{'s' * (size != 1)}"
    measured = (
        "finding",
        "equivalent",
        "difference",
        "metric",
        "margin",
        "n_queries",
        "n_differing",
    )
    low, high = (end if isfinite(end) else None for end in verdict.interval)
    return {
        **{name: getattr(verdict, name) for name in measured},
        "interval": (low, high),
        "result": str(run),
        "n_features": size,
        "against": None if against is None else str(against),
        "n_features_against": other_size,
        "data": str(new),
        "sentence": f"{verdict.finding}: {sizes} of {run} against {others}; {verdict.outcome}",
    }


def _read(
    path: Path, model: Model, source: Result, first: Result, label: str | None, query: str | None
) -> RankingData:
    """Read new data for a model of `source`, with labels and weights as `first` has them.

    They are scaled here if the scaling needs the whole query.
    """
    settings: dict[str, Any] = {"missing": model.missing, "missing_values": model.missing_values}
    read, judged = source.configuration["data"], first.configuration["data"]
    try:
        if reader_of(path) is not None:
            settings |= {
                role: judged.get(role) for role in ("labels", "query_weight", "document_weight")
            }
            settings |= {
                "label": label or judged.get("label"),
                "query": query or judged.get("query"),
            }
            data = load_table(path, features=model.names, **settings)
        else:
            data = load_letor(path, zero_based=read.get("zero_based", False), **settings)
    except ValueError as error:
        fault, _, remedy = str(error).partition("; ")
        if not any(rule in remedy for rule in ("missing=", "labels = ", "to labels")):
            raise
        raise ValueError(
            f"{fault}; change it, or run again with a rule for it in [data] of the problem file"
        ) from None
    if model.scaling != PER_QUERY:
        return data
    return PER_QUERY.apply(data) if read["normalize"] == "query" else data.mark_scaled("query")
