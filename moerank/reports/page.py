"""A report as one web page that needs nothing else: style, script, figures and data are in it."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

from matplotlib.figure import Figure

from moerank.figures.style import encode
from moerank.reports.content import Progress, Report
from moerank.reports.table import Entry, Section, Table
from moerank.runs.result_files import model_of

__all__ = ["html_report"]

# Even a mistake in this package could load nothing from elsewhere.
POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:\">"
)

LONG = 40
"""Letters of text that should not be squeezed into a narrow column."""

CAPTIONS = {
    "accuracy": "Test value of the ranker that validation data would choose among those with at most so many features; "
    "means over folds and seeds, where all runs offer one.",
    "fronts": "What each solver offers on one fold with its first seed: the same rankers on all three parts.",
    "attainment": "The error that half of the seeds reach with so many features, on the training data of one fold; the "
    "band is between the quartiles of the seeds.",
    "hypervolume": "Hypervolume of the front of each stage during the search: means over folds and seeds; the band is "
    "between the quartiles of the runs, without the differences between folds.",
    "cost": "Processor seconds of tuning and training against the test value; means over folds and seeds.",
    "ranks": "Mean ranks of the solvers over folds, 1 is best; bars join what the data cannot tell apart.",
    "frequency": "Share of the runs in which a solver chooses a feature; the mean Jaccard index of the choices of two "
    "runs, and in brackets how far it is beyond chance.",
    "ablation": "Fronts of one run with and without each part of MOFSRank; then the error of the best ranker in "
    "training with at most so many features, means over folds and seeds, where all runs offer one.",
}
"""What each figure shows, by its name."""


def html_report(report: Report, progress: Progress | None = None) -> str:
    """Return the page. It loads nothing from anywhere: all tables can be sorted, the members of fronts pointed at.

    `progress` is as in `Report.sections`.
    """
    sections = report.sections(progress)
    contents = "".join(f'<li><a href="#s{i}">{escape(s.title)}</a></li>' for i, s in enumerate(sections))
    parts = []
    for i, section in enumerate(sections):
        parts.append(_section(report, i, section))
        if progress is not None:
            progress("page", (i + 1) / len(sections), section.title)
    data = json.dumps(_fronts(report), separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    here = files("moerank.reports")
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8">{POLICY}<title>{escape(report.title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{(here / 'page.css').read_text(encoding='utf-8')}</style></head>\n"
        f"<body><h1>{escape(report.title)}</h1>\n<nav><ol>{contents}</ol></nav>\n"
        + "".join(parts)
        + f'<script type="application/json" id="fronts">{data}</script>\n'
        f"<script>\n{(here / 'page.js').read_text(encoding='utf-8')}</script></body></html>\n"
    )


def _section(report: Report, number: int, section: Section) -> str:
    parts = [f'<section id="s{number}"><h2>{escape(section.title)}</h2>\n']
    parts += [f"<p>{escape(paragraph)}</p>\n" for paragraph in section.paragraphs]
    if section.code:
        parts.append(f"<pre>{escape(section.code)}</pre>\n")
    parts += [_table(table) for table in section.tables]
    problem = next((p.name for p in report.problems if section.title == f"Results: {p.name}"), None)
    if problem is not None:
        parts.append(f'<div class="explorer" data-problem="{escape(problem)}"></div>\n')
    if section.figures:
        shown = "".join(_figure(name, figure) for name, figure in section.figures.items())
        parts.append(f'<div class="figures">{shown}</div>\n')
    return "".join(parts) + "</section>\n"


def _figure(name: str, figure: Figure) -> str:
    return f"<figure>{_svg(name, figure)}<figcaption>{CAPTIONS[name.split('-')[0]]}</figcaption></figure>\n"


def _table(table: Table) -> str:
    heads = "".join(
        f'<th{" class=number" if numeric else ""}><button type="button">{escape(column)}</button></th>'
        for column, numeric in zip(table.columns, table.numeric(), strict=True)
    )
    rows = "".join("<tr>" + "".join(_cell(entry) for entry in row) + "</tr>\n" for row in table.rows)
    note = f"<p class=note>{escape(table.note)}</p>" if table.marked() else ""
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
    """Return a figure as an SVG element, with names in it that no other figure of the page has."""
    text = encode(figure, "svg").decode()
    named = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text[text.index("<svg") :])
    return named.replace("<svg ", '<svg role="img" ', 1)


def _compact(model: dict[str, Any]) -> dict[str, Any]:
    """Return a model.json with columns and weights in place of features, whose names the script puts back."""
    columns, weights = ([feature[key] for feature in model["features"]] for key in ("column", "weight"))
    return {**model, "features": [columns, weights]}


def _fronts(report: Report) -> dict[str, list[dict[str, Any]]]:
    """Return what each solver offers, with its first seed on each fold, for the script of the page."""
    fronts: dict[str, list[dict[str, Any]]] = {}
    for cell, result in report.results.items():
        if cell.seed == 0 and len(result.front) > 1:
            members = [
                {
                    "scores": member.scores,
                    "chosen": number == result.chosen,
                    "model": _compact(model_of(result, member)),
                }
                for number, member in enumerate(result.front)
            ]
            entry = {
                "solver": cell.solver.label,
                "fold": cell.fold,
                "metrics": result.metrics,
                "names": result.feature_names,
                "members": members,
            }
            fronts.setdefault(cell.problem.name, []).append(entry)
    return fronts
