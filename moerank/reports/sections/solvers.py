"""The solvers of a study."""

from __future__ import annotations

from moerank.reports.content import Section, Table, text
from moerank.reports.report import Report
from moerank.solvers import solvers as solver_table

__all__ = ["solvers"]


def solvers(report: Report) -> Section:
    """Return the paper and the given parameters of each solver."""
    caption = "Solvers, the paper of each, and the parameters that are given to it."
    table = Table("solvers", caption, ["solver", "family", "paper", "given parameters"])
    for spec in report.study.solvers:
        row = solver_table().get(spec.name)
        if row is None:
            what = spec.parameters.get("class", spec.parameters.get("function", ""))
            table.rows.append([text(spec.label), text("given in Python"), text(f"{what}"), text("as it was given")])
            continue
        given = ", ".join(f"{key} = {value}" for key, value in spec.parameters.items()) or "none"
        table.rows.append([text(spec.label), text(row.family), text(f"{row.paper}, {row.year}"), text(given)])
    return Section("Solvers", tables=[table])
