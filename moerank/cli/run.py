"""The command moerank run: one solver on one fold of a problem, or on all folds, with baselines."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moerank.cli.messages import interruptible, is_quiet, keep, notice, printable, remark, sentences, speaking
from moerank.cli.options import (
    AllowCode,
    AsJson,
    Data,
    Log,
    Quiet,
    Settings,
    complete_problem,
    complete_solver,
    n_processors,
    read_settings,
)

if TYPE_CHECKING:
    from distributed import Client

    from moerank.data import RankingData
    from moerank.reports.live import LiveView
    from moerank.studies.problem import Problem
    from moerank.studies.result import Result


SUMMARY = "summary.json"
TREC = ("test.qrels", "test.run")
LIVE = ("live.html", "live.js")


def run(
    problem: Annotated[
        str,
        typer.Argument(
            help="A problem file, or a shipped problem such as digits or mq2008.", autocompletion=complete_problem
        ),
    ],
    data: Data = None,
    fold: Annotated[str, typer.Option(help="A number from 1, or all.")] = "1",
    solver: Annotated[
        str | None,
        typer.Option(
            help="Name of a solver; moerank solvers lists them. By default that of the problem file, in which moerank "
            "init writes the recommended one, else mofsrank.",
            autocompletion=complete_solver,
        ),
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="Ranker that evaluates individuals, instead of that of the problem.")
    ] = None,
    set_: Settings = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random draws.")] = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Number of threads, by default one per processor; it does not change the result.")
    ] = n_processors(),
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
    live: Annotated[
        bool,
        typer.Option("--live", help="Show the front as it grows on a page, live.html in the folder of the results."),
    ] = False,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
    log: Log = None,
    as_json: AsJson = False,
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
        from moerank.solvers import make_backend
        from moerank.studies.folders import run_folds, write_trec
        from moerank.studies.problem import load_problem
        from moerank.studies.result_files import RESULT
        from moerank.studies.solver import Solver

        overrides = read_settings(set_ or [])
        if backend is not None:
            overrides |= {"backend.name": backend}
        chosen = load_problem(problem, overrides)
        make_backend(chosen.backend.name, **chosen.backend.parameters)
        asked = Solver.parse(solver or chosen.solver.name)
        folds = _folds(fold, chosen.n_folds(data))
        several = len(folds) > 1
        _check_members(member or [], several=several, as_json=as_json)
        if against is not None and (several or as_json):
            raise ValueError("--against compares the member of a single fold in words; omit --fold all and --json")
        tests = {number: chosen.load_limited_fold(number, data)[0][2] for number in folds if trec or member or against}
        if trec or against is not None:
            _check_trec(tests.values(), against)
        label = chosen.name if asked.label == chosen.solver.name else f"{chosen.name}-{solver}"
        out = out or Path("results") / (f"{label}-seed{seed}" if several else f"{label}-fold{folds[0]}-seed{seed}")
        folders = {number: out / f"fold{number}" if several else out for number in folds}
        _refuse_foreign(folders.values(), out, TREC if trec else ())
        resume = resume or (bool(member or against) and (out / RESULT).exists())
        with connected(dask) as cluster, _shown(live, f"{label}, seed {seed}", out, folds, continued) as view:
            runs = partial(
                run_folds, chosen, asked, folders, seed, data, workers=workers if cluster is None else cluster
            )
            results, written, undrawn = _run(partial(runs, resume=resume, again=again, say=remark), folders, view)
        for result in results if trec else ():
            write_trec(result, tests[result.fold], folders[result.fold])
        written = sorted([*written, *(TREC if trec else ()), *(LIVE if live else ())])
        _show(chosen, results, out, written, as_json=as_json, compared=bool(member or against))
        if member or against:
            _compare(chosen, results[0], member or [], against, tests[folds[0]])
        if undrawn:
            notice(undrawn)
            raise typer.Exit(1)


def _check_members(members: list[int], *, several: bool, as_json: bool) -> None:
    if len(members) > 2:
        raise ValueError(f"--member: name one member to compare with the chosen one, or two, not {len(members)}")
    if members and (several or as_json):
        raise ValueError("--member compares members of a single fold in words; omit --fold all and --json")


def _refuse_foreign(folders: Iterable[Path], out: Path, further: Iterable[str]) -> None:
    """Refuse to replace files that have the names of a run's files, but come from elsewhere."""
    from moerank.studies.result_files import FILES, is_of_a_run

    mine = [*FILES, *further]
    with suppress(ImportError):  # without matplotlib no figure replaces a file
        from moerank.figures.of_run import RUN_FIGURES

        mine += [f"{name}.png" for name in RUN_FIGURES]
    places = dict.fromkeys(folders, mine)
    if out not in places and not any(map(is_of_a_run, places)):
        places[out] = [SUMMARY]
    for folder, names in places.items():
        there = [name for name in names if (folder / name).exists()]
        if there and not is_of_a_run(folder):
            raise ValueError(
                f"{folder} holds {' and '.join(there)}, but not from a run; choose another folder with --out"
            )


def _compare(problem: Problem, result: Result, members: list[int], run: Path | None, test: RankingData) -> None:
    """Print the comparison of a member with another, or with the chosen one, and of that with a TREC run."""
    from moerank.cli.tables import output, say
    from moerank.studies.folders import compare_members, compare_with_run

    metric, margin = problem.metric.make(), problem.search.margin
    sentences = []
    if members:
        first, second = members if len(members) == 2 else (members[0], result.chosen + 1)
        sentences.append(compare_members(result, first, second, test, metric, margin=margin))
    if run is not None:
        sentences.append(compare_with_run(result, run, test, metric, margin=margin))
    for sentence in sentences:
        keep(sentence)
        say(output(), f"{sentence}.")


def _check_trec(tests: Iterable[RankingData], run: Path | None) -> None:
    """Refuse test queries without ids of documents, and a malformed run, before the work."""
    from moerank.data.logs.judgments import document_keys, read_run

    for test in tests:
        document_keys(test)
        if run is not None:
            read_run(run, test)


def connected(address: str | None) -> AbstractContextManager[Client | None]:
    """Return a client of the Dask scheduler at an address; none without one."""
    if address is None:
        return nullcontext()
    from moerank.mofsrank.dask_slices import connect

    return connect(address)


@contextmanager
def _shown(live: bool, title: str, out: Path, folds: list[int], again: list[str]) -> Iterator[LiveView | None]:
    """Open the page of a run, if it is asked for."""
    if not live:
        yield None
        return
    from moerank.files import prepare_folder
    from moerank.mofsrank.searching import watching
    from moerank.reports.live import EVERY, LiveView, opened, written_to

    prepare_folder(out)
    page = out / LIVE[0]
    with LiveView(title, written_to(page), EVERY, folds, shlex.join(again)) as view, watching(view.grow):
        remark(f"live view: {opened(page)}")
        yield view


def _run(
    runs: Callable[..., Iterator[Result]], folders: Mapping[int, Path], view: LiveView | None
) -> tuple[list[Result], list[str], str]:
    """Run the folds that are not finished, and draw each; return results, names of files, and why drawing failed."""
    from moerank.cli.progress import StageProgress, compiled
    from moerank.studies.result_files import FILES

    results, undrawn = [], ""
    drawn: list[str] = []
    progress = partial(StageProgress, None if view is None else view.hear)
    with compiled(("front",), ("baselines",)):
        for result in runs(progress=progress):
            results.append(result)
            if view is not None:
                view.finish(result, folders[result.fold])
            drawn, failed = _draw(result, folders[result.fold])
            undrawn = failed or undrawn
    return results, sorted([*FILES, *drawn]), undrawn


def _draw(result: Result, folder: Path) -> tuple[list[str], str]:
    """Draw the figures of a stored result; return the names of their files, or why drawing failed."""
    try:
        from moerank.figures.of_run import draw_run_figures

        return [path.name for path in draw_run_figures(result, folder)], ""
    except Exception as error:  # no error of a plotting library may lose the result
        reason = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        return [], f"error: the figures could not be drawn ({' '.join(reason.split())}); the result is in {folder}"


def _show(
    problem: Problem, results: list[Result], out: Path, written: list[str], *, as_json: bool, compared: bool
) -> None:
    """Print the table of one fold, or the means over several; with --quiet one line, unless members are compared."""
    from moerank.files import replace_file
    from moerank.studies.summary import summarise

    if len(results) > 1:
        summary = summarise(results, problem.published)
        text = json.dumps(summary.as_dict(), indent=1, ensure_ascii=False) + "\n"
        replace_file(out / SUMMARY, text.encode())
    if as_json:
        typer.echo(text if len(results) > 1 else results[0].to_json(), nl=False)
        return
    from moerank.cli.tables import UNITS, chosen_features, front_table, output, say, summary_table

    console = output()
    for result in results:
        keep(f"fold {result.fold}: {result.verdict.sentence}" if result.verdict else f"fold {result.fold} is done")
    last = f"Wrote to {out}: {SUMMARY if len(results) > 1 else ', '.join(written)}"
    keep(last)
    verdict = results[0].verdict if len(results) == 1 else None
    if is_quiet():
        if not compared:
            say(console, f"{verdict.sentence}." if verdict else last)
        return
    if len(results) > 1:
        console.print(summary_table(summary))
        console.print(printable(f"The results of each fold are in {out / 'fold1'} and so on."), soft_wrap=True)
    else:
        if verdict:
            say(console, f"Verdict: {verdict.sentence}.")
        say(console, chosen_features(results[0]))
        console.print(front_table(results[0]))
        if results[0].instances in UNITS:
            say(console, UNITS[results[0].instances])
        if search := results[0].convergence.get("feature_selection"):
            say(
                console,
                f"The second half of the {search.evaluations[-1]:,} evaluations of feature selection added "
                f"{search.last_half:.1%} of the front's hypervolume on training queries. "
                "A further doubling mostly adds less.",
            )
    console.print(printable(last), soft_wrap=True)
    if len(results) == 1:
        console.print(printable(_next(results[0], out)), soft_wrap=True)


def _next(result: Result, out: Path) -> str:
    """Return the next command, or all obstacles to it."""
    from moerank.exports.deployable import obstacles
    from moerank.exports.formats import FORMATS

    first, *others = FORMATS
    if found := obstacles(result.model(result.best)):
        return "\n".join(f"No export: {reason}." for reason in found)
    return f"Next: {shlex.join(['moerank', 'export', str(out), '--format', first])} (or {', '.join(others)})"


def _folds(fold: str, n_folds: int) -> list[int]:
    folds = list(range(1, n_folds + 1))
    if fold == "all":
        return folds
    if fold not in map(str, folds):
        there = f"are folds 1 to {n_folds}, or all" if n_folds > 1 else "is only fold 1"
        raise ValueError(f"--fold {fold}: there {there}")
    return [int(fold)]
