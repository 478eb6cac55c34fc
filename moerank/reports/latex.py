"""Tables of reports as LaTeX."""

from __future__ import annotations

from moerank.reports.sections import sections
from moerank.reports.study_report import Report, ReportTable

LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "'": r"\textquotesingle{}",
        "\n": " ",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        **{sign: f"{{{sign}}}" for sign in "[]*"},  # otherwise arguments of the line end before them
        **{sign: f"${sign}$" for sign in "<>|"},
        "±": r"$\pm$",
        "×": r"$\times$",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "−": "$-$",
    }
)
"""Replacements of characters that LaTeX reads as commands, or that T1 fonts lack."""

LINE_LENGTH = 100
"""Number of characters beyond which the rows of a table get the smallest letters."""

SHORT_TEXT = 30
"""Number of characters beyond which a text is broken into lines."""


def latex_report(report: Report) -> str:
    """Return the tables of the report for a LaTeX document that loads array, booktabs, longtable and T1 fonts.

    Long tables continue on the next page, wide tables have smaller letters, and long texts are broken into lines.
    """
    packages = r"\usepackage{array,booktabs,longtable} and \usepackage[T1]{fontenc}"
    lines = [f"% {' '.join(report.title.split())}: tables for a document with {packages}"]
    for section in sections(report):
        lines += ["", rf"\section*{{{latex(section.title)}}}", *(latex(text) + "\n" for text in section.paragraphs)]
        lines += map(_latex_table, section.tables)
    return "\n".join(lines) + "\n"


def latex(text: str) -> str:
    """Escape the characters that are special in LaTeX."""
    escaped = text.translate(LATEX)
    return escaped if "--" not in text else escaped.replace("-", "-{}")  # two hyphens are otherwise a dash


def _latex_table(table: ReportTable) -> str:
    """Return a longtable, which may fill several pages."""
    texts = table.texts.map(latex).rename(columns=latex)
    for column, head in zip(table.columns, texts, strict=True):
        if table.is_number(column):
            texts[head] = texts[head].str.replace("^-", "$-$", regex=True)  # a minus sign instead of a hyphen
    texts = texts.where(~table.bold.to_numpy(), r"\textbf{" + texts + "}")
    size, columns = _layout(table)
    text: str = texts.style.hide(axis="index").to_latex(
        environment="longtable",
        hrules=True,
        column_format=columns,
        caption=latex(table.caption),
        label=f"tab:{table.name}",
    )
    return rf"{{{size}\setlength{{\tabcolsep}}{{3pt}}" + "\n" + text + "}"


def _layout(table: ReportTable) -> tuple[str, str]:
    """Return the size of letters and the format of columns: numbers to the right, long texts in paragraphs."""
    lengths = {column: max(len(column), table.texts[column].str.len().max()) for column in table.columns}
    long = [column for column, length in lengths.items() if length > SHORT_TEXT and not table.is_number(column)]
    kinds = dict.fromkeys(long, rf">{{\raggedright\arraybackslash}}p{{{0.45 / max(1, len(long)):.2f}\linewidth}}")
    formats = [kinds.get(column, "r" if table.is_number(column) else "l") for column in table.columns]
    return r"\tiny" if sum(lengths.values()) > LINE_LENGTH else r"\footnotesize", "".join(formats)
