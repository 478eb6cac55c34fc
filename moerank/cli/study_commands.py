"""The commands moerank study and searches."""

import json
import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from moerank.cli import options
from moerank.cli.messages import interruptible, is_quiet, say
from moerank.solvers import split

if TYPE_CHECKING:
    from moerank.studies.study import Study


def study_command(
    problems: list[str],
    *,
    solvers: str = "",
    ablate: str | None = None,
    without: list[str] | None = None,
    seeds: options.Count = 1,
    folds: str = "all",
    workers: options.Count = 1,
    dask: str | None = None,
    data: Path | None = None,
    set_: list[str] | None = None,
    out: Path = Path("results/study"),
    retry_failed: bool = False,
    allow_code: options.AllowCode = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Run solvers on all folds of problems with several seeds, and compare them.

    A study is a folder with one file for each finished cell. A cell is one
    solver on one fold of a problem with one seed. You can run the same command
    again after an interruption, with more solvers or more seeds, or in two
    terminals at once: no finished cell runs twice. A failed cell does not
    stop the others; its message is printed at the end. The table shows the
    mean of each solver, its difference from a reference on the same test
    queries with the standard error, whether it is
    significant, and the seconds of a run.

    The exit code is 0 if all cells are finished, 1 if some failed, 2 after an
    error that stops the study (such as a full disk), 130 after Ctrl-C.

    Parameters
    ----------
    problems
        Problem files, or shipped problems.
    solvers
        Solvers separated by commas, or all; give parameters in brackets: NAME[key=value].
    ablate : SOLVER
        Add mofsrank or another search of its family, and variants without one of its parts.
    without : PART
        Part that a variant of --ablate leaves out; by default stages and adaptive mutation. Repeatable.
    seeds
        Runs of each randomised solver; the others run once.
    folds
        Folds separated by commas, or all.
    out
        Folder of the study.
    retry_failed
        Run failed cells again.

    Examples
    --------
    moerank study planted --solvers mofsrank,fsmrank,ranksvm-primal --seeds 3
    moerank study mq2008 ohsumed --data ~/letor --solvers gas-e,fenchelrank,fsmrank --ablate mofsrank --seeds 5
    moerank study digits --solvers fsmrank,"fsmrank[lambda1=0]" --folds 1,2
    moerank study mq2008 --solvers rankboost --dask tcp://scheduler:8786
    moerank study planted --ablate mofsrank-staircase --without crossover --without "growing population"
    moerank study planted --solvers mofsrank --set ensemble.generations=50 --quiet
    """
    is_quiet.set(quiet)
    with interruptible():
        from moerank.runs.solver import ablations
        from moerank.studies.study import Study

        if without and not ablate:
            raise ValueError(
                "--without leaves out a part of the solver of --ablate; add --ablate mofsrank"
            )
        study = Study(
            problems,
            split(solvers),
            out,
            folds=options.fold_numbers(folds),
            seeds=seeds,
            data=data,
            settings=options.read_settings(set_),
            ablate=ablations(ablate, without or ()) if ablate else {},
        )
        _run(study, workers, dask, retry_failed=retry_failed)
        _show_results(study, as_json=as_json)
        if study.failures():
            raise typer.Exit(1)


def _run(study: "Study", workers: int, dask: str | None, *, retry_failed: bool) -> None:
    from moerank.cli.progress import CellProgress, compile_kernels

    states = study.states()
    if retry_failed:
        states = {cell: "open" if state == "failed" else state for cell, state in states.items()}
    if "open" in states.values() and dask is None:
        compile_kernels(problem.backend.name for problem in study.problems)
    with CellProgress(states) as progress, warnings.catch_warnings():
        # The failures are shown below the results.
        warnings.filterwarnings("ignore", message=".* cells failed")
        study.run(workers=workers, dask=dask, retry_failed=retry_failed, done=progress)


def _show_results(study: "Study", *, as_json: bool) -> None:
    """Print the means over folds and seeds, then the failures."""
    from moerank.cli.tables import output, paragraph, study_table

    failures = study.failures()
    if as_json:
        cells = json.loads(study.frame().to_json(orient="records", double_precision=15))
        failed = [{"cell": cell.label, **failure} for cell, failure in failures.items()]
        options.print_json({"cells": cells, "failures": failed})
        return
    results = study.results()
    for problem in study.problems:
        if problem.name in results.problems and not is_quiet.get():
            table, finding = study_table(results.of(problem.name))
            output().print(table)
            say(paragraph(finding))
    for cell, failure in failures.items():
        say(f"failed: {cell.label}: {failure['error']}")
    if failures:
        say("The tracebacks are in the folder failures; --retry-failed runs these cells again.")
    say(f"{len(results)} of {len(study.cells())} cells are finished, in {study.out}")
    if results and not is_quiet.get():
        report = shlex.join(["moerank", "report", str(study.out)])
        say(f"Next: {report} (a page with all tests, figures and chosen features)")


def searches_command(
    problems: list[str],
    *,
    algorithms: str = "nsga2,staircase",
    objective: str = "error",
    evaluations: options.Count = 10_000,
    seeds: options.Count = 11,
    workers: options.Count = 1,
    dask: str | None = None,
    data: Path | None = None,
    out: Path = Path("results/searches"),
    allow_code: options.AllowCode = False,
) -> None:
    """Compare searches for feature subsets on the first fold of problems.

    All searches get the same problems, seeds and number of evaluations.
    Evaluations beyond this number do not count, and a run fails if it trains
    rankers that are not counted. Every search is tested against the last one
    named. Your own function gets the problem and returns a pymoo algorithm. The
    command prints the table of medians and writes searches.html, with all indicators,
    tests and figures. Finished runs are not repeated. The exit code is 1 if
    a run failed.

    Parameters
    ----------
    problems
        moerank-6, moerank-held-out, problem files or problems.
    algorithms
        Names of searches, or package.module:name of your own function; see below.
    objective
        error, or loss, whose best fronts can be proved.
    evaluations
        Evaluations of each run.
    seeds
        Runs of each search on each problem.
    out
        Folder of the study.

    Examples
    --------
    moerank searches moerank-6 --data ~/letor --algorithms nsga2,sparseea,daea,prdh,mffs,staircase --workers 2
    moerank searches digits planted --objective loss --algorithms nsga2,staircase
    moerank searches moerank-6 --algorithms my_search:make,nsga2 --allow-code
    """
    from moerank.cli.progress import CellProgress
    from moerank.studies.searches import SearchStudy, load_suite

    stages, references = load_suite(problems, data, objective=objective)
    study = SearchStudy(
        stages, split(algorithms), out, n_evaluations=evaluations, seeds=seeds, targets=references
    )
    with CellProgress(dict.fromkeys(study.cells(), "open")) as progress:
        study.run(workers=workers, dask=dask, done=progress)
    if study.runs():
        title = "hypervolume share, median (interquartile range), sign and A12"
        say(f"{title}\n\n{study.table().to_string()}\n")
        for sentence in study.sentences():
            say(sentence)
        say(f"wrote {study.report()}")
    if n_failed := len(study.cells()) - len(study.runs()):
        say(f"{n_failed} of {len(study.cells())} runs failed")
        raise typer.Exit(1)
