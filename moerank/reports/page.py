"""A report as one web page that needs nothing else: style, script, figures and data are in it."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

from matplotlib.figure import Figure

from moerank.figures.style import encode
from moerank.reports.content import Entry, Illustration, Section, Table
from moerank.reports.report import Progress, Report
from moerank.reports.sections import sections
from moerank.runs.result import RunResult, ScoredRanker
from moerank.runs.result_files import model_of

__all__ = ["html_report"]

# Even a mistake in this package could load nothing from elsewhere.
POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:\">"
)

LONG = 40
"""Letters of text that should not be squeezed into a narrow column."""


def html_report(report: Report, progress: Progress | None = None) -> str:
    """Return the page. It loads nothing from anywhere: all tables can be sorted, the members of fronts pointed at.

    `progress` is as in `sections`, then it hears of the step "page".
    """
    shown = sections(report, progress)
    contents = "".join(f'<li><a href="#s{i}">{escape(s.title)}</a></li>' for i, s in enumerate(shown))
    parts = []
    for i, section in enumerate(shown):
        parts.append(_section(i, section))
        if progress is not None:
            progress("page", (i + 1) / len(shown), section.title)
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


def _section(number: int, section: Section) -> str:
    parts = [f'<section id="s{number}"><h2>{escape(section.title)}</h2>\n']
    parts += [f"<p>{escape(paragraph)}</p>\n" for paragraph in section.paragraphs]
    if section.code:
        parts.append(f"<pre>{escape(section.code)}</pre>\n")
    parts += [_table(table) for table in section.tables]
    if section.explored:
        parts.append(f'<div class="explorer" data-problem="{escape(section.explored)}"></div>\n')
    if section.figures:
        shown = "".join(_figure(name, figure) for name, figure in section.figures.items())
        parts.append(f'<div class="figures">{shown}</div>\n')
    return "".join(parts) + "</section>\n"


def _figure(name: str, shown: Illustration) -> str:
    return f"<figure>{_svg(name, shown.figure)}<figcaption>{escape(shown.caption)}</figcaption></figure>\n"


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
    for result in report.results:
        if result.seed == 0 and len(result.front) > 1:
            members = [
                {
                    "scores": member.scores,
                    "chosen": number == result.chosen,
                    "model": _compact(model_of(result, member)),
                    **_further(result, member),
                }
                for number, member in enumerate(result.front)
            ]
            entry = {
                "solver": result.solver,
                "fold": result.fold,
                "metrics": result.metrics,
                "names": result.feature_names,
                "members": members,
            }
            fronts.setdefault(result.problem, []).append(entry)
    return fronts


def _further(result: RunResult, member: ScoredRanker) -> dict[str, dict[str, float]]:
    """Return the objectives that the script cannot read off the scores and features."""
    further = {name: member.objectives[name] for name in result.further_objectives}
    return {"objectives": further} if further else {}
