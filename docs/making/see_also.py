"""The section See Also of a public name: its neighbours in the table of solvers, else those of its room."""

from functools import cache

import moerank as mr
from making.names import public_rooms, summary
from moerank.solvers import FAMILIES, solvers


def setup(app):
    """Add the section to docstrings before numpydoc reads them."""
    app.connect("autodoc-process-docstring", _add, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


@cache
def neighbours():
    """Return for each public name those that somebody who looks it up may look for as well."""
    families = {}
    for entry in solvers().values():
        name = type(entry.make()).__name__
        if hasattr(mr, name):
            families.setdefault(entry.family, {})[name] = None
    of_family = {name: list(names) for names in families.values() for name in names}
    found = {}
    for names in public_rooms().values():
        for name in names:
            others = [other for other in of_family.get(name, names) if other != name]
            found[f"moerank.{name}"] = others
    assert set(families) <= set(FAMILIES)
    return found


def _add(app, what, name, obj, options, lines):
    others = neighbours().get(name)
    if not others or "See Also" in lines:
        return
    lines += ["", "See Also", "--------"]
    for other in others:
        lines += [f"moerank.{other} : {summary(getattr(mr, other))}"]
    lines += [""]
