"""The command moerank run: one solver on one fold of a problem, or on all folds, with baselines."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from moerank.checks import check_choice
from moerank.cli import options
from moerank.cli.messages import command_line, interruptible, is_quiet, reading, remark, say
from moerank.figures import RUN_FIGURES
from moerank.solvers import SERVERS, find_backend, solver_entry

if TYPE_CHECKING:
    from rich.status import Status

    from moerank.runs.problem import Problem
    from moerank.runs.result import Result
    from moerank.runs.run_fold import Progress
    from moerank.runs.solver import NamedSolver


TREC = ("test.qrels", "test.run")

FRONT_FIGURE = "front.png"  # moerank plot draws the other figures of a run


def run_command(
    problem: str,
    *,
    data: Path | None = None,
    fold: str = "1",
    solver: str | None = None,
    backend: str | None = None,
    ranker: str | None = None,
    set_: list[str] | None = None,
    seed: options.Seed = 0,
    workers: options.Count = options.N_PROCESSORS,
    dask: str | None = None,
    out: Path | None = None,
    resume: bool = False,
    again: bool = False,
    trec: bool = False,
    table: bool = False,
    allow_code: options.AllowCode = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    r"""Select features on one fold of a problem, or on all, and compare them with baselines.

    The command says which features to use, or advises to keep all of them.
    Its rows show some sets of features with their metric on validation
    and test queries; --table shows all sets and the baselines, also by MAP
    and on training queries. The command writes result.json, front.csv,
    model.json and front.png to the folder, and moerank plot draws further
    figures; it never overwrites files that moerank did not write. The very
    first run compiles kernels, which takes about ten seconds. With --quiet
    it prints only the verdict and errors. If the folder holds a finished run,
    the command prints its result, and repeats it only if the data or moerank
    have changed.

    The exit code is 0 after success, 2 after an error, 130 after Ctrl-C.

    Parameters
    ----------
    fold
        Fold numbers, from 1, separated by commas, or all.
    backend
        Ranker that evaluates feature subsets; by default that of the problem.
    ranker
        Rankers that may serve, linear, additive or trees; by default those
        of the problem.
    out
        Folder for the results; by default results/PROBLEM-foldF-seedS.
    resume
        Continue an interrupted run in its folder.
    again
        Run again even if the run is finished.
    trec
        Write the ranking of the test queries to test.run, labels to test.qrels.
    table
        Print all sets of features and baselines too.

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
    is_quiet.set(quiet)
    with interruptible(*([] if resume else ["--resume"])):
        from moerank.cli.progress import compile_kernels
        from moerank.mofsrank.dask_slices import connect
        from moerank.runs.run_folder import run_folds

        task, method, name = _load(problem, set_, backend, ranker, solver)
        folds = options.fold_numbers(fold) or [*range(1, task.n_folds(data) + 1)]
        out, folders = _folders(out, name, folds, seed, TREC if trec else ())
        compile_kernels([task.backend.name])
        results = []
        connection = connect(dask) if dask else nullcontext(workers)
        with connection as evaluators, reading("data") as status:
            for result in run_folds(
                task,
                method,
                folders,
                seed,
                data,
                resume=resume,
                again=again,
                trec=trec,
                workers=evaluators,
                progress=partial(_begin, status),
                say=remark,
            ):
                status.stop()
                results.append(result)
                if len(folders) == 1 and not (as_json or quiet):
                    _print(result, table=table)
                _draw_front(result, folders[result.fold])
        _show(results, out, as_json=as_json, trec=trec)


def _load(
    name: str,
    changes: list[str] | None,
    backend: str | None,
    ranker: str | None,
    solver: str | None,
) -> tuple[Problem, NamedSolver, str]:
    """Return the problem with the user's settings and backend, which is checked, the solver, and a name of the run."""
    from moerank.runs.problem import load_problem
    from moerank.runs.solver import NamedSolver

    settings = options.read_settings(changes)
    if ranker is not None:
        check_choice(SERVERS, ranker=ranker)
        settings["serve.rankers"] = SERVERS[ranker]
    problem = load_problem(name, settings)
    if backend is not None:
        problem = problem.with_backend(backend)
    find_backend(problem.backend.name, problem.backend.parameters)
    method = NamedSolver.parse(solver or problem.solver.name)
    is_default = method.label == problem.solver.name
    return problem, method, problem.name if is_default else f"{problem.name}-{solver}"


def _refuse_foreign(folders: set[Path], names: Iterable[str]) -> None:
    """Refuse to overwrite files that have the names of a run's files, but that no run wrote."""
    from moerank.runs.result import FILES, RESULT

    if any((folder / RESULT).exists() for folder in folders):
        return
    names = [*FILES, *names, *(f"{figure}.png" for figure in RUN_FIGURES)]
    for folder in folders:
        if foreign := [name for name in names if (folder / name).exists()]:
            raise ValueError(
                f"{folder} holds {' and '.join(foreign)}, which no run wrote; "
                "choose another folder with --out"
            )


def _begin(status: Status) -> AbstractContextManager[Progress]:
    """Show the progress of a fold instead of a status, because a terminal shows one bar at a time."""
    from moerank.cli.progress import StageProgress

    status.stop()
    return StageProgress()


def _print(result: Result, *, table: bool) -> None:
    """Print a result, with all of its sets of features for `table`."""
    from moerank.cli.tables import front_table, output, run_summary

    if table:
        output().print(front_table(result))
    say(run_summary(result))


def _draw_front(result: Result, folder: Path) -> None:
    from moerank.figures.style import save_figure  # only now, because it loads matplotlib

    save_figure(RUN_FIGURES["front"].draw(result), folder / FRONT_FIGURE)


def _folders(
    out: Path | None, name: str, folds: list[int], seed: int, further_files: Iterable[str]
) -> tuple[Path, dict[int, Path]]:
    """Return the folder of the results, and that of each fold; refuse folders with files of others."""
    is_single = len(set(folds)) == 1
    name = f"{name}-fold{folds[0]}" if is_single else name
    out = out or Path("results") / f"{name}-seed{seed}"
    folders = {fold: out if is_single else out / f"fold{fold}" for fold in folds}
    _refuse_foreign({out, *folders.values()}, further_files)
    return out, folders


def _show(results: list[Result], out: Path, *, as_json: bool, trec: bool) -> None:
    """Print the files and the next command of one fold; with --quiet, only the verdict."""
    from moerank.cli.tables import paragraph
    from moerank.runs.result import FILES

    if len(results) > 1:
        _show_folds(results, out, as_json=as_json)
        return
    [result] = results
    files = sorted([*FILES, FRONT_FIGURE, *(TREC if trec else ())])
    contents = f"Files in {out}: {', '.join(files)}"
    if as_json:
        options.print_json(result.model_dump(mode="json"))
    elif not is_quiet.get():
        say(f"{paragraph(contents)}\n{_next_step(result, out)}")
    elif result.verdict:
        say(f"{result.verdict.sentence}.")
    else:
        say(contents)


def _show_folds(results: list[Result], out: Path, *, as_json: bool) -> None:
    """Print the means of the solver and the baselines over several folds, or as JSON the numbers of each fold."""
    from moerank.cli.tables import output, paragraph, study_table
    from moerank.studies.results import Results

    runs = Results(results).with_baselines()
    if as_json:
        options.print_json(json.loads(runs.frame.to_json(orient="records", double_precision=15)))
        return
    if not is_quiet.get():
        table, finding = study_table(runs)
        output().print(table)
        say(paragraph(finding))
    say(f"Wrote to {out}: {', '.join(f'fold{result.fold}' for result in results)}")


def _next_step(result: Result, out: Path) -> str:
    """Return the next command that fits the decision: an export, or another ranker if all features are better."""
    from moerank.cli.tables import paragraph
    from moerank.exports.deployable import obstacles, refused_below_zero
    from moerank.exports.formats import FORMATS

    verdict, rival, decision = result.verdict, "", "none"
    if verdict:
        rival, decision = verdict.rival, verdict.decision
    if result.leaks:
        return paragraph(
            "Next: if that feature is known only afterwards, "
            "add it to exclude in [data], and run again"
        )
    if verdict and verdict.no_better_than_chance:
        return "  Next: check which columns hold the labels and the queries, or label more queries"
    if decision == "limits":
        return "  Next: raise the limits in [features] of the problem file, and run again"
    if decision in ("keep", "other") or (rival and decision != "none"):
        if "serve" not in result.configuration:
            label = "" if rival or decision == "other" else "label more queries, or "
            again = _other_ranker_command(result, out)
            return f"  Next: {label}try another ranker:\n  {again}"
        if decision == "keep":
            return "  Next: label more queries"
    model = result.model(result.best)
    if reasons := obstacles(model):
        return "\n".join(f"  No export: {reason}." for reason in reasons)
    label = ""
    if decision == "try":
        label = "label more queries, so that 30 or more validation queries decide, or\n  "
    export = shlex.join(["moerank", "export", str(out), "--format", next(iter(FORMATS))])
    remarks = [f"  {text}." for text in refused_below_zero(model.negative)]
    return "\n".join([f"  Next: {label}{export}", *remarks])


def _other_ranker_command(result: Result, out: Path) -> str:
    """Return the command with the alternative of the backend, or with LambdaMART if that is better."""
    entry = solver_entry(result.configuration["backend"]["name"])
    name = None if entry is None else getattr(entry.kind, "alternative", None)
    option = f"--backend={name}"
    verdict = result.verdict
    if name is None or (verdict and (verdict.rival or verdict.other)):
        name, option = "lambdamart", "--set=serve.rankers=lambdamart"
    words = [
        word
        for previous, word in pairwise(["", *command_line()])
        if "--out" not in (previous, word.partition("=")[0])
    ]
    return shlex.join([*words, option, "--out", f"{out}-{name}"])
