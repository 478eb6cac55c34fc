"""moerank run: one solver on one fold of a problem, or on all, beside the baselines it has to beat."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moerank.cli.messages import interruptible, notice, printable, sentences
from moerank.systems import file_name, n_processors

if TYPE_CHECKING:
    from moerank.cluster import DaskCluster
    from moerank.runs.folders import FoldRuns
    from moerank.runs.problem import Problem
    from moerank.runs.result import RunResult

__all__ = ["RUN_EXAMPLES", "connected", "run"]

# An empty line here is a line break there.
RUN_EXAMPLES = """\
Examples:

moerank run digits

moerank run mq2008 --data ~/letor --fold all --workers 4

moerank run digits --set feature_selection.generations=200

moerank run digits --solver mofsrank-no-ensemble --seed 3

moerank run mq2008 --solver fsmrank --set solver.parameters.lambda2=0.01

moerank run my_problem.toml --backend ranksvm-primal --json

moerank run web --dask tcp://scheduler:8786

moerank run digits --resume
"""


def run(
    problem: Annotated[str, typer.Argument(help="A problem file, or digits, planted, web, mq2008, ohsumed or mslr.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder that holds the data, else MOERANK_DATA, else ./data.", show_default=False),
    ] = None,
    fold: Annotated[str, typer.Option(help="A number from 1, or all.")] = "1",
    solver: Annotated[str, typer.Option(help="What selects features; see moerank solvers.")] = "mofsrank",
    backend: Annotated[
        str | None,
        typer.Option(help="Ranker that judges each individual, in place of the problem's.", show_default=False),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="STAGE.KEY=VALUE", help="Change a value of the problem file; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random draws.")] = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Threads, by default one per processor; the result is the same for any number.")
    ] = n_processors(),
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Hold the training documents in shards on the workers of this Dask scheduler.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the results, by default results/PROBLEM-foldF-seedS.", show_default=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run in its folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, nothing else.")] = False,
) -> None:
    """Select features on one fold of a problem, or on all, and compare with the baselines.

    The table shows each member of the front, its number of features, and its
    metric and MAP on the training, validation and test queries, beside all
    features, the best single feature and FSMRank. The output folder gets
    result.json, front.csv, model.json, front.png, convergence.png and
    features.png. The very first run compiles its kernels, which takes about
    half a minute.

    The exit code is 0 if all is done, 1 if only the figures could not be
    drawn, 2 if the run cannot be or go on, 130 after Ctrl-C.
    """
    request = [problem]
    for name, value in (
        ("--data", data),
        ("--solver", solver),
        ("--backend", backend),
        ("--dask", dask),
        ("--out", out),
    ):
        request += [name, str(value)] if value is not None else []
    request += [word for change in set_ or [] for word in ("--set", change)]
    request += ["--fold", fold, "--seed", str(seed), "--workers", str(workers), *(["--json"] if as_json else [])]
    with sentences(), interruptible(["moerank", "run", *request, "--resume"]):
        from moerank.runs.folders import FoldRuns
        from moerank.runs.problem_files import load_problem
        from moerank.runs.solver_spec import read_solver
        from moerank.solvers import make_backend

        overrides = dict(_override(change) for change in set_ or [])
        if backend is not None:
            overrides |= {"backend.name": backend}
        chosen = load_problem(problem, overrides)
        if dask is not None:
            chosen = chosen.in_shards()
        make_backend(chosen.backend.name, **chosen.backend.parameters)
        asked = read_solver(solver)
        folds = _folds(fold, chosen.n_folds(data))
        several = len(folds) > 1
        label = file_name(chosen.name if solver == "mofsrank" else f"{chosen.name}-{solver}")
        out = out or Path("results") / (f"{label}-seed{seed}" if several else f"{label}-fold{folds[0]}-seed{seed}")
        folders = {number: out / f"fold{number}" if several else out for number in folds}
        runs = FoldRuns(chosen, asked, folders, seed, data)
        with connected(dask) as cluster:
            results, undrawn = _run(runs, workers if cluster is None else 1, cluster, resume=resume)
        _show(chosen, results, out, as_json=as_json)
        if undrawn:
            notice(undrawn)
            raise typer.Exit(1)


def connected(address: str | None) -> AbstractContextManager[DaskCluster | None]:
    """Return the Dask cluster at an address; none without one."""
    if address is None:
        return nullcontext()
    from moerank.cluster import DaskCluster

    return DaskCluster(address)


def _run(runs: FoldRuns, workers: int, cluster: DaskCluster | None, *, resume: bool) -> tuple[list[RunResult], str]:
    """Run what is not finished, and draw each fold once its result is on disk; return also what could not be drawn."""
    from moerank.cli.progress import StageProgress
    from moerank.kernels.compiled import is_on_disk
    from moerank.kernels.newton import newton_lanes

    if not is_on_disk(newton_lanes):
        notice("first run: the kernels are compiled for this machine, which takes about half a minute once")
    results, undrawn = [], ""
    for result in runs.run(resume=resume, workers=workers, progress=StageProgress, say=notice, cluster=cluster):
        results.append(result)
        undrawn = _draw(result, runs.folders[result.fold]) or undrawn
    return results, undrawn


def _draw(result: RunResult, folder: Path) -> str:
    """Draw the figures of a result that is on disk; return why they could not be drawn, if they could not."""
    try:
        from moerank.figures.of_run import draw_run_figures

        draw_run_figures(result, folder)
    except Exception as error:  # whatever is wrong with a library of figures: the result must not be lost over it
        reason = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        return f"error: the figures could not be drawn ({' '.join(reason.split())}); the result is in {folder}"
    return ""


def _show(problem: Problem, results: list[RunResult], out: Path, *, as_json: bool) -> None:
    """Print the table of one fold, or the means over several."""
    from moerank.analysis.summary import summarise
    from moerank.files import replace_file

    if len(results) > 1:
        summary = summarise(results, problem.published)
        text = json.dumps(summary.as_dict(), indent=1, ensure_ascii=False) + "\n"
        replace_file(out / "summary.json", text.encode())
    if as_json:
        typer.echo(text if len(results) > 1 else results[0].to_json(), nl=False)
        return
    from moerank.cli.tables import output
    from moerank.cli.tables.run import UNITS, chosen_features, front_table, summary_table

    console = output()
    if len(results) > 1:
        console.print(summary_table(summary))
        console.print(f"Each fold has its own results, in {out / 'fold1'} and so on.", soft_wrap=True)
    else:
        console.print(front_table(results[0]))
        console.print(printable(chosen_features(results[0])))
        if results[0].verdict is not None:
            console.print(printable(f"Verdict: {results[0].verdict.sentence}."), soft_wrap=True)
        if results[0].instances in UNITS:
            console.print(UNITS[results[0].instances])
    files = ", ".join(sorted(path.name for path in out.iterdir() if path.is_file()))
    console.print(f"Wrote to {out}: {files}", soft_wrap=True)


def _override(change: str) -> tuple[str, Any]:
    """Read STAGE.KEY=VALUE; the value as TOML has it, else as text."""
    import tomllib

    from moerank.runs.problem_files import LONGEST_LINE

    key, equals, value = change.partition("=")
    if not equals or "." not in key:
        raise ValueError(f"--set {change}: write --set STAGE.KEY=VALUE, as in --set ensemble.generations=50")
    if max(len(key), len(value)) > LONGEST_LINE:
        raise ValueError(f"--set {key[:40]}: more than {LONGEST_LINE:,} characters")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        return key, value


def _folds(fold: str, n_folds: int) -> list[int]:
    folds = list(range(1, n_folds + 1))
    if fold == "all":
        return folds
    if fold not in map(str, folds):
        there = f"folds 1 to {n_folds}; all runs every one" if n_folds > 1 else "only fold 1"
        raise ValueError(f"--fold {fold}: there {'are' if n_folds > 1 else 'is'} {there}")
    return [int(fold)]
