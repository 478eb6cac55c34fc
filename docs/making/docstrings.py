"""Docstrings as Sphinx needs them: the example before the parameters, each key once, and signs of formulas escaped."""

import re

from moerank.rankers.model import Model
from moerank.runs.problem import Problem
from moerank.runs.result import Result
from moerank.verdict import Verdict

LITERAL = re.compile(r"(``.*?``|`.*?`)")
SIGNS = re.compile(r"\||(?<=\w)(?:_(?=[,)]| [+−])|@)")
SECTION = r"\n{}\n-+\n(.*?)(?=\n\n\S[^\n]*\n---|\Z)"

KEYED = {
    Problem: "made/problem_files",
    Result: "made/result_json",
    Verdict: "made/result_json",
    Model: "results",
}
"""Pages that list the attributes of a class as the keys of a file."""

LONGEST_SIGNATURE = 88
"""Number of letters of the longest signature of a class; the parameters below have the defaults of longer ones."""


def setup(app):
    """Change docstrings before numpydoc reads them."""
    app.connect("autodoc-process-docstring", _prepare, priority=100)
    app.connect("autodoc-process-signature", _shorten, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _prepare(app, what, name, obj, options, lines):
    text = "\n".join(lines)
    if what == "class":
        example = re.search(SECTION.format("Examples"), text, re.DOTALL)
        if example and "\nParameters\n---" in text:
            text = text.replace(example[0], "")
            text = text.replace(
                "\nParameters\n---", f"\n{example[1].strip()}\n\nParameters\n---", 1
            )
        if obj in KEYED:
            keys = f"\nIts attributes are :doc:`the keys of the file </reference/{KEYED[obj]}>`.\n"
            text = re.sub(SECTION.format("Attributes"), keys, text, flags=re.DOTALL)
    lines[:] = escaped([*text.split("\n"), ""])


def _shorten(app, what, name, obj, options, signature, returned):
    is_long = what == "class" and len(signature or "") > LONGEST_SIGNATURE
    return ("(…)" if is_long else signature), returned


def escaped(lines):
    """Return the lines with |, @ and a closing _ as plain signs; examples stay as they are."""
    result, in_example = [], False
    for line in lines:
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if in_example or not any(sign in line for sign in "|_@"):
            result.append(line)
            continue
        parts = LITERAL.split(line)
        parts[::2] = [SIGNS.sub(r"\\\g<0>", part) for part in parts[::2]]
        result.append("".join(parts))
    return result
