"""The reference of problem files and of result.json: every table and key, from the models that read them."""

import inspect
from typing import get_args

from making.schema import once, rows, table
from moerank.runs.problem import Problem
from moerank.runs.result import FORMAT, Convergence, Member, Result, Times
from moerank.runs.sources import Data, DataSection, Split
from moerank.verdict import Verdict

PROBLEM = """\
# Problem files

A problem file is TOML. It says what is optimised, and nothing about a run: seeds, threads and folders are options of
the [command line](commands.md), where `--set TABLE.KEY=VALUE` changes a key of the file. What is
required is `name` and the table `[data]`. An unknown key is an error that names the nearest known one.

## Above all tables
"""

RESULT = f"""\
# result.json, key by key

Format {FORMAT}. A file with an unknown key, a missing one or a value of another type is refused with a sentence that
names the place. The types name the tables below; [what a run writes](../results.md) describes the other files.
"""


def pages():
    """Return the text of both pages by the names of their files."""
    return {"problem_files.md": "\n".join(_problem()), "result_json.md": "\n".join(_result())}


def _problem():
    schema = Problem.model_json_schema()
    definitions, explained = schema["$defs"], {}

    def described(model, title, but=()):
        own = once(rows(model, definitions[model.__name__], definitions), title, explained)
        return [
            f"## {title}",
            "",
            _first(model),
            "",
            *table(row for row in own if row[0] not in but),
        ]

    shared = DataSection.model_fields
    lines = [PROBLEM, *table(row for row in rows(Problem, schema, definitions) if row[0] == "name")]
    sources = get_args(get_args(Data)[0])
    first = rows(sources[0], definitions[sources[0].__name__], definitions)
    lines += [
        "## [data], whatever the source",
        "",
        *table(row for row in first if row[0] in shared),
    ]
    for source in sources:
        name = get_args(source.model_fields["source"].annotation)[0]
        lines += described(source, f'[data] with source = "{name}"', ("source", *shared))
    lines += described(Split, "[data] split")
    for name, field in Problem.model_fields.items():
        if name == "published":
            lines += described(get_args(field.annotation)[0], f"[[{name}]]")
        elif name not in ("name", "data"):
            lines += described(field.annotation, f"[{name}]")
    return lines


def _result():
    schema = Result.model_json_schema()
    definitions = schema["$defs"]
    lines = [RESULT, *table(once(rows(Result, schema, definitions), "above all tables", {}))]
    for model in (Member, Verdict, Convergence, Times):
        lines += [f"## table {model.__name__}", "", _first(model), ""]
        lines += table(
            once(rows(model, definitions[model.__name__], definitions), model.__name__, {})
        )
    return lines


def _first(model):
    return " ".join(inspect.getdoc(model).partition("\n\n")[0].split())
