"""The reference of public names: a page for each name of moerank, and one for each further module that is public."""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import moerank as mr

TITLES = {
    "mofsrank": "The search, and its stages as pymoo problems",
    "rankers": "Rankers",
    "selectors": "Feature selection of others",
    "solvers": "The table of solvers",
    "metrics": "Metrics",
    "data": "Data",
    "studies": "Studies",
    "exports": "Export",
}
"""The rooms of public names, in the order of the page; a room without a title goes by its name, behind these."""

MODULES = {
    "moerank.mofsrank.objectives": "Objectives of the search, and how to add one",
    "moerank.mofsrank.refit": "The ranker that serves, and the search that goes on with it",
    "moerank.evolution": "Operators, searches, archive, journal",
    "moerank.statistics": "Tests and fronts",
    "moerank.verdict": "The verdict",
    "moerank.rankers.model": "A ranker as it is stored",
    "moerank.studies.problem": "Problem files in Python",
    "moerank.studies.run_fold": "Runs in Python",
    "moerank.studies.result": "Their results",
    "moerank.studies.result_files": "Folders of runs",
    "moerank.studies.results": "Results read back, their fronts, and how stable a choice is",
    "moerank.studies.comparison": "Solvers against each other",
    "moerank.figures.of_run": "Figures of a run",
    "moerank.figures.of_study": "Figures of a study",
    "moerank.reports.report": "Reports",
}

MOST_ON_A_PAGE = 8
"""Names of a module that share its page; with more of them each has a page of its own."""


def public_rooms():
    """Return the names that ``import moerank`` offers, by the room that its stub loads them from."""
    rooms = {}
    stub = Path(mr.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    for line in ast.parse(stub).body:
        if isinstance(line, ast.ImportFrom):
            rooms.setdefault(line.module.split(".")[0], []).extend(alias.name for alias in line.names)
    order = [*TITLES, *rooms]
    return {room: sorted(rooms[room], key=str.lower) for room in sorted(rooms, key=order.index)}


def summary(thing):
    """Return the first line of a docstring, without its full stop."""
    text = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    return " ".join(text.split()).removesuffix(".")


def pages():
    """Return the text of each page by the name of its file."""
    made = {"api.rst": _index()}
    for names in public_rooms().values():
        for name in names:
            made[f"api/{name}.rst"] = _page(name)
    for module in MODULES:
        made[f"api/{module}.rst"] = _module_page(module)
        if len(_own(module)) > MOST_ON_A_PAGE:
            made |= {f"api/{module}.{name}.rst": _page(name, module) for name in _own(module)}
    return made


def _index():
    lines = [
        *_title("Public names", "="),
        "All of these are there after ``import moerank as mr``, and loaded when they are first used.",
        "",
    ]
    for room, names in public_rooms().items():
        lines += _title(TITLES.get(room, room), "-")
        lines += _table((f":doc:`{name} <api/{name}>`", summary(getattr(mr, name))) for name in names)
    lines += [*_title("Further modules", "-"), "For those who extend moerank, or read results in Python.", ""]
    lines += _table((f":doc:`{module} <api/{module}>`", title) for module, title in MODULES.items())
    lines += [".. toctree::", "   :hidden:", ""]
    lines += [f"   api/{name}" for names in public_rooms().values() for name in names]
    # Without the package's name they fit into the sidebar.
    lines += [f"   {module.removeprefix('moerank.')} <api/{module}>" for module in MODULES]
    return "\n".join(lines) + "\n"


def _page(name, module="moerank"):
    return "\n".join([*_title(name, "="), *_described(name, module)]) + "\n"


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
    if len(own) > MOST_ON_A_PAGE:
        lines += _table((f":doc:`{name} <{module}.{name}>`", summary(getattr(loaded, name))) for name in own)
        lines += [".. toctree::", "   :hidden:", "", *(f"   {module}.{name}" for name in own)]
    else:
        lines += [line for name in own for line in ("", *_described(name, module))]
    for name in ("FIGURES", "RUN_FIGURES"):
        if name in _public(loaded):
            lines += ["", f".. autodata:: {module}.{name}", "   :no-value:", ""]
            figures = getattr(loaded, name)
            lines += [f"* ``{figure}``: {summary(import_module(f'{module}.{figure}'))}" for figure in figures]
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
