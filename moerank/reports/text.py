"""Reports as Markdown and as LaTeX."""

from __future__ import annotations

import re

from moerank.reports.content import Report
from moerank.reports.table import Entry, Section, Table

__all__ = ["latex_report", "markdown_report"]

LONG = 45
"""Characters from which on a column of text is broken into lines in LaTeX."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "≥": r"$\geq$",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    "[": "{[}",  # else the argument of a line's end before it
    "]": "{]}",
    "*": "{*}",
    "'": r"\textquotesingle{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "\n": " ",
}


def markdown_report(report: Report) -> str:
    """Return the report as Markdown, without figures."""
    lines = [f"# {_escaped(report.title)}", ""]
    for section in report.sections():
        lines += [f"## {_escaped(section.title)}", ""]
        for paragraph in section.paragraphs:
            lines += [_escaped(paragraph), ""]
        if section.code:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", section.code)), default=0))
            lines += [fence + "sh", section.code, fence, ""]
        for table in section.tables:
            lines += [*_markdown_table(table), ""]
    return "\n".join(lines).rstrip() + "\n"


def latex_report(report: Report) -> str:
    """Return the tables of the report for a LaTeX document that loads booktabs and T1 letters, without figures."""
    title = " ".join(report.title.split())
    lines = [f"% {title}: tables for a document with \\usepackage{{booktabs}} and \\usepackage[T1]{{fontenc}}", ""]
    for section in report.sections():
        lines += [*_latex_section(section), ""]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_table(table: Table) -> list[str]:
    rule = ["---:" if numeric else "---" for numeric in table.numeric()]
    rows = [[_markdown(entry) for entry in row] for row in table.rows]
    lines = [_escaped(table.caption), ""]
    lines += ["| " + " | ".join(cells) + " |" for cells in ([_escaped(c) for c in table.columns], rule, *rows)]
    return [*lines, "", _escaped(table.note)] if _marked(table) else lines


def _markdown(entry: Entry) -> str:
    shown = _escaped(entry.text) + (r"\*" if entry.mark else "")
    return f"**{shown}**" if entry.best else shown


def _escaped(text: str) -> str:
    """Escape what would end a cell or begin markup."""
    for sign in "\\|*_<>`[]&":
        text = text.replace(sign, "\\" + sign)
    return text.replace("\n", " ")


def _latex_section(section: Section) -> list[str]:
    lines = [rf"\section*{{{latex(section.title)}}}", *(latex(paragraph) + "\n" for paragraph in section.paragraphs)]
    if section.code:
        lines += [r"{\ttfamily\raggedright", *(latex(line) + r"\par" for line in section.code.splitlines()), "}"]
    for table in section.tables:
        heads = " & ".join(latex(column) for column in table.columns)
        lines += [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex(table.caption + (' ' + table.note + '.' if _marked(table) else ''))}}}",
            rf"\label{{tab:{table.name}}}",
            rf"\begin{{tabular}}{{{_latex_columns(table)}}}",
            r"\toprule",
            heads + r" \\",
            r"\midrule",
            *(" & ".join(_latex_entry(entry) for entry in row) + r" \\" for row in table.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    return lines


def _latex_entry(entry: Entry) -> str:
    shown = latex(entry.text)
    if entry.value is not None and entry.text.startswith("-"):
        shown = "$-$" + shown[1:]  # a minus, not a hyphen
    if entry.best:
        shown = rf"\textbf{{{shown}}}"
    return shown + (r"$^{*}$" if entry.mark else "")


def latex(text: str) -> str:
    """Return text with everything escaped that LaTeX reads as a command."""
    escaped = "".join(_LATEX.get(sign, sign) for sign in text)
    return escaped if "--" not in text else escaped.replace("-", "-{}")  # two hyphens are no dash


def _latex_columns(table: Table) -> str:
    """Numbers to the right, text to the left, long text in lines of a third of the page."""
    kinds = []
    for column, numeric in enumerate(table.numeric()):
        longest = max((len(row[column].text) for row in table.rows), default=0)
        long = r"p{0.33\linewidth}" if longest > LONG else "l"
        kinds.append("r" if numeric else long)
    return "".join(kinds)


def _marked(table: Table) -> bool:
    return any(entry.mark for row in table.rows for entry in row)
