"""The reference of public names: a page for each class, for the functions of a room, and for each further module.

What several classes inherit is described once, on a page of its own; the page of each class begins with its methods.
"""

import ast
import inspect
from collections import Counter
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import FunctionType

import moerank as mr

ROOMS = {
    "mofsrank": "The search, and its stages as pymoo problems",
    "rankers": "Rankers",
    "selectors": "Feature selection of others",
    "metrics": "Metrics",
    "data": "Data",
    "runs": "Problems and runs",
    "studies": "Studies",
    "others": "Solvers by name, export",
}
"""Titles of the rooms of public names, in the order of the page; others hold the names of all further rooms."""

MODULES = {
    "moerank.mofsrank.objectives": "Objective Candidates Features Error Cost Risk Guarantee",
    "moerank.evolution": "search make_algorithm SearchResult Generation Memo BitSearch Staircase SparseEA DAEA "
    "PRDH MFFS AdaptiveBitFlip",
    "moerank.statistics": "holm friedman RankTest p_not_within Tail hypervolume",
    "moerank.verdict": "Verdict judge compare Comparison",
    "moerank.rankers.model": "Model Forest",
    "moerank.selectors.best_subset": "BestSubset",
    "moerank.runs.problem": "Problem with_settings",
    "moerank.runs.run_fold": "run_fold",
    "moerank.runs.result": "Result read_result",
    "moerank.studies.results": "Results",
    "moerank.studies.comparison": "compare_solvers ComparisonTable adjust_together compare_folds",
    "moerank.studies.evidence": "certify Certificate Stability",
    "moerank.figures": "FIGURES RUN_FIGURES",
}
"""Names of further modules, for those who extend moerank or read results in Python."""

MEMBERS = property, cached_property, classmethod, staticmethod, FunctionType
"""Types of the members of a class that its page describes."""

INTERNAL = """remember without_cache label_runs query_blocks require_moderate_values require_pairs require_costs
weighted judge_of_instances grid_of_bins stopped staged_scores with_middle_thresholds keeps_limits worst measure check
check_objectives given eval_rows starting_strings most_accurate summed located_in load_limited_fold with_backend
search_settings published_value configuration files folders with_rival"""
"""Methods that other classes of the package call, and nobody else."""

SHARED = "Methods of every solver, ranker, metric and stage"


@cache
def public_rooms():
    """Return the names that ``import moerank`` offers, by the room that its stub loads them from."""
    rooms = {room: [] for room in ROOMS}
    stub = Path(mr.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    for line in ast.parse(stub).body:
        if isinstance(line, ast.ImportFrom):
            room = line.module.split(".")[0]
            rooms[room if room in ROOMS else "others"] += [alias.name for alias in line.names]
    return {room: sorted(names, key=str.lower) for room, names in rooms.items()}


@cache
def shared_bases():
    """Return the bases that several public classes have methods from, and that are no public names themselves."""
    public = [getattr(mr, name) for names in public_rooms().values() for name in names]
    classes = [thing for thing in public if inspect.isclass(thing)]
    owners = Counter(
        owner for thing in classes for owner in set(_members(thing).values()) - set(classes)
    )
    return [owner for owner, count in owners.most_common() if count > 1]


@cache
def described_classes():
    """Return the path under which each class is described."""
    paths = {base: f"{base.__module__}.{base.__name__}" for base in shared_bases()}
    further = [(module, name) for module, names in MODULES.items() for name in names.split()]
    public = [("moerank", name) for names in public_rooms().values() for name in names]
    things = {
        f"{module}.{name}": getattr(import_module(module), name)
        for module, name in [*further, *public]
    }
    return paths | {thing: path for path, thing in things.items() if inspect.isclass(thing)}


def summary(thing):
    """Return the first line of a docstring, without its full stop."""
    text = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    return " ".join(text.split()).removesuffix(".")


def pages():
    """Return the text of each page by the name of its file."""
    made = {"api.rst": _index(), "api/shared.rst": _shared()}
    for room, names in public_rooms().items():
        classes = [name for name in names if inspect.isclass(getattr(mr, name))]
        functions = [
            line for name in names if name not in classes for line in _described("moerank", name)
        ]
        lines = [
            *_title(ROOMS[room], "="),
            *_table((name, summary(getattr(mr, name))) for name in classes),
            *functions,
        ]
        made[f"api/{room}.rst"] = _with_pages_below(lines, classes)
        made |= {
            f"api/{name}.rst": "\n".join([*_title(name, "="), *_described("moerank", name)])
            for name in classes
        }
    for module, names in MODULES.items():
        described = [line for name in names.split() for line in _described(module, name)]
        made[f"api/{module}.rst"] = "\n".join(
            [*_title(module, "="), f".. automodule:: {module}", "", *described]
        )
    return made


def _index():
    lines = [
        *_title("Public names", "="),
        "All of these are there after ``import moerank as mr``, and loaded when they are first used.",
        f":doc:`{SHARED} <api/shared>` are described once.",
        "",
    ]
    for room, names in public_rooms().items():
        links = " ".join(f":py:obj:`{name} <moerank.{name}>`" for name in names)
        lines += [f":doc:`{ROOMS[room]} <api/{room}>`", f"   {links}", ""]
    lines += [
        *_title("Further modules", "-"),
        "For those who extend moerank, or read results in Python.",
        "",
    ]
    lines += _table((f"api/{module}", summary(import_module(module))) for module in MODULES)
    # Without the package's name the modules fit into the sidebar.
    modules = (f"{module.removeprefix('moerank.')} <api/{module}>" for module in MODULES)
    return _with_pages_below(lines, [*(f"api/{room}" for room in ROOMS), "api/shared", *modules])


def _with_pages_below(lines, pages):
    return (
        "\n".join([*lines, ".. toctree::", "   :hidden:", "", *(f"   {page}" for page in pages)])
        + "\n"
    )


def _shared():
    lines = [
        *_title(SHARED, "="),
        "The page of each class begins with the methods that it has.",
        "",
    ]
    for base in shared_bases():
        lines += [*_title(base.__name__, "-"), *_described(base.__module__, base.__name__)]
    return "\n".join(lines)


def _described(module, name):
    """Return the directives for a name; for a class also links to its methods, and those of no other page in full."""
    path, thing = f"{module}.{name}", getattr(import_module(module), name)
    if inspect.isfunction(thing):
        return [f".. autofunction:: {path}", ""]
    if not inspect.isclass(thing):
        drawn = {figure: resolve_name(f"{module}.{row.source}") for figure, row in thing.items()}
        lines = [f".. autodata:: {path}", "   :no-value:", ""]
        return [
            *lines,
            *(f"* ``{figure}``: {summary(function)}" for figure, function in drawn.items()),
            "",
        ]
    links, own = [], []
    for member, owner in _members(thing).items():
        target = path if owner is thing else described_classes().get(owner, path)
        links.append(f":py:obj:`{member}{_arguments(thing, member)} <{target}.{member}>`")
        if target == path:
            kind = (
                "property"
                if isinstance(vars(owner)[member], property | cached_property)
                else "method"
            )
            own += [f"   .. auto{kind}:: {path}.{member}", ""]
    above = (
        [f"Methods: {' '.join(links)}", ""]
        if len(links) > len(own) / 2 or module == "moerank"
        else []
    )
    return [*above, f".. autoclass:: {path}", "", *own]


def _members(thing):
    """Return the documented public methods and properties of a class, each with the class that defines it."""
    members = {}
    for base in thing.__mro__:
        if not base.__module__.startswith("moerank") or base.__name__.startswith("_"):
            continue
        for name, member in vars(base).items():
            is_public = not name.startswith("_") and name not in INTERNAL.split()
            if is_public and isinstance(member, MEMBERS) and inspect.getdoc(member):
                members.setdefault(name, base)
    return dict(sorted(members.items(), key=lambda member: member[0] != "fit"))


def _arguments(thing, member):
    """Return the arguments of ``fit``, which everybody looks for, without their types."""
    if member != "fit":
        return ""
    signature = inspect.signature(getattr(thing, member))
    plain = [one.replace(annotation=one.empty) for one in list(signature.parameters.values())[1:]]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def _title(text, sign):
    return [text, sign * len(text), ""]


def _table(rows):
    lines = [".. list-table::", "   :class: names", "   :widths: 30 70", ""]
    for page, meaning in rows:
        lines += [
            f"   * - :doc:`{page.removeprefix('api/')} <{page}>`",
            f"     - {meaning}".replace("|", r"\|"),
        ]
    return [*lines, ""] if len(lines) > 4 else []
