"""The reference of public names: a page for each name of moerank, and one for each further module that is public.

A class with many methods has them on a second page, which the table of methods on its own page leads to.
"""

import ast
import inspect
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import FunctionType

from sphinx.pycode import ModuleAnalyzer

import moerank as mr

TITLES = {
    "mofsrank": "The search, and its stages as pymoo problems",
    "rankers": "Rankers",
    "selectors": "Feature selection of others",
    "metrics": "Metrics",
    "data": "Data",
    "studies": "Studies",
    "others": "Solvers by name, export",
}
"""The rooms of public names, in the order of the page; others hold the names of all further rooms."""

MODULES = {
    "moerank.mofsrank.objectives": "Objectives of the search and how to add one, fronts, and the choice of a member",
    "moerank.evolution": "Operators, searches, archive, memo",
    "moerank.statistics": "Tests and fronts",
    "moerank.verdict": "The verdict",
    "moerank.rankers.model": "A ranker as it is stored",
    "moerank.selectors.filter": "Parameters that all filters share",
    "moerank.studies.problem": "Problem files in Python",
    "moerank.studies.run_fold": "Runs in Python",
    "moerank.studies.result": "Their results",
    "moerank.studies.results": "Results read back, their fronts, and solvers against each other",
    "moerank.figures": "Figures of a run and of a study",
    "moerank.reports.study_report": "Reports",
}

MEMBERS = property, cached_property, classmethod, staticmethod, FunctionType
"""Types of the members of a class that its page describes."""

METHODS = "Methods and properties"

MOST_NAMES = 6
"""Names of a module that share its page; with more of them each has a page of its own."""

MOST_MEMBERS = 6
"""Methods and properties that share the page of their class; with more of them they have a page of their own."""


def public_rooms():
    """Return the names that ``import moerank`` offers, by the room that its stub loads them from."""
    rooms = {}
    stub = Path(mr.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    for line in ast.parse(stub).body:
        if isinstance(line, ast.ImportFrom):
            room = line.module.split(".")[0]
            rooms.setdefault(room if room in TITLES else "others", []).extend(alias.name for alias in line.names)
    return {room: sorted(rooms[room], key=str.lower) for room in TITLES}


def summary(thing):
    """Return the first line of a docstring, without its full stop."""
    text = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    return " ".join(text.split()).removesuffix(".")


def pages():
    """Return the text of each page by the name of its file."""
    made = {"api.rst": _index()}
    for room, names in public_rooms().items():
        made[f"api/{room}.rst"] = _room(room, names)
        for name in names:
            made |= _name_pages(name)
    for module in MODULES:
        made[f"api/{module}.rst"] = _module_page(module)
        if len(_own(module)) > MOST_NAMES:
            for name in _own(module):
                made |= _name_pages(name, module)
    return made


def _index():
    lines = [
        *_title("Public names", "="),
        "All of these are there after ``import moerank as mr``, and loaded when they are first used.",
        "",
    ]
    rooms = public_rooms()
    lines += _table(
        (f":doc:`{TITLES[room]} <api/{room}>`", ", ".join(f":doc:`{name} <api/{name}>`" for name in names))
        for room, names in rooms.items()
    )
    lines += [*_title("Further modules", "-"), "For those who extend moerank, or read results in Python.", ""]
    lines += _table((f":doc:`{module} <api/{module}>`", title) for module, title in MODULES.items())
    # Without the package's name the modules fit into the sidebar.
    return _with_pages_below(
        [*lines, ""],
        [
            *(f"api/{room}" for room in rooms),
            *(f"{module.removeprefix('moerank.')} <api/{module}>" for module in MODULES),
        ],
    )


def _room(room, names):
    lines = _title(TITLES[room], "=")
    lines += _table((f":doc:`{name}`", summary(getattr(mr, name))) for name in names)
    return _with_pages_below(lines, names)


def _with_pages_below(lines, pages):
    return "\n".join([*lines, ".. toctree::", "   :hidden:", "", *(f"   {page}" for page in pages)]) + "\n"


def _name_pages(name, module="moerank"):
    """Return the page of a name, and for a class with many methods that of its methods."""
    page = name if module == "moerank" else f"{module}.{name}"
    thing = getattr(import_module(module), name)
    methods = _methods(thing) if inspect.isclass(thing) else {}
    if len(methods) <= MOST_MEMBERS:
        return {f"api/{page}.rst": "\n".join([*_title(name, "="), *_described(name, module)]) + "\n"}
    links = ", ".join(f":py:obj:`{method} <{module}.{name}.{method}>`" for method in methods)
    lines = [*_title(name, "="), f".. autoclass:: {module}.{name}", "", f"{METHODS}: {links}.", ""]
    described = [line for method, kind in methods.items() for line in (f".. auto{kind}:: {module}.{name}.{method}", "")]
    return {
        f"api/{page}.rst": _with_pages_below(lines, [f"{METHODS} <{page}.methods>"]),
        f"api/{page}.methods.rst": "\n".join([*_title(f"{name}: {METHODS.lower()}", "="), *described]) + "\n",
    }


def _methods(thing):
    """Return the kind of each documented public member of a class: methods and properties first."""
    found = {}
    for base in [base for base in thing.__mro__ if base.__module__.startswith("moerank")]:
        commented = [
            name
            for owner, name in ModuleAnalyzer.for_module(base.__module__).find_attr_docs()
            if owner == base.__qualname__ and not name.startswith("_")
        ]
        described = {
            name: "property" if isinstance(member, property | cached_property) else "method"
            for name, member in vars(base).items()
            if not name.startswith("_") and isinstance(member, MEMBERS) and inspect.getdoc(member)
        }
        found = dict.fromkeys(commented, "attribute") | described | found
    return dict(sorted(found.items(), key=lambda member: member[1] == "attribute"))


def _described(name, module):
    thing = getattr(import_module(module), name)
    if not inspect.isclass(thing):
        return [f".. autofunction:: {module}.{name}"]
    members = ["   :members:", f"   :inherited-members: {','.join(_foreign_bases(thing))}"]
    return [f".. autoclass:: {module}.{name}", *members]


def _foreign_bases(thing):
    """Return the bases that other libraries own: what comes from them is described there."""
    bases = [base.__name__ for base in thing.__mro__[1:] if not base.__module__.startswith("moerank")]
    return sorted(set(bases) | {"object"})


def _module_page(module):
    loaded, own = import_module(module), _own(module)
    lines = [*_title(module, "="), f".. automodule:: {module}", ""]
    if len(own) > MOST_NAMES:
        lines += _table((f":doc:`{name} <{module}.{name}>`", summary(getattr(loaded, name))) for name in own)
        return _with_pages_below(lines, [f"{module}.{name}" for name in own])
    lines += [line for name in own for line in ("", *_described(name, module))]
    for name in ("FIGURES", "RUN_FIGURES"):
        if name in _public(loaded):
            lines += ["", f".. autodata:: {module}.{name}", "   :no-value:", ""]
            drawn = {figure: resolve_name(f"{module}.{row.source}") for figure, row in getattr(loaded, name).items()}
            lines += [f"* ``{figure}``: {summary(function)}" for figure, function in drawn.items()]
    return "\n".join(lines) + "\n"


def _own(module):
    """Return the public classes and functions of a module that ``import moerank`` does not offer."""
    things = {name: getattr(import_module(module), name) for name in _public(import_module(module))}
    return [
        name
        for name, thing in things.items()
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and not hasattr(mr, name)
    ]


def _public(module):
    if hasattr(module, "__all__"):
        return module.__all__
    return sorted(
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", "").startswith(module.__name__)
    )


def _title(text, sign):
    return [text, sign * len(text), ""]


def _table(rows):
    lines = [".. list-table::", "   :class: names", "   :widths: 30 70", ""]
    for first, second in rows:
        lines += [f"   * - {first}", f"     - {second}".replace("|", r"\|")]
    return [*lines, ""]
