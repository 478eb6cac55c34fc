"""The command moerank run: one solver on one fold of a problem, or on all folds, with baselines."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moerank.cli import options
from moerank.cli.messages import interruptible, is_quiet, keep, notice, remark, say, sentences, speaking

if TYPE_CHECKING:
    from moerank.data import RankingData
    from moerank.studies.problem import Problem
    from moerank.studies.result import Result


SUMMARY = "summary.json"
TREC = ("test.qrels", "test.run")


def run(
    problem: options.ProblemName,
    data: options.Data = None,
    fold: Annotated[str, typer.Option(help="A number from 1, or all.")] = "1",
    solver: options.SolverName = None,
    backend: Annotated[
        str | None, typer.Option(help="Ranker that evaluates individuals, instead of that of the problem.")
    ] = None,
    set_: options.Settings = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random draws.")] = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Number of threads, by default one per processor; it does not change the result.")
    ] = options.n_processors(),
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Evaluate individuals on the workers of this Dask scheduler."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results, by default results/PROBLEM-foldF-seedS.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run in its folder.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Repeat a finished run; otherwise its result is shown.")
    ] = False,
    member: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            metavar="MEMBER",
            help="Compare this member of the front with the chosen one on the test queries, or two members with each "
            "other: --member 3 --member 7.",
        ),
    ] = None,
    trec: Annotated[
        bool, typer.Option("--trec", help="Write the ranking of the test queries as test.run, and test.qrels.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(help="TREC run of another tool to compare with the chosen member on the test queries."),
    ] = None,
    allow_code: options.AllowCode = False,
    quiet: options.Quiet = False,
    log: options.Log = None,
    as_json: options.AsJson = False,
) -> None:
    """Select features on one fold of a problem, or on all, and compare them with baselines.

    The table shows the number of features of each member of the front, with
    its metric and MAP on the training, validation and test queries. Below are
    all features, the best single feature and FSMRank. The output folder gets
    result.json, front.csv, model.json, front.png, convergence.png and
    features.png; foreign files of these names are never replaced. The very
    first run compiles kernels, which takes some twenty seconds. --quiet
    prints only the verdict and errors. A finished run in the folder is
    shown and not repeated, unless its data have changed.

    The exit code is 0 after success, 1 if only the figures could not be
    drawn, 2 after an error, 130 after Ctrl-C.

    Examples
    --------
    moerank run digits
    moerank run mq2008 --data ~/letor --fold all --workers 4
    moerank run digits --set feature_selection.generations=200
    moerank run digits --solver mofsrank-no-ensemble --seed 3
    moerank run mq2008 --solver fsmrank --set solver.parameters.lambda2=0.01
    moerank run my_problem.toml --backend ranksvm-primal --json
    moerank run web --dask tcp://scheduler:8786
    moerank run digits --resume
    moerank run digits --member 3 --member 7
    moerank run mq2008 --trec --against bm25.run
    """
    command = ["moerank", *sys.argv[1:]]
    continued = command if "--resume" in command else [*command, "--resume"]
    with speaking(quiet=quiet, log=log, command=command), sentences(), interruptible(continued):
        from moerank.data.dask import connect
        from moerank.solvers import find_backend
        from moerank.studies.problem import load_problem
        from moerank.studies.result import RESULT
        from moerank.studies.run_folder import run_folds, write_trec
        from moerank.studies.solver import Solver

        overrides = options.read_settings(set_ or [])
        if backend is not None:
            overrides |= {"backend.name": backend}
        chosen = load_problem(problem, overrides)
        find_backend(chosen.backend.name, chosen.backend.parameters)
        asked = Solver.parse(solver or chosen.solver.name)
        folds = _folds(fold, chosen.n_folds(data))
        several = len(folds) > 1
        members = member or []
        if len(members) > 2:
            raise ValueError(f"--member: name one member to compare with the chosen one, or two, not {len(members)}")
        if (members or against) and (several or as_json):
            raise ValueError("--member and --against compare on a single fold in words; omit --fold all and --json")
        tests = {number: chosen.load_limited_fold(number, data)[0][2] for number in folds if trec or members or against}
        if trec or against is not None:
            _check_trec(tests.values(), against)
        label = chosen.name if asked.label == chosen.solver.name else f"{chosen.name}-{solver}"
        out = out or Path("results") / (f"{label}-seed{seed}" if several else f"{label}-fold{folds[0]}-seed{seed}")
        folders = {number: out / f"fold{number}" if several else out for number in folds}
        _refuse_foreign(folders.values(), out, TREC if trec else ())
        resume = resume or (bool(members or against) and (out / RESULT).exists())
        with connect(dask) if dask else nullcontext(workers) as evaluators:
            runs = partial(run_folds, chosen, asked, folders, seed, data, workers=evaluators)
            results, written, undrawn = _run(partial(runs, resume=resume, again=again, say=remark), folders)
        for result in results if trec else ():
            write_trec(result, tests[result.fold], folders[result.fold])
        written = sorted([*written, *(TREC if trec else ())])
        _show(chosen, results, out, written, as_json=as_json, compared=bool(members or against))
        if members or against:
            _compare(chosen, results[0], members, against, tests[folds[0]])
        if undrawn:
            notice(undrawn)
            raise typer.Exit(1)


def _refuse_foreign(folders: Collection[Path], out: Path, further: Iterable[str]) -> None:
    """Refuse to replace files that have the names of a run's files, but come from elsewhere."""
    from moerank.figures.of_run import RUN_FIGURES
    from moerank.studies.result import FILES, is_of_a_run

    mine = [*FILES, *further, *(f"{name}.png" for name in RUN_FIGURES)]
    names = dict.fromkeys(folders, mine)
    if out not in names and not any(map(is_of_a_run, folders)):
        names[out] = [SUMMARY]
    for folder, own in names.items():
        there = [name for name in own if (folder / name).exists()]
        if there and not is_of_a_run(folder):
            raise ValueError(
                f"{folder} holds {' and '.join(there)}, but not from a run; choose another folder with --out"
            )


def _compare(problem: Problem, result: Result, members: list[int], run: Path | None, test: RankingData) -> None:
    """Print the comparison of a member with another, or with the chosen one, and of that with a TREC run."""
    from moerank.studies.run_folder import compare_members, compare_with_run

    metric, margin = problem.metric.make(), problem.search.margin
    lines = []
    if members:
        first, second = members if len(members) == 2 else (members[0], result.chosen + 1)
        lines.append(compare_members(result, first, second, test, metric, margin=margin))
    if run is not None:
        lines.append(compare_with_run(result, run, test, metric, margin=margin))
    for line in lines:
        keep(line)
        say(f"{line}.")


def _check_trec(tests: Iterable[RankingData], run: Path | None) -> None:
    """Refuse test queries without ids of documents, and a malformed run, before the work."""
    from moerank.data.trec import document_keys, read_run

    for test in tests:
        document_keys(test)
        if run is not None:
            read_run(run, test)


def _run(runs: Callable[..., Iterator[Result]], folders: Mapping[int, Path]) -> tuple[list[Result], list[str], str]:
    """Run the folds that are not finished, and draw each; return results, names of files, and why drawing failed."""
    from moerank.cli.progress import StageProgress, compiled
    from moerank.figures.of_run import draw_run_figures
    from moerank.studies.result import FILES

    results, undrawn = [], ""
    drawn: list[str] = []
    with compiled(("front",), ("baselines",)):
        for result in runs(progress=StageProgress):
            results.append(result)
            try:
                drawn = [path.name for path in draw_run_figures(result, folders[result.fold])]
            except Exception as error:  # no error of a plotting library may lose the result
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                undrawn = f"error: the figures could not be drawn ({reason}); the result is in {folders[result.fold]}"
    return results, sorted([*FILES, *drawn]), undrawn


def _show(
    problem: Problem, results: list[Result], out: Path, written: list[str], *, as_json: bool, compared: bool
) -> None:
    """Print the table of one fold, or the means over several; with --quiet one line, unless members are compared."""
    from moerank.files import replace_file
    from moerank.studies.comparison import summarise

    if len(results) > 1:
        summary = summarise(results, problem.published)
        text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
        replace_file(out / SUMMARY, text.encode())
    if as_json:
        typer.echo(text if len(results) > 1 else results[0].to_json(), nl=False)
        return
    from moerank.cli.tables import UNITS, chosen_features, front_table, output, summary_table

    for result in results:
        keep(f"fold {result.fold}: {result.verdict.sentence}" if result.verdict else f"fold {result.fold} is done")
    last = f"Wrote to {out}: {SUMMARY if len(results) > 1 else ', '.join(written)}"
    keep(last)
    result, *others = results
    verdict = f"{result.verdict.sentence}." if result.verdict and not others else ""
    if is_quiet():
        if not compared:
            say(verdict or last)
        return
    if others:
        output().print(summary_table(summary, problem.published))
        say(f"The results of each fold are in {out / 'fold1'} and so on.\n{last}")
        return
    if verdict:
        say(f"Verdict: {verdict}")
    say(chosen_features(result))
    output().print(front_table(result))
    if result.instances in UNITS:
        say(UNITS[result.instances])
    if search := result.convergence.get("feature_selection"):
        say(
            f"The second half of the {search.evaluations[-1]:,} evaluations of feature selection added "
            f"{search.last_half:.1%} of the front's hypervolume on training queries. "
            "A further doubling mostly adds less."
        )
    say(f"{last}\n{_next(result, out)}")


def _next(result: Result, out: Path) -> str:
    """Return the next command, or all obstacles to it."""
    from moerank.exports.deployable import obstacles
    from moerank.exports.formats import FORMATS

    first, *others = FORMATS
    if reasons := obstacles(result.model(result.best)):
        return "\n".join(f"No export: {reason}." for reason in reasons)
    return f"Next: {shlex.join(['moerank', 'export', str(out), '--format', first])} (or {', '.join(others)})"


def _folds(fold: str, n_folds: int) -> list[int]:
    folds = list(range(1, n_folds + 1))
    if fold == "all":
        return folds
    if fold not in map(str, folds):
        there = f"are folds 1 to {n_folds}, or all" if n_folds > 1 else "is only fold 1"
        raise ValueError(f"--fold {fold}: there {there}")
    return [int(fold)]
