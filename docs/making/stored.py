"""The reference of result.json: every key, from the model that reads it."""

from making.schema import meanings, rows, table
from moerank.studies.result import (
    FORMAT,
    Convergence,
    Member,
    Result,
    Seconds,
    StoredRanker,
    StoredResult,
    StoredVerdict,
    Times,
)
from moerank.verdict import Verdict

INTRODUCTION = f"""\
# result.json, key by key

Format {FORMAT}. A file with an unknown key, a missing one or a value of another type is refused with a sentence that
names the place; see [what a run writes](../results.md) for the other files.
"""

TABLES = ((StoredRanker, Member), (StoredVerdict, Verdict), (Convergence, None), (Times, None), (Seconds, None))


def pages():
    """Return the text of the page by the name of its file."""
    schema = StoredResult.model_json_schema()
    definitions = schema["$defs"]
    lines = [INTRODUCTION, *table(_explained(rows(StoredResult, schema, definitions), Result))]
    for model, explained in TABLES:
        lines += [f"## table {model.__name__}", "", (model.__doc__ or "").splitlines()[0], ""]
        lines += table(_explained(rows(model, definitions[model.__name__], definitions), explained))
    return {"result_json.md": "\n".join(lines)}


def _explained(found, model):
    """Take the meaning of keys from the class that they are read into, where the model itself says nothing."""
    known = {} if model is None else meanings(model)
    return [(key, kind, default, meaning or known.get(key, "")) for key, kind, default, meaning in found]
