"""Reports as a single web page with its style, scripts, figures and data, and the tables of reports as LaTeX."""

import re
from contextlib import suppress

import jinja2
import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from moerank.figures import SEARCH_FIGURES
from moerank.figures.panels import best_of_families
from moerank.figures.style import encode
from moerank.reports.study_report import Report, ReportSection, ReportTable, illustrations, sections
from moerank.runs.problem import Problem
from moerank.runs.result import PARTS, Member
from moerank.runs.run_fold import Progress
from moerank.studies.results import NoResultsError, Results, by_validation
from moerank.studies.searches import QUALITIES, SearchStudy

# Cells with more characters get a minimum width.
MIN_WIDTH_LENGTH = 40


def html_report(report: Report, progress: Progress | None = None) -> str:
    """Return the page with sortable tables, figures and an explorer of fronts; it loads no other files.

    ``progress("page", fraction, title)`` is called after each section.
    """
    contents = []
    reported = list(sections(report))
    for section in reported:
        figures = [
            (name, _svg(name, figure), caption)
            for name, (figure, caption) in illustrations(report, section).items()
        ]
        contents.append((section, figures))
        if progress is not None:
            progress("page", len(contents) / len(reported), section.title)
    fronts = {problem.name: explorer_data(report, problem) for problem in report.problems}
    return _page(title=report.title, contents=contents, fronts=fronts)


def _page(**content: object) -> str:
    files = jinja2.PackageLoader("moerank.reports", "")
    environment = jinja2.Environment(
        autoescape=True, loader=files, trim_blocks=True, keep_trailing_newline=True
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters["html"] = _html
    return environment.get_template("page.html").render(**content)


def searches_page(study: SearchStudy) -> str:
    """Return the page of a study of searches: its findings, tables of all indicators, and all figures."""
    tables = {
        f"{name}: median (quartile range), sign and A12": study.table(quality=name)
        for name in QUALITIES
    }
    tables["Evaluations until a hypervolume share is reached"] = (
        study.expected_runtimes().reset_index("target")
    )
    frames = {text: table.rename_axis("problem").reset_index() for text, table in tables.items()}
    frames["Signed-rank tests of the hypervolume share, with Holm's method"] = study.tests()
    frames["Runs"] = study.frame()
    section = ReportSection("Searches", paragraphs=study.sentences())
    for caption, frame in frames.items():
        name = f"table-{len(section.tables)}"
        section.tables.append(ReportTable(name, caption, frame))
    figures = []
    for name in SEARCH_FIGURES:
        with suppress(NoResultsError):  # such as too few problems for ranks
            figures.append((name, _svg(name, study.plot(name)), name.capitalize()))
    title = f"Searches on {', '.join(study.targets())}"
    return _page(title=title, contents=[(section, figures)], fronts={})


def explorer_data(report: Report, problem: Problem) -> dict[str, object]:
    """Return the data of the explorer of fronts for a problem.

    ``shown`` lists the indices of the solvers to show at first, see `best_of_families`. A run is a list of the index of
    its solver, fold, seed, index of the chosen member, file, and members. A member is a list of its features, its
    scores by part and metric, and its further objectives.
    """
    results = report.of(problem)
    solvers = results.solvers
    visible = best_of_families(results, by_validation(results) or solvers)
    files = {}
    for cell in report.study.cells():
        if cell.problem.name == problem.name:
            files[cell.solver.label, cell.fold, cell.seed] = f"cells/{cell.key}.json"
    runs = []
    for run in results:
        members = [_explorer_row(member, results) for member in run.front]
        file = files.get((run.solver, run.fold, run.seed), "")
        runs.append((solvers.index(run.solver), run.fold, run.seed, run.chosen, file, members))
    return {
        "metrics": results.metrics,
        "names": results[0].feature_names,
        "further": results.further_objectives,
        "solvers": solvers,
        "shown": [index for index, solver in enumerate(solvers) if solver in visible],
        "runs": runs,
    }


def _explorer_row(member: Member, results: Results) -> list[object]:
    """Return the features of a member, its scores and further objectives with four decimals."""
    scores = [member.scores[part].get(metric) for part in PARTS for metric in results.metrics]
    scores += [member.objectives.get(name) for name in results.further_objectives]
    return [member.features, *(None if score is None else round(score, 4) for score in scores)]


def _html(table: ReportTable) -> Markup:
    """Return a table as HTML by pandas, with a class for each kind of cell."""
    classes = table.texts.map(lambda text: "long" if len(text) > MIN_WIDTH_LENGTH else "")
    for column in filter(table.is_number, table.columns):
        classes[column] = np.where(table.bold[column], "number best", "number")
    styler = table.texts.style.hide(axis="index").set_td_classes(classes)
    styler.format(escape="html").format_index(escape="html", axis="columns")
    attributes = f'aria-describedby="{table.name}-caption"'
    html = styler.to_html(cell_ids=False, table_uuid=table.name, table_attributes=attributes)
    return Markup(re.sub("<style.*?</style>", "", html, count=1, flags=re.DOTALL))


def _svg(name: str, figure: Figure) -> Markup:
    """Return a figure as an SVG element whose ids are unique in the page.

    Text stays text, so it is small and readers can search it. If the font of the layout is missing, Verdana has the
    same width.
    """
    with matplotlib.rc_context(
        {"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans", "Verdana"]}
    ):
        text = encode(figure, "svg").decode()
    text = text[text.index("<svg") :].replace("<svg ", '<svg role="img" ', 1)
    return Markup(re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text))


# Replacements for characters that LaTeX reads as commands or that T1 fonts lack.
LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        **{sign: f"{{{sign}}}" for sign in "[]*"},  # otherwise \\ takes them for its arguments
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\n": " ",
        "±": r"$\pm$",
        "×": r"$\times$",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "−": "$-$",
    }
)

# A table with longer rows gets the smallest letters.
LINE_LENGTH = 100

# A longer text is broken into lines.
SHORT_TEXT = 30


def latex_report(report: Report) -> str:
    """Return the text and tables of the report for a LaTeX document with array, booktabs, longtable and T1 fonts.

    Long tables continue on the next page, wide tables have smaller letters, and long texts are broken into lines.
    """
    packages = r"\usepackage{array,booktabs,longtable} and \usepackage[T1]{fontenc}"
    lines = [f"% {' '.join(report.title.split())}: tables for a document with {packages}"]
    for section in sections(report):
        lines += ["", rf"\section*{{{latex(section.title)}}}"]
        lines += [latex(text) + "\n" for text in section.paragraphs]
        lines += map(_latex_table, section.tables)
    return "\n".join(lines) + "\n"


def latex(text: str) -> str:
    """Escape the characters that are special in LaTeX."""
    return text.translate(LATEX)


def _latex_table(table: ReportTable) -> str:
    """Return a table as a longtable, which may fill several pages, with long texts as paragraphs."""
    texts = table.texts.map(latex).rename(columns=latex)
    line_length, kinds = 0, []
    for column, head in zip(table.columns, texts, strict=True):
        length = max(len(column), table.texts[column].str.len().max())
        line_length += length
        if table.is_number(column):
            kinds.append("r")
            # A minus sign instead of a hyphen.
            texts[head] = texts[head].str.replace("^-", "$-$", regex=True)
        else:
            kinds.append("p" if length > SHORT_TEXT else "l")
    width = 0.45 / max(1, kinds.count("p"))
    paragraph = rf">{{\raggedright\arraybackslash}}p{{{width:.2f}\linewidth}}"
    texts = texts.where(~table.bold.to_numpy(), r"\textbf{" + texts + "}")
    size = r"\tiny" if line_length > LINE_LENGTH else r"\footnotesize"
    text = texts.style.hide(axis="index").to_latex(
        environment="longtable",
        hrules=True,
        column_format="".join(kinds).replace("p", paragraph),
        caption=latex(table.caption),
        label=f"tab:{table.name}",
    )
    return rf"{{{size}\setlength{{\tabcolsep}}{{3pt}}" + "\n" + text + "}"
