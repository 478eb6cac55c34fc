"""What both the reference of problem files and that of results read from a pydantic model: rows of a table."""

import inspect
import json
import re

from numpydoc.docscrape import NumpyDocString

import moerank as mr

MANY = 2**62
"""A bound that says no more than that the number fits the machine."""

LONG = 45
"""Words of a meaning that the description of a function has; of a longer one the table has the first sentence."""

NAMES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "switch",
    "object": "table",
}


def rows(model, schema, definitions):
    """Return a row (key, type with its range, default, meaning) for each key of a model."""
    required = schema.get("required", ())
    explained = meanings(model)
    return [
        (
            key,
            kind(entry, definitions),
            "required" if key in required else default(entry),
            explained.get(key, ""),
        )
        for key, entry in schema["properties"].items()
    ]


def kind(entry, definitions):
    """Return the type of a value with its range, in words."""
    if "$ref" in entry:
        return f"table {entry['$ref'].rpartition('/')[2]}"
    if "anyOf" in entry or "oneOf" in entry:
        kinds = (
            kind(one, definitions)
            for one in entry.get("anyOf", entry.get("oneOf"))
            if one.get("type") != "null"
        )
        return " or ".join(dict.fromkeys(kinds))
    if "const" in entry:
        return f"`{json.dumps(entry['const'])}`"
    if "enum" in entry:
        return ", ".join(f"`{json.dumps(value)}`" for value in entry["enum"])
    if entry.get("type") == "array":
        if "prefixItems" in entry:
            return f"[{', '.join(kind(one, definitions) for one in entry['prefixItems'])}]"
        return f"list of {kind(entry.get('items', {}), definitions)}"
    inner = entry.get("additionalProperties")
    if entry.get("type") == "object" and isinstance(inner, dict) and inner:
        return f"table of {kind(inner, definitions)}"
    return (NAMES.get(entry.get("type"), "any") + _range(entry)).strip()


def default(entry):
    """Return the default as a problem file has it."""
    value = entry.get("default")
    if "default" not in entry or value is None or value == {} or value == []:
        return ""
    return "" if isinstance(value, dict) else f"`{json.dumps(value, ensure_ascii=False)}`"


def _range(entry):
    least, most = entry.get("minimum"), entry.get("maximum")
    above, below = entry.get("exclusiveMinimum"), entry.get("exclusiveMaximum")
    words = [f"from {least:,}"] if least is not None else []
    words += [f"above {above:,}"] if above is not None else []
    up_to = "to" if above is None else "and at most"
    words += [f"{up_to} {most:,}"] if most is not None and most < MANY else []
    words += [f"below {below:,}"] if below is not None else []
    words += [f"at most {entry['maxLength']} signs"] if "maxLength" in entry else []
    return "" if not words else " " + " ".join(words)


def meanings(model):
    """Return what the docstrings of a model and its bases say of each key, or else what they send the reader to."""
    explained = {}
    for base in reversed(model.__mro__):
        text = (inspect.getdoc(base) or "") if base.__module__.startswith("moerank") else ""
        described = NumpyDocString(text)["Attributes"]
        for name in re.findall(r"[Ss]ee `(\w+)`", text):
            if hasattr(mr, name):
                arguments = NumpyDocString(inspect.getdoc(getattr(mr, name)))["Parameters"]
                described = [*map(_shorter, arguments), *described]
        for entry in described:
            text = " ".join(entry.desc)
            for key in map(str.strip, entry.name.split(",")):
                if not (
                    key in explained and text.startswith("See ")
                ):  # a link explains less than a base
                    explained[key] = text
    return explained


def _shorter(entry):
    """Return what a function says of an argument, without what its own page says at length."""
    text = " ".join(entry.desc)
    return (
        entry
        if len(text.split()) <= LONG
        else entry._replace(desc=[re.split(r"(?<=\.) (?=[A-Z])", text)[0]])
    )


def once(rows, title, explained):
    """Yield rows that name the table with a meaning in place of the same words; `explained` has these tables."""
    for *row, meaning in rows:
        first = explained.get(meaning) if len(meaning.split()) > 4 else None
        explained.setdefault(meaning, title)
        if first and first != title:
            anchor = re.sub(r"[^\w -]", "", first).replace(" ", "-")
            meaning = f"See [`{first}`](#{anchor})."
        yield *row, "See above." if first == title else meaning


def table(rows):
    """Return a Markdown table of keys."""
    lines = ["| key | type and range | default | meaning |", "|---|---|---|---|"]
    for row in rows:
        key, *others = (cell.replace("|", r"\|") for cell in row)
        lines.append(f"| `{key}` | {' | '.join(others)} |")
    return [*lines, ""]
