"""The table of solvers, with the class, the paper and the parameters of each."""

from itertools import groupby

import moerank as mr
from moerank.solvers import FAMILIES, solvers

INTRODUCTION = """\
# The table of solvers

`mr.make_solver(NAME)` makes one, `moerank run PROBLEM --solver NAME` runs it, `NAME[key=value]` sets parameters.
A *backend* can judge the individuals of a search. Installed packages add theirs through the entry points
`moerank.backends` and `moerank.solvers`. The [guide](../../guide/index.md) says which one to take.

| family | solvers |
|---|---|
"""


def pages():
    """Return the text of each page by the name of its file: one for each family, and one that lists them."""
    order = list(FAMILIES)
    own = [entry for entry in solvers().values() if entry.family in FAMILIES]
    made, rows, below = {}, "", "\n```{toctree}\n:hidden:\n\n"
    for family, entries in groupby(sorted(own, key=lambda entry: order.index(entry.family)), lambda e: e.family):
        entries = list(entries)
        lines = [f"# {FAMILIES[family]}: solvers", "", "| solver | class | features | linear | needs | published |"]
        made[f"solvers/{family}.md"] = "\n".join([*lines, "|---|---|---|---|---|---|", *map(_row, entries), ""])
        names = ", ".join(f"`{entry.name}`" for entry in entries)
        rows += f"| [{FAMILIES[family]}](solvers/{family}.md) | {names} |\n"
        below += f"{FAMILIES[family]} <solvers/{family}>\n"
    return {"solvers.md": INTRODUCTION + rows + below + "```\n"} | made


def _row(entry):
    name = entry.kind.__name__
    link = f"[{name}](../api/{name}.rst)" if hasattr(mr, name) else f"`{name}`"
    needs = ", ".join(entry.needs)
    marks = [mark for flag, mark in ((entry.recommended, "recommended"), (entry.backend, "backend")) if flag]
    shown = f"`{entry.name}`" + (f" ({', '.join(marks)})" if marks else "")
    selects = "selects" if entry.selects else "all"
    return (
        f"| {shown} | {link} | {selects} | {'yes' if entry.linear else 'no'} | {needs} | {entry.paper}, {entry.year} |"
    )
