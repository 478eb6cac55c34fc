"""A report as Markdown."""

from __future__ import annotations

import re

from moerank.reports.content import Entry, Table
from moerank.reports.report import Progress, Report
from moerank.reports.sections import sections

__all__ = ["markdown_report"]


def markdown_report(report: Report, progress: Progress | None = None) -> str:
    """Return the report as Markdown, without figures."""
    lines = [f"# {_escaped(report.title)}", ""]
    for section in sections(report, progress):
        lines += [f"## {_escaped(section.title)}", ""]
        for paragraph in section.paragraphs:
            lines += [_escaped(paragraph), ""]
        if section.code:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", section.code)), default=0))
            lines += [fence + "sh", section.code, fence, ""]
        for table in section.tables:
            lines += [*_table(table), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(table: Table) -> list[str]:
    rule = ["---:" if numeric else "---" for numeric in table.numeric()]
    rows = [[_entry(entry) for entry in row] for row in table.rows]
    lines = [_escaped(table.caption), ""]
    lines += ["| " + " | ".join(cells) + " |" for cells in ([_escaped(c) for c in table.columns], rule, *rows)]
    return [*lines, "", _escaped(table.note)] if table.marked() else lines


def _entry(entry: Entry) -> str:
    shown = _escaped(entry.text) + (r"\*" if entry.mark else "")
    return f"**{shown}**" if entry.best else shown


def _escaped(text: str) -> str:
    """Escape what would end a cell or begin markup."""
    for sign in "\\|*_<>`[]&":
        text = text.replace(sign, "\\" + sign)
    return text.replace("\n", " ")
