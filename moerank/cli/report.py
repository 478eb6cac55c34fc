"""The commands moerank report, plot and export, which turn results into reports, figures and models."""

from pathlib import Path
from typing import Annotated

import typer

from moerank.checks import Parameters, check_choice
from moerank.cli import options
from moerank.cli.messages import notice, say
from moerank.exports import formats
from moerank.figures import FIGURES, RUN_FIGURES, available_figures
from moerank.files import escape_formula, prepare_folder, replace_file
from moerank.solvers import split

REPORT_FILES = {
    "html": "report.html",
    "latex": "report.tex",
    "csv": "report.csv",
    "pairs": "pairs.csv",
}


def report_command(
    folder: Path,
    *,
    format_: Annotated[
        str, typer.Option("--format", help=f"One of {', '.join(REPORT_FILES)}.")
    ] = "html",
    reference: str | None = None,
    metrics: str = "",
    out: Path | None = None,
    allow_code: options.AllowCode = False,
) -> None:
    """Write a report of a study: its results beside published ones, tests, chosen features, ablations.

    The web page is one file with all figures, and loads nothing else. csv has
    a row for each run, pairs a row for each test between two solvers. In
    both, texts that look like formulas to a spreadsheet begin with '. The
    report lists missing and failed runs.

    Parameters
    ----------
    reference
        Solver to compare all others with.
    metrics
        Metrics in the tables, such as NDCG@1,P@10,MAP,MeanNDCG.
    out
        File; by default report.* or pairs.csv in the folder.

    Examples
    --------
    moerank report results/study
    moerank report results/study --format latex --out tables.tex
    moerank report results/study --format pairs
    moerank report results/study --reference rankrls --metrics NDCG@1,NDCG@5,MAP
    """
    from moerank.cli.progress import StageProgress
    from moerank.reports.rendering import html_report, latex_report
    from moerank.reports.study_report import Report
    from moerank.studies.study import Study

    check_choice(REPORT_FILES, format=format_)
    path = out or folder / REPORT_FILES[format_]
    content = Report(Study.load(folder), reference, split(metrics))
    prepare_folder(path.parent)
    if format_ == "html":
        with StageProgress() as progress:
            text = html_report(content, progress)
    elif format_ == "latex":
        text = latex_report(content)
    else:
        table = content.results.frame if format_ == "csv" else content.pairs
        text = table.rename(columns=escape_formula).map(escape_formula).to_csv(index=False)
    replace_file(path, text.encode())
    if content.n_missing:
        notice(f"missing or failed runs, listed in the report: {content.n_missing}")
    notice(f"wrote {path}")


def plot_command(
    name: Annotated[
        str, typer.Argument(help=f"One of {', '.join(FIGURES)}; of a run {', '.join(RUN_FIGURES)}.")
    ],
    folder: Path,
    *,
    problem: str | None = None,
    solvers: str = "",
    fold: int | None = None,
    metric: str | None = None,
    x: str | None = None,
    exact: bool = False,
    no_title: bool = False,
    width: Annotated[float, typer.Option(min=40)] = 86.36,
    names: str = "",
    out: Path | None = None,
    allow_code: options.AllowCode = False,
) -> None:
    """Draw one figure of a study, or of the run whose folder you name.

    If there are many solvers, a few have colours and the others are grey. A
    note below the figure names the solvers without data.

    Parameters
    ----------
    problem
        Problem; by default the first.
    solvers
        Solvers separated by commas; by default all.
    fold
        Fold, for figures of one fold; by default the first.
    metric
        Metric; by default the one that was optimised.
    x
        Count for hypervolume: evaluations or trained.
    exact
        For accuracy: exactly k features, not at most k.
    no_title
        Leave out the title if a caption replaces it.
    width
        Width in millimetres, such as 84.
    names : OLD=NEW,…
        Other names for solvers.
    out
        File; its ending sets the format: png, pdf or svg.

    Examples
    --------
    moerank plot accuracy results/study
    moerank plot convergence results/digits-fold1-seed0
    moerank plot fronts results/study --problem mq2008 --fold 2 --out fronts.pdf
    moerank plot cost results/study --metric MAP --problem ohsumed
    moerank plot accuracy results/study --solvers mofsrank,fsmrank,gas-e
    moerank plot accuracy results/study --exact --no-title --width 84 --names mofsrank=MOFSRank
    """
    from moerank.data.read import check_folder
    from moerank.figures.style import save_figure
    from moerank.runs.result import read_result
    from moerank.studies.study import Study

    paper = {
        "title": not no_title,
        "width": width,
        "names": dict(text.rpartition("=")[::2] for text in split(names)),
    }
    check_folder(folder, "name the folder of a run or of a study")
    result = read_result(folder)
    if result is None:
        study = Study.load(folder)
        settings: Parameters = {"exact": True} if exact else {}
        if x is not None:
            settings["count"] = x
        figure = study.plot(
            name, problem, solvers=split(solvers), fold=fold, metric=metric, paper=paper, **settings
        )
        name = f"{name}-{problem or study.problems[0].name}"
    elif exact or x or problem or solvers or fold or metric:
        raise ValueError(
            f"{folder} is one run; its figures take only --no-title, --width, --names and --out"
        )
    else:
        figures = available_figures(result)
        check_choice(figures, figure=name)
        figure = figures[name].draw(result, paper)
    path = save_figure(figure, out or folder / f"{name}.png")
    notice(f"wrote {path}")


def export_command(
    result: Path,
    *,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help=f"One of {', '.join(formats.FORMATS)}, or a format that a plug-in adds.",
        ),
    ],
    member: options.CountOrNone = None,
    out: Path | None = None,
    features: Path | None = None,
    name: str = "moerank",
    allow_code: options.AllowCode = False,
) -> None:
    """Export the chosen ranker, or another member of the front, to a search engine or as a function.

    The export includes the fitted scaling, so it scores raw values. It cannot
    include a scaling or a rule for missing values that depends on the other
    documents of a query: train with normalize = "minmax" or "standard", and
    give a number for missing. In feature names, characters other than ASCII
    letters, digits and _ become _, and a name that begins with a digit gets an
    f in front. The --features file sets other names, and defines how the
    engine computes each feature:

    ["BM25 of the title"]

    name = "bm25_title"

    solr = {class = "SolrFeature", params = {q = "{!field f=title}${user_query}"}}

    elasticsearch = {params = ["q"], template = {match = {title = "{{q}}"}}}

    vespa = "bm25(title)"

    The command prints how to upload the files and what to check.

    Parameters
    ----------
    member
        Number of the member in front.csv; by default the chosen one, the only one whose trees a run stores.
    out
        File of the model; by default a name for each format, in the folder of the run (for a cell, the current
        folder).
    features
        TOML file with names and definitions of the features in the search engine.
    name
        Name of the model in the other system.

    Examples
    --------
    moerank export results/shop-fold1-seed0 --format solr
    moerank export results/shop-fold1-seed0 --format elasticsearch --member 3 --name shop_v2
    moerank export results/shop-fold1-seed0 --format vespa --features features.toml --out moerank.profile
    moerank export results/study/cells/0123456789abcdef01234567.json --format onnx --out ranker.onnx
    """
    from moerank.runs.result import find_result

    file = formats.find_format(format_).file.format(name)
    run = find_result(result)
    index = run.chosen if member is None else member - 1
    if index >= len(run.front):
        raise ValueError(
            f"--member {member}: the front has {len(run.front)} members, see front.csv"
        )
    ranker = run.front[index]
    if ranker.weights is None and ranker.trees is None and run.best.trees is not None:
        size, limit = ranker.n_features, ""
        if size < run.best.n_features:
            limit = f"run again with max_features = {size} in [features], or "
        raise ValueError(
            f"--member {member}: a run stores the trees of the chosen member only; {limit}fit the "
            f"solver in Python, and call mr.export(solver, {format_!r}, member={index})"
        )
    path = out or (result if result.is_dir() else Path()) / file
    deployment = formats.export(run.model(ranker), format_, path, name=name, features=features)
    files = " and ".join(map(str, deployment.files))
    position = f"member {index + 1} of {len(run.front)}"
    if index == run.chosen:
        position += ", the chosen one"
    notice(f"wrote {files}: {position}, of {run.solver} on {run.problem}")
    say(deployment.next_step)
