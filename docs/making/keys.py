"""The reference of problem files: every table and key, from the models that read them."""

import inspect
from typing import get_args

from making.schema import rows, table
from moerank.studies.problem import Problem
from moerank.studies.sources import SOURCES, DataSection, Split

INTRODUCTION = """\
# Problem files

A problem file is TOML. It says what is optimised, and nothing about a run: seeds, threads and folders are options of
the [command line](commands.md), where `--set TABLE.KEY=VALUE` changes a key of the file. What is
required is `name` and the table `[data]`. An unknown key is an error that names the nearest known one.
"""


def pages():
    """Return the text of the page by the name of its file."""
    schema = Problem.model_json_schema()
    definitions = schema["$defs"]
    tables = {name: field.annotation for name, field in Problem.model_fields.items()}
    lines = [INTRODUCTION, "## Above all tables", ""]
    lines += table(row for row in rows(Problem, schema, definitions) if row[0] == "name")
    first = rows(SOURCES[0], definitions[SOURCES[0].__name__], definitions)
    shared = [row for row in first if row[0] in DataSection.model_fields]
    lines += ["## [data], whatever the source", "", *table(shared)]
    for source in SOURCES:
        name = get_args(source.model_fields["source"].annotation)[0]
        lines += [f'## [data] with source = "{name}"', "", _first(source), ""]
        own = rows(source, definitions[source.__name__], definitions)
        lines += table(row for row in own if row[0] not in ("source", *DataSection.model_fields))
    lines += ["## [data] split", "", _first(Split), ""]
    lines += table(rows(Split, definitions["Split"], definitions))
    for name, model in tables.items():
        if name in ("name", "data"):
            continue
        several = name == "published"
        model = get_args(model)[0] if several else model
        lines += [f"## [[{name}]]" if several else f"## [{name}]", "", _first(model), ""]
        lines += table(rows(model, definitions[model.__name__], definitions))
    return {"problem_files.md": "\n".join(lines)}


def _first(model):
    return " ".join(inspect.getdoc(model).partition("\n\n")[0].split())
