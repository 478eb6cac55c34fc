"""Docstrings as Sphinx needs them: signs of formulas escaped, and a section See Also of neighbours."""

import re
from functools import cache

import moerank as mr
from making.names import public_rooms, summary
from moerank.solvers import solvers

LITERAL = re.compile(r"(``.*?``|`.*?`)")
SIGNS = re.compile(r"\||(?<=\w)(?:_(?=[,)]| [+−])|@)")


def setup(app):
    """Change docstrings before numpydoc reads them."""
    app.connect("autodoc-process-docstring", _prepare, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


@cache
def neighbours():
    """Return for each public name those of its family in the table of solvers, or else those of its room."""
    families = {}
    for entry in solvers().values():
        name = type(entry.make()).__name__
        if hasattr(mr, name):
            families.setdefault(entry.family, {})[name] = None
    of_family = {name: list(names) for names in families.values() for name in names}
    return {
        f"moerank.{name}": [other for other in of_family.get(name, names) if other != name]
        for names in public_rooms().values()
        for name in names
    }


def _prepare(app, what, name, obj, options, lines):
    if others := neighbours().get(name):
        lines += ["", "See Also", "--------"]
        for other in others:
            lines.append(f"moerank.{other} : {summary(getattr(mr, other))}")
    lines.append("")
    lines[:] = escaped(lines)


def escaped(lines):
    """Return the lines with |, @ and a closing _ as plain signs; examples stay as they are."""
    result, in_example = [], False
    for line in lines:
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if in_example or not any(sign in line for sign in "|_@"):
            result.append(line)
            continue
        parts = LITERAL.split(line)
        parts[::2] = [SIGNS.sub(r"\\\g<0>", part) for part in parts[::2]]
        result.append("".join(parts))
    return result
