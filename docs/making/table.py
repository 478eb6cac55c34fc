"""The table of solvers, with the class, the paper and the parameters of each."""

import moerank as mr
from moerank.solvers import FAMILIES, solvers

INTRODUCTION = """\
# The table of solvers

`mr.make_solver(NAME)` makes one, `moerank run PROBLEM --solver NAME` runs it, `NAME[key=value]` sets parameters.
A *backend* can judge the individuals of a search. Those with *all features* select none. Installed packages add theirs
through the entry points `moerank.backends` and `moerank.solvers`. The [guide](../../guide/index.md) says which one to
take.
"""


def pages():
    """Return the text of the page by the name of its file: a table for each family."""
    lines = [INTRODUCTION]
    for family, title in FAMILIES.items():
        rows = [_row(entry) for entry in solvers().values() if entry.family == family]
        lines += [
            f"## {title}",
            "",
            "| solver | class | needs | published |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    return {"solvers.md": "\n".join(lines)}


def _row(entry):
    name = entry.kind.__name__
    link = f"[{name}](api/{name}.rst)" if hasattr(mr, name) else f"`{name}`"
    marks = {
        "recommended": entry.recommended,
        "backend": entry.backend,
        "not linear": not entry.linear,
    }
    marked = ", ".join(
        mark for mark, holds in (marks | {"all features": not entry.selects}).items() if holds
    )
    shown = f"`{entry.name}`" + (f" ({marked})" if marked else "")
    return f"| {shown} | {link} | {', '.join(entry.needs)} | {entry.paper}, {entry.year} |"
