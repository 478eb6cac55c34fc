"""Docstrings as Sphinx needs them: the example before the parameters, and signs of formulas escaped."""

import re

LITERAL = re.compile(r"(``.*?``|`.*?`)")
SIGNS = re.compile(r"\||(?<=\w)(?:_(?=[,)]| [+−])|@)")
EXAMPLE = re.compile(r"\nExamples\n-+\n(.*?)(?=\n\n\S[^\n]*\n---|\Z)", re.DOTALL)


def setup(app):
    """Change docstrings before numpydoc reads them."""
    app.connect("autodoc-process-docstring", _prepare, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _prepare(app, what, name, obj, options, lines):
    text = "\n".join(lines)
    example = EXAMPLE.search(text)
    if what == "class" and example and "\nParameters\n---" in text:
        text = EXAMPLE.sub("", text).replace("\nParameters\n---", f"\n{example[1].strip()}\n\nParameters\n---", 1)
    lines[:] = escaped([*text.split("\n"), ""])


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
