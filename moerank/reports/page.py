"""Reports as a single web page that contains its style, scripts, figures and data."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from html import escape
from importlib.resources import files

import matplotlib
from matplotlib.figure import Figure

from moerank.figures.panels import best_of_families
from moerank.figures.style import encode
from moerank.reports.report import Entry, Report, Section, Table
from moerank.reports.sections import sections
from moerank.studies.comparison import by_validation
from moerank.studies.problem import Problem
from moerank.studies.result import PARTS, Result
from moerank.studies.run_fold import Progress

DIGITS = 4
"""Decimals of scores, as in tables."""


def fronts_of(report: Report, problem: Problem) -> dict[str, object]:
    """Return the data of the explorer of fronts for a problem.

    ``shown`` has the numbers of the solvers to show at first, see `best_of_families`. A run is its
    number of the solver, fold, seed, number of the chosen member, its file, and members. A member is its
    features as `run_lengths`, its scores in units of 10⁻⁴ by part and metric, and its further objectives.
    """
    results = report.results.of(problem.name)
    metrics, further, solvers = results.metrics, results.further_objectives, results.solvers
    cells = [cell for cell in report.study.cells() if cell.problem.name == problem.name]
    liked = best_of_families(results, by_validation(results) or solvers)
    keys = {(cell.fold, cell.solver.label, cell.seed): cell.key for cell in cells}
    return {
        "metrics": metrics,
        "names": results[0].feature_names,
        "further": further,
        "solvers": solvers,
        "place": "the folder of the study",
        "shown": [solvers.index(solver) for solver in solvers if solver in liked],
        "runs": [
            [
                solvers.index(run.solver),
                run.fold,
                run.seed,
                run.chosen,
                f"cells/{keys[cell]}.json" if (cell := (run.fold, run.solver, run.seed)) in keys else "",
                of_members(run, metrics, further),
            ]
            for run in results
        ],
    }


def run_lengths(columns: Sequence[int]) -> list[int]:
    """Return ascending columns as the lengths of alternating runs of absent and present columns.

    Examples
    --------
    >>> run_lengths([0, 1, 2, 7]), run_lengths([3])
    ([0, 3, 4, 1], [3, 1])
    """
    lengths: list[int] = []
    after = 0
    for column in columns:
        if lengths and column == after:
            lengths[-1] += 1
        else:
            lengths += [column - after, 1]
        after = column + 1
    return lengths


def of_members(run: Result, metrics: Sequence[str], further: Sequence[str]) -> list[list[object]]:
    """Return the members of the front of a run for the explorer."""
    return [
        a_member(
            member.features,
            [member.scores[part].get(metric) for part in PARTS for metric in metrics],
            [member.objectives[name] for name in further],
        )
        for member in run.front
    ]


def a_member(features: Sequence[int], scores: Sequence[float | None], further: Sequence[float] = ()) -> list[object]:
    """Return a member for the explorer; `scores` are by part and metric."""
    return [
        run_lengths(features),
        *(None if score is None else round(score * 10**DIGITS) for score in scores),
        *(float(f"{value:.4g}") for value in further),
    ]


# This policy forbids browsers to load anything from elsewhere.
POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:\">"
)

LEAST = frozenset(
    ("features", "IGD+", "p", "Holm", "training (s)", "tuning (s)", "given up", "worst", "worse", "loss", "fold")
)
"""Columns of numbers whose least value is the best; the first click on another one sorts the largest value first."""

LONG = 40
"""Number of characters beyond which a cell gets a minimum width."""


def html_report(report: Report, progress: Progress | None = None) -> str:
    """Return the page, which loads nothing, with tables to sort and an explorer of fronts.

    `progress` is called as in `sections`, and then for the step "page".
    """
    shown = sections(report, progress)
    contents = "".join(f'<li><a href="#s{i}">{escape(s.title)}</a></li>' for i, s in enumerate(shown) if i)
    least = LEAST.union(*(report.results.of(problem.name).further_objectives for problem in report.problems))
    parts = []
    for i, section in enumerate(shown):
        parts.append(_section(i, section, least))
        if progress is not None:
            progress("page", (i + 1) / len(shown), section.title)
    explored = {section.explored for section in shown}
    fronts = {problem.name: fronts_of(report, problem) for problem in report.problems if problem.name in explored}
    body = f"{parts[0]}<nav><ol>{contents}</ol></nav>\n{''.join(parts[1:])}"
    return document(report.title, body, fronts, ("page.js", "fronts.js"))


def document(title: str, body: str, data: object, scripts: Sequence[str], policy: str = POLICY) -> str:
    """Return a page with its style, the `data` of the explorer of fronts, and scripts of this folder."""
    style, *code = ((files("moerank.reports") / name).read_text(encoding="utf-8") for name in ("page.css", *scripts))
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8">{policy}<title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{style}</style></head>\n<body><h1>{escape(title)}</h1>\n{body}"
        f'<script type="application/json" id="fronts">{as_script(data)}</script>\n'
        + "\n".join(f"<script>\n{text}</script>" for text in code)
        + "</body></html>\n"
    )


def as_script(data: object) -> str:
    """Return data as JSON that no text in them can end, wherever it stands in a page."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")


def _section(number: int, section: Section, least: Collection[str]) -> str:
    parts = [f'<section id="s{number}"><h2>{escape(section.title)}</h2>\n']
    parts += [f"<p>{escape(paragraph)}</p>\n" for paragraph in section.paragraphs]
    if section.code:
        parts.append(f"<pre>{escape(section.code)}</pre>\n")
    parts += [_table(table, least) for table in section.tables]
    if section.explored:
        parts.append(f'<div class="explorer" data-problem="{escape(section.explored)}"></div>\n')
    if section.figures:
        parts.append('<div class="figures">')
        for name, shown in section.figures.items():
            caption = f"<figcaption>{escape(shown.caption)}</figcaption>"
            parts.append(f'<figure data-name="{escape(name)}">{_svg(name, shown.figure)}{caption}</figure>\n')
        parts.append("</div>\n")
    return "".join(parts) + "</section>\n"


def _table(table: Table, least: Collection[str]) -> str:
    heads = "".join(
        f"<th{' class=number' if numeric else ''}{' data-largest' if numeric and column not in least else ''}>"
        f'<button type="button">{escape(column)}</button></th>'
        for column, numeric in zip(table.columns, table.numeric(), strict=True)
    )
    rows = "".join("<tr>" + "".join(_cell(entry) for entry in row) + "</tr>\n" for row in table.rows)
    note = f"<p class=note>{escape(table.note)}</p>" if table.note else ""
    return (
        f'<div class="table" id="{escape(table.name)}"><p class="caption" id="{escape(table.name)}-caption">'
        f'{escape(table.caption)}</p><table aria-describedby="{escape(table.name)}-caption">'
        f"<thead><tr>{heads}</tr></thead><tbody>\n{rows}</tbody></table>{note}</div>\n"
    )


def _cell(entry: Entry) -> str:
    shown = escape(entry.text) + (f"<sup>{escape(entry.mark)}</sup>" if entry.mark else "")
    shown = f"<b>{shown}</b>" if entry.best else shown
    if entry.value is None:
        return f"<td class=long>{shown}</td>" if len(entry.text) > LONG else f"<td>{shown}</td>"
    return f'<td class=number data-value="{entry.value!r}">{shown}</td>'


def _svg(name: str, figure: Figure) -> str:
    """Return a figure as an SVG element whose ids are unique in the page.

    Text remains text, so that it can be searched and takes little space. Without the font of the layout, Verdana is as
    wide, and others are narrower.
    """
    with matplotlib.rc_context({"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans", "Verdana"]}):
        text = encode(figure, "svg").decode()
    named = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text[text.index("<svg") :])
    return named.replace("<svg ", '<svg role="img" ', 1)
