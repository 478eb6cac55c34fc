"""The command line: moerank run, study, report, plot, solvers and data describe."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moerank.cli.messages import interruptible, notice, sentences
from moerank.cli.report import PLOT_EXAMPLES, REPORT_EXAMPLES, plot, report
from moerank.cli.study import STUDY_EXAMPLES, study
from moerank.version import VERSION

if TYPE_CHECKING:
    from moerank.runs.problem import Problem
    from moerank.runs.result import RunResult

# The commands import what they need themselves: --help answers at once.

__all__ = ["app", "main"]

# An empty line here is a line break there.
RUN_EXAMPLES = """\
Examples:

moerank run digits

moerank run mq2008 --data ~/letor --fold all --workers 4

moerank run digits --set feature_selection.generations=200

moerank run digits --solver mofsrank-no-ensemble --seed 3

moerank run mq2008 --solver fsmrank --set solver.parameters.lambda2=0.01

moerank run my_problem.toml --backend ranksvm-primal --json

moerank run digits --resume
"""

DESCRIBE_EXAMPLES = """\
Examples:

moerank data describe MQ2008/Fold1

moerank data describe MQ2008/Fold1/train.txt --json
"""

app = typer.Typer(
    help="Feature selection for learning to rank by evolutionary multi-objective optimisation.",
    epilog="Begin with:  moerank run digits",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Look at ranking data.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.command(epilog=STUDY_EXAMPLES)(study)
app.command(epilog=REPORT_EXAMPLES)(report)
app.command(epilog=PLOT_EXAMPLES)(plot)


def main() -> None:
    """Run the command line."""
    warnings.showwarning = lambda message, *_: notice(f"warning: {message}")
    app()


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"moerank {VERSION}")
        raise typer.Exit


@app.command(epilog=RUN_EXAMPLES)
def run(
    problem: Annotated[str, typer.Argument(help="A problem file, or digits, planted, mq2008 or ohsumed.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder that holds the LETOR folders, else MOERANK_DATA, else ./data.", show_default=False),
    ] = None,
    fold: Annotated[str, typer.Option(help="1 to 5, or all.")] = "1",
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
        int, typer.Option(min=1, help="Threads, by default one a processor; the result is the same for any number.")
    ] = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the results, by default results/PROBLEM-foldF-seedS.", show_default=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run in its folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, nothing else.")] = False,
) -> None:
    """Select features on one fold of a problem, or on all five, and compare with the baselines.

    The table shows each member of the front, its number of features, and its
    metric and MAP on the training, validation and test queries, beside all
    features, the best single feature and FSMRank. The output folder gets
    result.json, front.csv, model.json, front.png, convergence.png and
    features.png. The very first run compiles its kernels, which takes about
    half a minute.
    """
    request = [problem]
    for name, value in (("--data", data), ("--solver", solver), ("--backend", backend), ("--out", out)):
        request += [name, str(value)] if value is not None else []
    request += [word for change in set_ or [] for word in ("--set", change)]
    request += ["--fold", fold, "--seed", str(seed), "--workers", str(workers), *(["--json"] if as_json else [])]
    with sentences(), interruptible(["moerank", "run", *request, "--resume"]):
        from moerank.runs.problem_files import load_problem
        from moerank.solvers import make_backend, make_solver

        overrides = dict(_override(change) for change in set_ or [])
        if backend is not None:
            overrides |= {"backend.name": backend}
        chosen = load_problem(problem, overrides)
        make_backend(chosen.backend.name, **chosen.backend.parameters)
        make_solver(solver)
        folds = _folds(fold)
        label = chosen.name if solver == "mofsrank" else f"{chosen.name}-{solver}"
        out = out or Path("results") / (f"{label}-seed{seed}" if fold == "all" else f"{label}-fold{fold}-seed{seed}")
        folders = {number: out / f"fold{number}" if fold == "all" else out for number in folds}
        settings = dict(solver=solver, seed=seed, workers=workers, data=data)
        results = _run_folds(chosen, folders, settings, resume=resume)
        _show(chosen, results, out, as_json=as_json)


@data_app.command(epilog=DESCRIBE_EXAMPLES)
def describe(
    path: Annotated[Path, typer.Argument(help="A LETOR file, or the folder of a fold.")],
    missing: Annotated[
        float | None, typer.Option(help="What the value NULL stands for; without it NULL is an error.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, nothing else.")] = False,
) -> None:
    """Count documents, queries, labels, pairs, and what deserves a look before anything is learnt."""
    with sentences():
        from moerank.data import describe as describe_data
        from moerank.data import load_fold, load_letor

        parts = load_fold(path, missing=missing) if path.is_dir() else [load_letor(path, missing=missing)]
        descriptions = [describe_data(part) for part in parts]
        if as_json:
            typer.echo(json.dumps([entry.as_dict() for entry in descriptions], indent=1, ensure_ascii=False))
            return
        from moerank.cli.tables import output
        from moerank.cli.tables.data import description_table

        output().print(description_table(str(path), descriptions))
        typer.echo("No value is NaN or infinite: such files are refused.")


@app.command()
def solvers(as_json: Annotated[bool, typer.Option("--json", help="Print JSON, nothing else.")] = False) -> None:
    """List the solvers: what they are, what they need, and who published them (--json names the paper)."""
    from moerank.solvers import solvers as table

    if as_json:
        keys = ("name", "family", "paper", "year", "linear", "selects", "needs", "backend")
        entries = [{key: getattr(entry, key) for key in keys} for entry in table().values()]
        typer.echo(json.dumps(entries, indent=1, ensure_ascii=False))
        return
    from moerank.cli.tables import output
    from moerank.cli.tables.solvers import solver_table

    output().print(solver_table(table().values()))


def _run_folds(
    problem: Problem, folders: dict[int, Path], settings: dict[str, Any], *, resume: bool
) -> list[RunResult]:
    """Run what is not finished; everything that can be refused is refused before the first fold begins."""
    from moerank.cli.progress import StageProgress
    from moerank.files import prepare_folder
    from moerank.kernels.compiled import is_on_disk
    from moerank.kernels.newton import newton_lanes
    from moerank.runs.result_files import CHECKPOINT, unfinished
    from moerank.runs.run_fold import run_fold

    for fold in folders:
        problem.load_fold(fold, settings["data"])
    for folder in folders.values():
        prepare_folder(folder)
    finished = {fold: _finished(problem, fold, folder, settings) for fold, folder in folders.items()}
    if resume and not any(finished[fold] or unfinished(folder) for fold, folder in folders.items()):
        notice("nothing to resume; starting from the beginning")
    if not is_on_disk(newton_lanes):
        notice("first run: the kernels are compiled for this machine, which takes about half a minute once")
    results = []
    for fold, folder in folders.items():
        result = finished[fold]
        if result is not None and resume:
            notice(f"{folder} holds the finished run; it is not run again")
        else:
            if result is not None:
                notice(f"{folder} holds a finished run of the same configuration; it will be replaced")
            if not resume:
                for checkpoint in unfinished(folder):
                    notice(f"starting anew; {checkpoint} of an interrupted run is removed (--resume would continue it)")
                    checkpoint.unlink()
            with StageProgress() as progress:
                result = run_fold(
                    problem, fold, **settings, checkpoint=folder / CHECKPOINT, resume=resume, progress=progress
                )
        _write(result, folder)
        results.append(result)
    return results


def _finished(problem: Problem, fold: int, folder: Path, settings: dict[str, Any]) -> RunResult | None:
    """Return the finished result in a folder; refuse a folder with another configuration's."""
    from moerank.runs.result_files import read_result
    from moerank.runs.run_fold import configuration

    result = read_result(folder)
    if result is None:
        return None
    here = _flat(configuration(problem, fold, settings["solver"], settings["seed"]))
    there = _flat(result.configuration)
    for key in [*here, *there]:
        if here.get(key) != there.get(key):
            raise ValueError(
                f"{folder} holds the result of another configuration ({key} is {there.get(key)} there and "
                f"{here.get(key)} here); choose another folder with --out, or remove it"
            )
    return result


def _write(result: RunResult, folder: Path) -> None:
    """Write all files of a fold."""
    from moerank.figures.of_run import draw_run_figures
    from moerank.runs.result_files import write_result

    write_result(result, folder)
    draw_run_figures(result, folder)


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
    from moerank.cli.tables.run import chosen_features, front_table, summary_table

    console = output()
    if len(results) > 1:
        console.print(summary_table(summary))
        console.print(f"Each fold has its own results, in {out / 'fold1'} and so on.", soft_wrap=True)
    else:
        console.print(front_table(results[0]))
        console.print(chosen_features(results[0]))
    files = ", ".join(sorted(path.name for path in out.iterdir() if path.is_file()))
    console.print(f"Wrote to {out}: {files}", soft_wrap=True)


def _override(change: str) -> tuple[str, Any]:
    """Read STAGE.KEY=VALUE; the value as TOML has it, else as text."""
    import tomllib

    key, equals, value = change.partition("=")
    if not equals or "." not in key:
        raise ValueError(f"--set {change}: write --set STAGE.KEY=VALUE, as in --set ensemble.generations=50")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


def _folds(fold: str) -> list[int]:
    from moerank.data.folds import N_FOLDS

    folds = list(range(1, N_FOLDS + 1))
    if fold == "all":
        return folds
    if fold not in map(str, folds):
        raise ValueError(f"--fold {fold}: there are folds 1 to {N_FOLDS}; all runs every one")
    return [int(fold)]


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings under dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat
