"""The commands moerank report and moerank plot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moerank.cli.messages import notice, sentences
from moerank.cli.options import AllowCode, Folder
from moerank.figures.of_study import FIGURES

if TYPE_CHECKING:
    from moerank.reports.report import Report


FORMATS = {"html": "report.html", "md": "report.md", "latex": "report.tex", "csv": "report.csv", "pairs": "pairs.csv"}


def report(
    folder: Folder,
    format_: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")] = "html",
    reference: Annotated[str | None, typer.Option(help="Solver to compare all others with.")] = None,
    metrics: Annotated[
        str,
        typer.Option(
            help="Metrics for the tables of results, separated by commas, as NDCG@1,NDCG@5,P@10,MAP,MeanNDCG.",
            show_default="those of the study",
        ),
    ] = "",
    out: Annotated[Path | None, typer.Option(help="File, by default report.* or pairs.csv in the folder.")] = None,
    allow_code: AllowCode = False,
) -> None:
    """Write a report of a study: results and published ones, tests, chosen features, ablations.

    Results of other tools are shown beside them, if the folder has a file
    external.csv with the columns problem, method, features, fold, and metrics
    of the test queries such as NDCG@10.

    The web page is one file that contains its figures and loads nothing. csv
    has a row for each run, and pairs for each test between two solvers. In
    both, a text that a spreadsheet would take for a formula begins with '.
    The report names missing and failed runs.

    Examples
    --------
    moerank report results/study
    moerank report results/study --format latex --out tables.tex
    moerank report results/study --format pairs
    moerank report results/study --reference rankrls --metrics NDCG@1,NDCG@5,MAP
    """
    with sentences():
        from moerank.checks import unknown
        from moerank.files import prepare_folder, remove_old_remains, replace_file
        from moerank.reports.report import Report
        from moerank.solvers import split
        from moerank.studies.study import Study

        if format_ not in FORMATS:
            raise ValueError(unknown("format", format_, FORMATS))
        path = out or folder / FORMATS[format_]
        content = Report(Study.load(folder), reference, split(metrics))
        prepare_folder(path.parent)
        remove_old_remains(path)
        replace_file(path, _written(content, format_).encode())
        if missing := content.n_missing:
            runs = "1 run is" if missing == 1 else f"{missing} runs are"
            notice(f"{runs} missing or failed; the report names {'it' if missing == 1 else 'them'}")
        notice(f"wrote {path}")


def plot(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(FIGURES)}.")],
    folder: Folder,
    problem: Annotated[
        str | None, typer.Option(help="Name of a problem; by default the first, or all for figures of several.")
    ] = None,
    solvers: Annotated[
        str,
        typer.Option(help="Solvers separated by commas, named as in moerank study.", show_default="all of the study"),
    ] = "",
    fold: Annotated[
        int | None, typer.Option(help="Number of the fold, for figures of a single one; by default the first.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Metric, for figures that take one; by default that of the error.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File; its ending is the format: png, pdf, svg.")] = None,
    allow_code: AllowCode = False,
) -> None:
    """Draw one figure of a study.

    Many solvers are divided by family into panels. A note below the figure
    names the solvers without data for it.

    Examples
    --------
    moerank plot accuracy results/study
    moerank plot fronts results/study --problem mq2008 --fold 2 --out fronts.pdf
    moerank plot ranks results/study --metric MAP --problem ohsumed
    moerank plot accuracy results/study --solvers mofsrank,fsmrank,gas-e
    """
    with sentences():
        from moerank.checks import unknown
        from moerank.figures import style
        from moerank.solvers import split
        from moerank.studies.external import with_external
        from moerank.studies.results import Results
        from moerank.studies.solver import Solver
        from moerank.studies.study import Study

        if name not in FIGURES:
            raise ValueError(unknown("figure", name, FIGURES))
        shown = FIGURES[name]
        study = Study.load(folder)
        results = Results(study.results())
        if not results:
            raise ValueError(f"{folder} has no finished cell yet; run the study first")
        known = {entry.name: entry for entry in with_external(study.problems, study.out)}
        if problem is not None and problem not in known:
            raise ValueError(unknown("problem", problem, known))
        chosen = problem or (next(iter(known)) if shown.of_problem else None)
        there = {solver.label for solver in study.solvers}
        labels = [text if text in there else Solver.parse(text).label for text in split(solvers)]
        figure = shown.draw(results, known[chosen] if chosen else None, solvers=labels, fold=fold, metric=metric)
        path = out or folder / f"{'-'.join(filter(None, (name, chosen)))}.png"
        style.save_figure(figure, path)
        notice(f"wrote {path}")


def _written(content: Report, format_: str) -> str:
    """Return the text of a report."""
    from moerank.cli.progress import StageProgress
    from moerank.files import harmless
    from moerank.reports.page import html_report
    from moerank.reports.tables import latex_report, markdown_report

    if format_ in ("csv", "pairs"):
        table = content.frame if format_ == "csv" else content.pairs
        return str(table.rename(columns=harmless).map(harmless).to_csv(index=False))
    write = {"html": html_report, "md": markdown_report, "latex": latex_report}[format_]
    with StageProgress() as progress:
        return write(content, progress)
