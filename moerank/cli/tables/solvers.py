"""The table of solvers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from moerank.cli.tables import FittedTable, new_table
from moerank.solvers import FAMILIES, SolverEntry

__all__ = ["solver_table"]


def solver_table(entries: Iterable[SolverEntry]) -> FittedTable:
    """Return the table of solvers, by family, with the authors of each paper, and an asterisk where recommended."""
    table = new_table(None)
    for head in ("solver", "family", "selects", "linear", "backend", "needs", "year", "authors"):
        table.add_column(head)
    for _, rows in groupby(sorted(entries, key=_family), _family):
        table.add_section()
        for row in rows:
            flags = ("yes" if flag else "no" for flag in (row.selects, row.linear, row.backend))
            authors = row.paper.partition(":")[0]
            name = f"{row.name} *" if row.recommended else row.name
            table.add_row(name, row.family, *flags, ", ".join(row.needs), str(row.year), authors)
    return table


def _family(entry: SolverEntry) -> int:
    """Return the place of a family in the table; rows of other packages may have one that is unknown here."""
    return list(FAMILIES).index(entry.family) if entry.family in FAMILIES else len(FAMILIES)
