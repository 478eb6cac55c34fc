"""The command moerank run: one solver on one fold of a problem, or on all folds, with baselines."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moerank.cli import options
from moerank.cli.messages import interruptible, is_quiet, quietly, reading, remark, say

if TYPE_CHECKING:
    from moerank.studies.problem import Problem
    from moerank.studies.result import Result


TREC = ("test.qrels", "test.run")


def run_command(
    problem: options.ProblemName,
    data: options.Data = None,
    fold: Annotated[str, typer.Option(help="Fold numbers, from 1, separated by commas, or all.")] = "1",
    solver: options.SolverName = None,
    backend: Annotated[
        str | None, typer.Option(help="Ranker that evaluates individuals; by default that of the problem.")
    ] = None,
    set_: options.Settings = None,
    seed: options.Seed = 0,
    workers: options.Workers = options.N_PROCESSORS,
    dask: options.Dask = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; by default results/PROBLEM-foldF-seedS.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run in its folder.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Repeat a finished run instead of showing its result.")
    ] = False,
    trec: Annotated[
        bool, typer.Option("--trec", help="Write the ranking of the test queries to test.run, labels to test.qrels.")
    ] = False,
    allow_code: options.AllowCode = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    r"""Select features on one fold of a problem, or on all, and compare them with baselines.

    The table shows each member of the front: its number of features, its
    metric and MAP on the training, validation and test queries. Below are the
    baselines: all features, the best single feature, LambdaMART and FSMRank.
    The command writes result.json, front.csv, model.json, front.png,
    convergence.png and features.png to the folder; it never overwrites files
    that moerank did not write. The very first run compiles kernels, which
    takes some twenty seconds. With --quiet the command prints only the verdict
    and errors. If the folder holds a finished run, its result is printed, and
    it is repeated only if the data or moerank have changed.

    The exit code is 0 after success, 2 after an error, 130 after Ctrl-C.

    Examples
    --------
    moerank run digits
    moerank run mq2008 --data ~/letor --fold all --workers 4
    moerank run digits --set feature_selection.generations=200
    moerank run digits --solver "mofsrank[ensemble=false]" --seed 3
    moerank run mq2008 --solver fsmrank --set solver.parameters.lambda2=0.01
    moerank run my_problem.toml --backend ranksvm-primal --json
    moerank run web --dask tcp://scheduler:8786
    moerank run digits --resume
    moerank run mq2008 --trec
    """
    command = ["moerank", *sys.argv[1:]]
    with quietly(quiet), interruptible(command if resume else [*command, "--resume"]):
        from moerank.data.trec import document_keys
        from moerank.mofsrank.dask_slices import connect
        from moerank.solvers import find_backend
        from moerank.studies.problem import load_problem
        from moerank.studies.run_folder import run_folds, write_trec
        from moerank.studies.solver import Solver

        settings = options.read_settings(set_ or [])
        if backend is not None:
            settings |= {"backend.name": backend}
        chosen = load_problem(problem, settings)
        find_backend(chosen.backend.name, chosen.backend.parameters)
        method = Solver.parse(solver or chosen.solver.name)
        folds = options.fold_numbers(fold) or list(range(1, chosen.n_folds(data) + 1))
        several = len(folds) > 1
        tests = {number: chosen.load_limited_fold(number, data)[0][2] for number in folds if trec}
        for test in tests.values():
            document_keys(test)  # raises any error before the work begins
        label = chosen.name if method.label == chosen.solver.name else f"{chosen.name}-{solver}"
        out = out or Path("results") / (f"{label}-seed{seed}" if several else f"{label}-fold{folds[0]}-seed{seed}")
        folders = {number: out / f"fold{number}" if several else out for number in folds}
        _refuse_foreign({out, *folders.values()}, TREC if trec else ())
        with connect(dask) if dask else nullcontext(workers) as evaluators:
            runs = partial(run_folds, chosen, method, folders, seed, data, workers=evaluators, say=remark)
            results, written = _run_and_draw(partial(runs, resume=resume, again=again), folders)
        for result in results if trec else ():
            write_trec(result, tests[result.fold], folders[result.fold])
        if several:
            _show_folds(chosen, results, out, as_json=as_json)
        elif as_json:
            options.print_json(results[0].model_dump(mode="json"))
        else:
            _show(results[0], out, sorted([*written, *(TREC if trec else ())]), command)


def _refuse_foreign(folders: set[Path], names: Iterable[str]) -> None:
    """Refuse to overwrite files that have the names of a run's files, but come from elsewhere."""
    from moerank.figures import RUN_FIGURES
    from moerank.studies.result import FILES, RESULT

    if any((folder / RESULT).exists() for folder in folders):
        return
    names = [*FILES, *names, *(f"{figure}.png" for figure in RUN_FIGURES)]
    for folder in folders:
        if foreign := [name for name in names if (folder / name).exists()]:
            raise ValueError(
                f"{folder} holds {' and '.join(foreign)}, which no run wrote; choose another folder with --out"
            )


def _run_and_draw(runs: Callable[..., Iterator[Result]], folders: Mapping[int, Path]) -> tuple[list[Result], list[str]]:
    """Run the folds and draw the figures of each once its result is on disk; return results and names of files."""
    from moerank.cli.progress import StageProgress, compiled
    from moerank.figures import draw_run_figures
    from moerank.studies.result import FILES

    results: list[Result] = []
    drawn: list[Path] = []
    with compiled(("front",), ("baselines",)), reading("data") as status:

        def begin() -> StageProgress:
            status.stop()  # a terminal shows one bar at a time
            return StageProgress()

        for result in runs(progress=begin):
            results.append(result)
            drawn = draw_run_figures(result, folders[result.fold])
    return results, [*FILES, *(path.name for path in drawn)]


def _show_folds(problem: Problem, results: list[Result], out: Path, *, as_json: bool) -> None:
    """Print the means of the solver and the baselines over several folds, or as JSON the numbers of each fold."""
    from moerank.cli.tables import output, study_table
    from moerank.studies.results import Results

    every = Results(results).with_baselines()
    if as_json:
        options.print_json(json.loads(every.frame.to_json(orient="records", double_precision=15)))
        return
    if not is_quiet():
        output().print(study_table(problem, every))
    say(f"Wrote to {out}: {', '.join(f'fold{result.fold}' for result in results)}")


def _show(result: Result, out: Path, written: list[str], command: list[str]) -> None:
    """Print the verdict and the table of one fold; with --quiet one line."""
    from moerank.cli.tables import chosen_features, front_table, output

    verdict = f"{result.verdict.sentence}." if result.verdict else ""
    last = f"Wrote to {out}: {', '.join(written)}"
    if is_quiet():
        say(verdict or last)
        return
    if verdict:
        say(f"Verdict: {verdict}")
    say(chosen_features(result))
    output().print(front_table(result))
    if search := result.convergence.get("feature_selection"):
        say(
            f"The second half of the {search.evaluations[-1]:,} evaluations of feature selection added "
            f"{search.last_half:.1%} of the front's hypervolume on training queries."
        )
    say(f"{last}{_next_ranker(result, out, command)}\n{_next(result, out)}")


def _next_ranker(result: Result, out: Path, command: list[str]) -> str:
    """Return a line with the command that serves LambdaMART, if that was better on all features."""
    search = result.configuration["search"]
    if result.verdict is None or not result.verdict.rival or "algorithm" not in search or search.get("refit"):
        return ""
    again = shlex.join([*command, "--set", "search.refit=lambdamart", "--out", f"{out}-lambdamart"])
    return f"\nNext: {again} (trains LambdaMART on the features of each member)"


def _next(result: Result, out: Path) -> str:
    """Return the next command, an export, or the reasons why there is none."""
    from moerank.exports.deployable import obstacles, refused_below_zero
    from moerank.exports.formats import FORMATS

    first, *others = FORMATS
    model = result.model(result.best)
    if reasons := obstacles(model):
        return "\n".join(f"No export: {reason}." for reason in reasons)
    command = shlex.join(["moerank", "export", str(out), "--format", first])
    remarks = [f"{text}." for text in refused_below_zero(model.negative)]
    return "\n".join([f"Next: {command} (or {', '.join(others)})", *remarks])
