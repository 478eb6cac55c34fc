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

* [The table [data]](problem_files/data.md): where the data come from, and how they are scaled and split.
* [The method](problem_files/method.md): features, metric, backend, comparison, solver and search.
* [The three stages](problem_files/stages.md): instance selection, feature selection, ensemble.

```{toctree}
:hidden:

problem_files/data
problem_files/method
problem_files/stages
```
"""


STAGES = ("instance_selection", "feature_selection", "ensemble")


def pages():
    """Return the texts of the pages by the names of their files."""
    schema = Problem.model_json_schema()
    definitions = schema["$defs"]
    tables = {name: field.annotation for name, field in Problem.model_fields.items()}
    start = [INTRODUCTION, "## Above all tables", ""]
    start += table(row for row in rows(Problem, schema, definitions) if row[0] == "name")
    lines = ["# The table [data]", ""]
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
    method, stages = ["# Tables of the method", ""], ["# Tables of the stages", ""]
    for name, model in tables.items():
        if name in ("name", "data"):
            continue
        several = name == "published"
        model = get_args(model)[0] if several else model
        page = stages if name in STAGES else method
        page += [f"## [[{name}]]" if several else f"## [{name}]", "", _first(model), ""]
        page += table(rows(model, definitions[model.__name__], definitions))
    found = {"": start, "/data": lines, "/method": method, "/stages": stages}
    return {f"problem_files{name}.md": "\n".join(page) for name, page in found.items()}


def _first(model):
    return " ".join(inspect.getdoc(model).partition("\n\n")[0].split())
