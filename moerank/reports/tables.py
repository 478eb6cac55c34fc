"""Reports as Markdown, and their tables as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

from moerank.reports.report import Entry, Report, Section, Table
from moerank.reports.sections import sections
from moerank.studies.run_fold import Progress


def markdown_report(report: Report, progress: Progress | None = None) -> str:
    """Return the report as Markdown, without figures."""
    lines = [f"# {_markdown(report.title)}", ""]
    for section in sections(report, progress):
        lines += [f"## {_markdown(section.title)}", ""]
        for paragraph in section.paragraphs:
            lines += [_markdown(paragraph), ""]
        if section.code:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", section.code)), default=0))
            lines += [fence + "sh", section.code, fence, ""]
        for table in section.tables:
            lines += [*_markdown_table(table), ""]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_table(table: Table) -> list[str]:
    rule = ["---:" if numeric else "---" for numeric in table.numeric()]
    rows = [[_markdown_entry(entry) for entry in row] for row in table.rows]
    lines = [_markdown(table.caption), ""]
    lines += ["| " + " | ".join(cells) + " |" for cells in (map(_markdown, table.columns), rule, *rows)]
    return [*lines, "", _markdown(table.note)] if table.note else lines


def _markdown_entry(entry: Entry) -> str:
    shown = _markdown(entry.text) + (r"\*" if entry.mark else "")
    return f"**{shown}**" if entry.best else shown


def _markdown(text: str) -> str:
    """Escape the characters that end a cell or begin markup."""
    return re.sub(r"([\\|*_<>`\[\]&])", r"\\\1", text).replace("\n", " ")


LATEX = {
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
    "[": "{[}",  # otherwise an argument of the line end before it
    "]": "{]}",
    "*": "{*}",
    "'": r"\textquotesingle{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "\n": " ",
}
"""Replacements of characters that LaTeX reads as commands, or that T1 fonts lack."""

LINE = 85
"""Number of characters of normal size on a line of 16 cm."""

SHORT = 30
"""Number of characters beyond which a text is broken into lines."""

SIZES = {r"\normalsize": 1.0, r"\small": 1.1, r"\footnotesize": 1.2, r"\scriptsize": 1.3}
"""Sizes of letters, with the factors by which they fit more characters on a line."""


def latex_report(report: Report, progress: Progress | None = None) -> str:
    """Return the tables of the report for a LaTeX document that loads array, booktabs, longtable and T1 fonts.

    Long tables continue on the next page, wide tables have smaller letters, and long texts are broken into lines.
    """
    packages = r"\usepackage{array,booktabs,longtable} and \usepackage[T1]{fontenc}"
    lines = [f"% {' '.join(report.title.split())}: tables for a document with {packages}", ""]
    for section in sections(report, progress):
        lines += [*_latex_section(section), ""]
    return "\n".join(lines).rstrip() + "\n"


def latex(text: str) -> str:
    """Escape the characters that are special in LaTeX."""
    escaped = "".join(LATEX.get(character, character) for character in text)
    return escaped if "--" not in text else escaped.replace("-", "-{}")  # two hyphens would become a dash


def _latex_section(section: Section) -> Iterable[str]:
    yield rf"\section*{{{latex(section.title)}}}"
    yield from (latex(paragraph) + "\n" for paragraph in section.paragraphs)
    if section.code:
        commands = [latex(line).replace(",", r",\allowbreak{}") for line in section.code.splitlines()]
        yield "\n".join([r"{\ttfamily\raggedright", *(command + r"\par" for command in commands), "}"])
    yield from map(_latex_table, section.tables)


def _latex_table(table: Table) -> str:
    """Return a longtable, which may fill several pages."""
    size, columns = _layout(table)
    rows = [list(map(_latex_entry, row)) for row in table.rows]
    styler = pd.DataFrame(rows, columns=list(map(latex, table.columns))).style.hide(axis="index")
    text: str = styler.to_latex(
        environment="longtable",
        hrules=True,
        column_format=columns,
        caption=latex(f"{table.caption} {table.note}".strip()),
        label=f"tab:{table.name}",
    )
    return rf"{{{size}\setlength{{\tabcolsep}}{{3pt}}" + "\n" + text + "}"


def _latex_entry(entry: Entry) -> str:
    shown = latex(entry.text)
    if entry.value is not None and entry.text.startswith("-"):
        shown = "$-$" + shown[1:]  # a minus sign instead of a hyphen
    if entry.best:
        shown = rf"\textbf{{{shown}}}"
    return shown + (r"$^{*}$" if entry.mark else "")


def _layout(table: Table) -> tuple[str, str]:
    """Return the size of letters and the format of columns: numbers to the right, long texts in paragraphs."""
    columns = [[head, *(row[i].text for row in table.rows)] for i, head in enumerate(table.columns)]
    lengths = [max(map(len, column)) + 1 for column in columns]
    broken = [n > SHORT and not number for n, number in zip(lengths, table.numeric(), strict=True)]
    fixed = sum(n for n, text in zip(lengths, broken, strict=True) if not text)
    needed = fixed + SHORT * sum(broken)
    size, more = next(((size, more) for size, more in SIZES.items() if needed <= LINE * more), (r"\tiny", 1.6))
    share = max(0.1, 0.9 * (1.0 - fixed / (LINE * more)) / max(1, sum(broken)))
    paragraph = rf">{{\raggedright\arraybackslash}}p{{{share:.2f}\linewidth}}"
    kinds = zip(broken, table.numeric(), strict=True)
    return size, "".join(paragraph if text else "r" if number else "l" for text, number in kinds)
