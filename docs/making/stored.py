"""The reference of result.json: every key, from the model that reads it."""

from making.schema import rows, table
from moerank.studies.result import FORMAT, Convergence, Member, Result, Times
from moerank.verdict import Verdict

INTRODUCTION = f"""\
# result.json, key by key

Format {FORMAT}. A file with an unknown key, a missing one or a value of another type is refused with a sentence that
names the place. The types name [tables](result_json_tables.md); [what a run writes](../results.md) describes the other
files.
"""


def pages():
    """Return the text of each page by the name of its file: the file itself, and the tables in it."""
    schema = Result.model_json_schema()
    definitions = schema["$defs"]
    below = ["```{toctree}", ":hidden:", "", "Its tables <result_json_tables>", "```", ""]
    lines = [
        "# The tables of result.json",
        "",
        "[The page of the file](result_json.md) lists the keys that hold them.",
        "",
    ]
    for model in (Member, Verdict, Convergence, Times):
        lines += [f"## table {model.__name__}", "", (model.__doc__ or "").splitlines()[0], ""]
        lines += table(rows(model, definitions[model.__name__], definitions))
    return {
        "result_json.md": "\n".join([INTRODUCTION, *table(rows(Result, schema, definitions)), *below]),
        "result_json_tables.md": "\n".join(lines),
    }
