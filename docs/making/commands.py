"""The reference of the command line: every command with its options, from the functions that they call."""

import inspect
import re
from pathlib import Path
from typing import get_args, get_type_hints

from typer.models import ArgumentInfo

from moerank.cli.app import app
from moerank.cli.options import N_PROCESSORS

TYPES = {str: "TEXT", int: "INTEGER", float: "NUMBER", Path: "PATH"}


def pages():
    """Return the texts of the pages by the names of their files: one for each command, and one that lists them."""
    found, rows = {}, []
    for words, command in _commands(app, ["moerank"]):
        name = "-".join(words[1:])
        found[f"commands/{name}.md"] = "\n".join(_command(words, command)) + "\n"
        does = _marked(
            " ".join((inspect.getdoc(command.callback) or "").partition("\n\n")[0].split())
        )
        rows.append(f"| [`{' '.join(words)}`](commands/{name}.md) | {does} |")
    lines = ["# The command line", "", app.info.help, "", "| command | |", "|---|---|", *rows, ""]
    lines += [
        "What an exit code means is on [its own page](../exit_codes.md).",
        "",
        "```{toctree}",
        ":hidden:",
        "",
    ]
    return found | {
        "commands.md": "\n".join([*lines, *(page.removesuffix(".md") for page in found), "```", ""])
    }


def _commands(group, words):
    for command in group.registered_commands:
        yield [*words, command.name or command.callback.__name__], command
    for inner in group.registered_groups:
        yield from _commands(inner.typer_instance, [*words, inner.name])


def _command(words, command):
    function = command.callback
    hints = get_type_hints(function, include_extras=True)
    parameters = [
        _Parameter(entry, hints[entry.name])
        for entry in inspect.signature(function).parameters.values()
    ]
    arguments = "".join(f" {parameter.name}" for parameter in parameters if parameter.is_argument)
    lines = [
        f"# {' '.join(words)}",
        "",
        "```text",
        f"{' '.join(words)}{arguments} [OPTIONS]",
        "```",
        "",
    ]
    text, _, examples = inspect.getdoc(function).partition("\n\nExamples\n--------\n")
    text = text.partition("\n\nParameters\n----------\n")[0]
    lines += [_marked(text), ""]
    if parameters:
        lines += ["| argument or option | default | meaning |", "|---|---|---|"]
        lines += [f"| `{entry.name}` | {entry.default} | {entry.help} |" for entry in parameters]
    if examples:
        lines += ["", "```console", examples, "```"]
    return [*lines, ""]


class _Parameter:
    """An argument or option, as the table shows it."""

    def __init__(self, parameter, hint):
        plain, info = get_args(hint)
        several = "list" in str(plain)
        kinds = [
            kind
            for kind in (plain, *get_args(plain), *sum(map(get_args, get_args(plain)), ()))
            if kind in TYPES
        ]
        self.is_argument = isinstance(info, ArgumentInfo)
        if self.is_argument:
            self.name = parameter.name.upper() + "…" * several
        else:
            given = [*(info.param_decls or ()), info.default]  # typer has the first one as default
            own = [name for name in given if isinstance(name, str) and name.startswith("--")]
            self.name = own[0] if own else f"--{parameter.name.replace('_', '-')}"
            if plain is not bool:
                self.name += f" {info.metavar or TYPES[kinds[0]]}"
        self.default = _default(parameter)
        self.help = _marked(" ".join((info.help or "").replace("\\[", "[").split())).replace(
            "|", r"\|"
        )
        if info.min is not None:
            self.help += f" At least {info.min}."


def _default(parameter):
    value = parameter.default
    if value is inspect.Parameter.empty:
        return "required"
    if parameter.name == "workers" and value == N_PROCESSORS != 1:
        return "all processors"
    return "" if value in (None, "") or value is False else f"`{value}`"


def _marked(text):
    """Show options as code, or a page turns them into words."""
    return re.sub(r"(?<![\w`])--[a-z-]+", r"`\g<0>`", text)
