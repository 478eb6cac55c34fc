"""The typer application with all commands."""

import functools
import gc
import re
import warnings
from collections.abc import Callable
from copy import copy
from inspect import Parameter, cleandoc, signature
from typing import Annotated, get_args, get_origin, get_type_hints

import typer

from moerank.cli import options
from moerank.cli.certify import certify_command, judge_command, stability_command
from moerank.cli.data import convert_command, describe_command, ingest_command, init_command
from moerank.cli.messages import escape_unencodable, notice, one_line_errors
from moerank.cli.report import export_command, plot_command, report_command
from moerank.cli.run import run_command
from moerank.cli.study_commands import searches_command, study_command
from moerank.solvers import solvers
from moerank.version import VERSION


def solvers_command(as_json: options.AsJson = False) -> None:
    """List the solvers with their families, requirements and papers; --json has the titles.

    The asterisk marks the recommended solver: it needs the fewest evaluations
    for a good front, as moerank searches moerank-6 measures.
    """
    if as_json:
        rows = [dict(vars(entry)) for entry in solvers().values()]
        for row in rows:
            del row["source"], row["fixed"]
        options.print_json(rows)
        return
    from moerank.cli.tables import output, solver_table

    output().print(solver_table(solvers().values()))


def compile_command() -> None:
    """Compile the kernels now, so that the first run starts at once.

    It takes about a minute on two processors. The compiled code is stored in
    the installed package if that folder is writable, else in the user's
    cache. If root compiles it in an image or on a shared disk, all users and
    all cluster workers with the same kind of processor can use it.
    """
    from moerank.cli.progress import compile_kernels
    from moerank.kernels.compiled import GROUPS, missing

    compile_kernels()
    if missing(GROUPS):
        raise OSError("no folder keeps the compiled kernels; set NUMBA_CACHE_DIR to one of yours")
    typer.echo("The kernels are compiled.")


# Each command imports what it needs when it runs, so that --help answers at once.
app = typer.Typer(
    help="Feature selection for learning to rank by evolutionary multi-objective optimisation.",
    epilog="Begin with:  moerank run shop",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(
    help="Look at ranking data, and turn logs of search engines into tables.", no_args_is_help=True
)


ESCAPED = "[", "\\["  # a bracket would begin a style

# An entry in the section Parameters of a docstring: name, placeholder of the value, and help.
ENTRY = re.compile(r"^(\w+)(?: : (\S+))?\n((?: .*\n?)+)", re.MULTILINE)


def _add(group: typer.Typer, *commands: Callable[..., None]) -> None:
    """Add functions NAME_command as commands; keyword-only parameters are options, others arguments.

    Their docstrings are the help; each terminal wraps the paragraphs.
    """
    for command in commands:
        text, _, examples = cleandoc(command.__doc__ or "").partition("\n\nExamples\n--------\n")
        text, _, entries = text.partition("\n\nParameters\n----------\n")
        hints = get_type_hints(command, include_extras=True)
        parameters = signature(command).parameters
        for name, placeholder, help_text in ENTRY.findall(f"{options.__doc__}\n{entries}"):
            if name not in parameters:
                continue
            kind, info = hints[name], typer.Argument()
            if parameters[name].kind is Parameter.KEYWORD_ONLY:
                info = typer.Option(f"--{name.strip('_').replace('_', '-')}")
            if get_origin(kind) is Annotated:
                kind, info = get_args(kind)
            info = copy(info)
            info.help = " ".join(help_text.split()).replace(*ESCAPED)
            info.metavar = placeholder or None
            command.__annotations__[name] = Annotated[kind, info]
        paragraphs = [paragraph.replace("\n", " ") for paragraph in text.split("\n\n")]
        lines = examples.replace(*ESCAPED).splitlines()
        group.command(
            command.__name__.removesuffix("_command"),
            help="\n\n".join(paragraphs),
            epilog="\n\n".join(["Examples:", *lines]) if examples else None,
        )(one_line_errors()(command))


_add(
    app,
    init_command,
    run_command,
    study_command,
    searches_command,
    report_command,
    plot_command,
    export_command,
)
_add(app, judge_command, certify_command, stability_command, solvers_command, compile_command)
_add(data_app, describe_command, ingest_command, convert_command)
app.add_typer(data_app, name="data")


def main() -> None:
    """Run the command line."""
    # The imports of a run create 250,000 long-lived objects. With Python's default threshold of 700 the garbage
    # collector scans them so often that a short run takes half a second longer.
    gc.set_threshold(100_000)
    escape_unencodable()
    # Print each warning once, because the cells of a study share their data.
    warn_once = functools.cache(lambda text: notice(f"warning: {text}"))
    warnings.showwarning = lambda message, *_: warn_once(str(message))
    try:
        app()
    finally:
        # Otherwise Python would collect garbage twice more at exit: half a second after a run.
        gc.freeze()


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"moerank {VERSION}")
        raise typer.Exit
