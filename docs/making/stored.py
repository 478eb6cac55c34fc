"""The reference of result.json: every key, from the model that reads it."""

from making.schema import rows, table
from moerank.studies.result import FORMAT, Convergence, Member, Result, Seconds, Times
from moerank.verdict import Verdict

INTRODUCTION = f"""\
# result.json, key by key

Format {FORMAT}. A file with an unknown key, a missing one or a value of another type is refused with a sentence that
names the place; see [what a run writes](../results.md) for the other files.
"""


def pages():
    """Return the text of the page by the name of its file."""
    schema = Result.model_json_schema()
    definitions = schema["$defs"]
    lines = [INTRODUCTION, *table(rows(Result, schema, definitions))]
    for model in (Member, Verdict, Convergence, Times, Seconds):
        lines += [f"## table {model.__name__}", "", (model.__doc__ or "").splitlines()[0], ""]
        lines += table(rows(model, definitions[model.__name__], definitions))
    return {"result_json.md": "\n".join(lines)}
