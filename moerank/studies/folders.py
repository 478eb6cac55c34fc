"""The folder of a run: what is finished in it, what was interrupted, and going on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moerank.data import UNSCALED, RankingData
from moerank.data.trec import read_run, write_qrels, write_run
from moerank.files import Json, prepare_folder
from moerank.metrics import Metric
from moerank.studies.measure import Progress
from moerank.studies.problem import Problem
from moerank.studies.result import Result
from moerank.studies.result_files import FILES, JOURNAL, RESULT, read_result, unfinished, write_result
from moerank.studies.run_fold import configuration, run_fold
from moerank.studies.solver import Solver
from moerank.verdict import judge
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
    """Yield the result of each fold once it is on disk in its folder, and run what is not finished.

    Everything that can be refused is refused before the first fold begins. To resume is to go on from what an
    interrupted run has left; `again` runs finished folds again. ``progress()`` makes the context in which a fold
    runs, ``say`` is called with each sentence that the user should read. The other arguments are those of `run_fold`.
    """
    problem.spec(solver)
    for fold in folders:  # else the run itself begins so
        problem.load_limited_fold(fold, data)
    for folder in folders.values():
        prepare_folder(folder)
    settings = {fold: configuration(problem, fold, solver, seed) for fold in folders}
    finished = {fold: _finished(folder, settings[fold]) for fold, folder in folders.items()}
    if resume and not any(finished[fold] or unfinished(folder) for fold, folder in folders.items()):
        say("nothing to resume; starting from the beginning")
    for fold, folder in folders.items():
        result = finished[fold]
        if result is not None and not resume:
            written = (folder / RESULT).stat().st_mtime
            changed = any(path.stat().st_mtime > written for path in problem.files(fold, data))
            if changed or result.versions["moerank"] != VERSION:
                say(f"{folder} holds a run on older data or by another version of moerank; it is run again")
                result = None
        result = None if again else result
        complete = result is not None and all((folder / name).exists() for name in FILES)
        if result is not None:
            say(f"{folder} holds the finished run; it is not run again (--again repeats it)")
        else:
            for journal in () if resume else unfinished(folder):
                say(f"starting anew; {journal} of an interrupted run is removed (--resume would continue it)")
                journal.unlink(missing_ok=True)
            with progress() as report:
                result = run_fold(
                    problem,
                    fold,
                    solver,
                    seed,
                    workers=workers,
                    data=data,
                    journal=folder / JOURNAL,
                    resume=resume,
                    progress=report,
                )
        if not complete:
            write_result(result, folder)
        for journal in unfinished(folder):  # only now: whoever is killed before goes on from them
            journal.unlink(missing_ok=True)
        yield result


def _finished(folder: Path, settings: Json) -> Result | None:
    """Return the finished result in a folder; refuse a folder with that of another configuration."""
    result = read_result(folder)
    if result is None:
        return None
    here, there = _flat(settings), _flat(result.configuration)
    for key in [*here, *there]:
        if here.get(key) != there.get(key):
            raise ValueError(
                f"{folder} holds the result of another configuration ({key} is {there.get(key)} there and "
                f"{here.get(key)} here); choose another folder with --out, or remove it"
            )
    return result


def _flat(settings: Json, prefix: str = "") -> Json:
    """Return nested settings under dotted keys."""
    flat: Json = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def compare_members(
    result: Result, first: int, second: int, test: RankingData, metric: Metric, *, margin: float
) -> str:
    """Return in one sentence how a member of a front stands against another, query by query.

    Members count from 1, as in front.csv. The test part is scaled as it was for the result; differences below the
    margin do not matter. The chosen member's values stand in the result; those of others are measured again by their
    weights, to the same bits. No choice is made by them, and none should be: a member that is chosen by test queries is
    flattered by them.
    """
    values, reference = (_values(result, number, test, metric) for number in (first, second))
    sizes = [len(result.front[number - 1].features) for number in (first, second)]
    can_differ = metric.can_differ(test)
    verdict = judge(values, reference, "test", metric.name, *sizes, can_differ=can_differ, margin=margin)
    one, other = (
        f"member {number} ({size} feature{'s' * (size != 1)}{', chosen' * (number == result.chosen + 1)})"
        for number, size in zip((first, second), sizes, strict=True)
    )
    return f"{one[0].upper()}{one[1:]} against {other}: {verdict.outcome}"


def compare_with_run(result: Result, run: Path, test: RankingData, metric: Metric, *, margin: float) -> str:
    """Return in one sentence how the chosen member stands against a TREC run of its test queries.

    Arguments as in `compare_members`; errors as in `read_run`.
    """
    size = len(result.best.features)
    values = _values(result, result.chosen + 1, test, metric)
    reference = test.weighed(metric.per_query(test, read_run(run, test)))
    verdict = judge(
        values, reference, "test", metric.name, size, size, can_differ=metric.can_differ(test), margin=margin
    )
    return f"{result.solver} ({size} feature{'s' * (size != 1)}) against {run.name}: {verdict.outcome}"


def write_trec(result: Result, test: RankingData, folder: Path) -> None:
    """Write the ranking of the test queries by the chosen member as test.run, and their labels as test.qrels.

    `test` is scaled as it was for the result; errors as of `write_run`.
    """
    model = result.model(result.best).model_copy(update={"scaling": UNSCALED})
    write_run(folder / "test.run", test, model.scores(test.X), tag=result.solver.replace(" ", ""))
    write_qrels(folder / "test.qrels", test)


def _values(result: Result, number: int, test: RankingData, metric: Metric) -> NDArray[np.float64]:
    """Return the metric of each test query."""
    if not 1 <= number <= len(result.front):
        there = f"members 1 to {len(result.front)}" if len(result.front) > 1 else "only member 1"
        raise ValueError(f"--member {number}: the front has {there}; the table numbers them")
    member = result.front[number - 1]
    if number == result.chosen + 1:
        return np.asarray(member.per_query["test"][metric.name])
    if member.weights is None:
        raise ValueError(
            f"--member {number}: its ranker has no weights, and of such a front the chosen member alone is kept "
            f"({result.chosen + 1})"
        )
    return test.weighed(metric.of_linear(test, result.model(member).coef(test.n_features)[None])[:, 0])
