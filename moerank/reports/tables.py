"""A report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import ceil

from moerank.reports.report import Entry, Progress, Report, Section, Table
from moerank.reports.sections import sections

__all__ = ["markdown_report", "latex", "latex_report"]


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


WIDTH, HEIGHT = 450.0, 560.0
"""Points that a table may take, without its caption: an A4 page with margins of 2.5 cm."""

GAP = 6.0
"""Points between columns."""

BOLD = 1.15
"""Width of bold letters in that of others."""

FILLED = 0.7
"""How much of a line is filled at least, on average, by words that are not divided."""

NARROW = (40, 30, 20, 14)
"""Letters to which columns of text may be narrowed, where their words allow it; the next where no font helps."""

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


def latex_report(report: Report, progress: Progress | None = None) -> str:
    """Return the tables of the report for a LaTeX document that loads booktabs and T1 letters, without figures.

    They fit on A4 pages with margins of 2.5 cm: wide tables have smaller letters and text broken into lines, and long
    ones are continued.
    """
    title = " ".join(report.title.split())
    lines = [f"% {title}: tables for a document with \\usepackage{{booktabs}} and \\usepackage[T1]{{fontenc}}", ""]
    for section in sections(report, progress):
        lines += [*_section(section), ""]
    return "\n".join(lines).rstrip() + "\n"


def latex(text: str) -> str:
    """Return text with everything escaped that LaTeX reads as a command."""
    escaped = "".join(_LATEX.get(sign, sign) for sign in text)
    return escaped if "--" not in text else escaped.replace("-", "-{}")  # two hyphens are no dash


def _section(section: Section) -> list[str]:
    lines = [rf"\section*{{{latex(section.title)}}}", *(latex(paragraph) + "\n" for paragraph in section.paragraphs)]
    if section.code:
        commands = [latex(line).replace(",", r",\allowbreak{}") for line in section.code.splitlines()]
        lines += [r"{\ttfamily\raggedright", *(command + r"\par" for command in commands), "}"]
    return lines + [line for table in section.tables for line in _table_of_latex(table)]


def _table_of_latex(table: Table) -> Iterator[str]:
    """Yield the lines of a table, in as many floats as it fills pages."""
    layout = _fitted(table)
    caption = latex(table.caption + (f" {table.note}." if table.marked() else ""))
    for page, rows in enumerate(layout.pages(table.rows)):
        yield r"\begin{table}[htbp]"
        yield r"\centering" + layout.font.command
        yield rf"\setlength{{\tabcolsep}}{{{GAP / 2:g}pt}}"
        if page == 0:
            yield rf"\caption{{{caption}}}"
            yield rf"\label{{tab:{table.name}}}"
        else:
            yield rf"Table~\ref{{tab:{table.name}}}, continued\par\smallskip"
        yield rf"\begin{{tabular}}{{{layout.columns}}}"
        yield r"\toprule"
        yield " & ".join(latex(column) for column in table.columns) + r" \\"
        yield r"\midrule"
        for row in rows:
            yield (
                " & ".join(map(_entry_of_latex, row, layout.broken)) + r" \tabularnewline"
            )  # \raggedright takes \\ away
        yield r"\bottomrule"
        yield r"\end{tabular}"
        yield r"\end{table}"


def _entry_of_latex(entry: Entry, broken: bool) -> str:
    shown = latex(entry.text)
    if entry.value is not None and entry.text.startswith("-"):
        shown = "$-$" + shown[1:]  # a minus, not a hyphen
    if entry.best:
        shown = rf"\textbf{{{shown}}}"
    shown += r"$^{*}$" if entry.mark else ""
    return rf"\raggedright {shown}" if broken else shown


@dataclass(frozen=True)
class _Font:
    """A size of letters: its command, and points of a digit's width and of a line's height."""

    command: str
    letter: float
    line: float


FONTS = (
    _Font("", 5.0, 12.0),
    _Font(r"\small", 4.6, 11.0),
    _Font(r"\footnotesize", 4.3, 9.5),
    _Font(r"\scriptsize", 4.1, 8.0),
)
"""Of Computer Modern; the first in which a table fits is taken."""


@dataclass(frozen=True)
class _Layout:
    """How a table is set.

    Attributes
    ----------
    font : _Font
    letters : list of int
        Width of each column in mean letters.
    broken : list of bool
        Whether the text of each column is broken into lines.
    numeric : list of bool
        Whether each column holds numbers, which stand to the right.
    """

    font: _Font
    letters: list[int]
    broken: list[bool]
    numeric: list[bool]

    @property
    def columns(self) -> str:
        """The argument of `tabular`."""
        widths = (f"p{{{n * self.font.letter:.0f}pt}}" for n in self.letters)
        kinds = zip(widths, self.broken, self.numeric, strict=True)
        return "".join("r" if numeric else width if broken else "l" for width, broken, numeric in kinds)

    def pages(self, rows: list[list[Entry]]) -> list[list[list[Entry]]]:
        """Cut rows into parts that each fit a page."""
        most = HEIGHT / self.font.line
        parts: list[list[list[Entry]]] = []
        filled = most
        for row in rows:
            fills = zip(row, self.letters, self.broken, strict=True)
            n_lines = max(ceil(len(entry.text) / (FILLED * n)) if broken else 1 for entry, n, broken in fills)
            if filled + n_lines > most:
                parts.append([])
                filled = 0
            parts[-1].append(row)
            filled += n_lines
        return parts


def _fitted(table: Table) -> _Layout:
    """Return the largest letters in which a table is not too wide, with text broken into lines if need be."""
    numeric = table.numeric()
    columns = [[head, *(row[i].text for row in table.rows)] for i, head in enumerate(table.columns)]
    bold = [
        max((ceil(BOLD * len(row[i].text)) for row in table.rows if row[i].best), default=1)
        for i in range(len(columns))
    ]
    full = [max(n, *map(len, column)) for n, column in zip(bold, columns, strict=True)]
    words = [max(len(word) for text in column for word in re.split(r"[\s-]", text)) + 1 for column in columns]
    for narrow, font in product(NARROW, FONTS):
        least = [n if fixed else min(n, max(w, narrow)) for n, w, fixed in zip(full, words, numeric, strict=True)]
        room = int((WIDTH - GAP * len(full)) / font.letter)
        if sum(least) <= room:
            break
    # The widest columns give way first, all to the same width.
    level = max(full)
    while sum(letters := [max(few, min(n, level)) for few, n in zip(least, full, strict=True)]) > room and level > 1:
        level -= 1
    return _Layout(font, letters, [n < whole for n, whole in zip(letters, full, strict=True)], numeric)
