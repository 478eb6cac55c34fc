"""The typer application with all commands."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable
from inspect import cleandoc
from typing import Annotated

import typer

from moerank.cli.certify import CERTIFY_EXAMPLES, certify
from moerank.cli.costs import COSTS_EXAMPLES, DESIGN_EXAMPLES, costs, design
from moerank.cli.data import COMPARE_EXAMPLES, DESCRIBE_EXAMPLES, cache, compare, describe
from moerank.cli.export import EXPORT_EXAMPLES, export
from moerank.cli.ingest import INGEST_EXAMPLES, ingest
from moerank.cli.init import INIT_EXAMPLES, init
from moerank.cli.judge import JUDGE_EXAMPLES, judge
from moerank.cli.messages import escape_what_cannot_be_written, notice
from moerank.cli.options import AsJson
from moerank.cli.report import PLOT_EXAMPLES, REPORT_EXAMPLES, plot, report
from moerank.cli.run import RUN_EXAMPLES, run
from moerank.cli.study import MERGE_EXAMPLES, STUDY_EXAMPLES, merge, study
from moerank.version import VERSION

__all__ = ["app", "main", "solvers"]


def solvers(as_json: AsJson = False) -> None:
    """List the solvers with their families, requirements and authors; --json has the titles of the papers.

    The asterisk marks the recommended solver: it finds good fronts soonest of
    all searches, as measured by tests/benchmarks/fronts.py.
    """
    from moerank.solvers import solvers as table

    if as_json:
        keys = ("name", "family", "paper", "year", "linear", "selects", "needs", "backend", "recommended")
        entries = [{key: getattr(entry, key) for key in keys} for entry in table().values()]
        typer.echo(json.dumps(entries, indent=1, ensure_ascii=False))
        return
    from moerank.cli.tables import output, solver_table

    output().print(solver_table(table().values()))


def compile_kernels(
    every: Annotated[bool, typer.Option("--all", help="Also the kernels of all other solvers.")] = False,
) -> None:
    """Compile the kernels, which the first run of `moerank run` would do otherwise.

    It takes some twenty seconds on two processors. The code is kept beside
    the installed package if it can be written to there, else in the user's
    cache. Code that root has put into an image, or on a shared disk, serves
    all users and all workers of a cluster with the same processor.
    """
    from moerank.cli.messages import sentences
    from moerank.cli.progress import compiled
    from moerank.kernels.ahead import GROUPS

    with sentences(), compiled(GROUPS if every else GROUPS[:2]):
        typer.echo("The kernels are compiled.")


# The commands import what they need themselves: --help answers at once.
app = typer.Typer(
    help="Feature selection for learning to rank by evolutionary multi-objective optimisation.",
    epilog="Begin with:  moerank run digits",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(
    help="Look at ranking data, and make tables of the logs of search engines.", no_args_is_help=True
)


def _add(to: typer.Typer, command: Callable[..., None], examples: str | None = None, name: str | None = None) -> None:
    """Add a command whose help is its docstring, with lines that terminals of any width break."""
    paragraphs = cleandoc(command.__doc__ or "").split("\n\n")
    to.command(name, help="\n\n".join(" ".join(text.split("\n")) for text in paragraphs), epilog=examples)(command)


_add(app, init, INIT_EXAMPLES)
_add(app, run, RUN_EXAMPLES)
_add(app, study, STUDY_EXAMPLES)
_add(app, merge, MERGE_EXAMPLES)
_add(app, report, REPORT_EXAMPLES)
_add(app, plot, PLOT_EXAMPLES)
_add(app, export, EXPORT_EXAMPLES)
_add(app, judge, JUDGE_EXAMPLES)
_add(app, certify, CERTIFY_EXAMPLES)
_add(app, solvers)
_add(app, compile_kernels, name="compile")
_add(data_app, describe, DESCRIBE_EXAMPLES)
_add(data_app, compare, COMPARE_EXAMPLES)
_add(data_app, design, DESIGN_EXAMPLES)
_add(data_app, costs, COSTS_EXAMPLES)
_add(data_app, ingest, INGEST_EXAMPLES)
_add(data_app, cache)
app.add_typer(data_app, name="data")


def main() -> None:
    """Run the command line."""
    escape_what_cannot_be_written()
    warn_once = functools.cache(lambda text: notice(f"warning: {text}"))  # the cells of a study share their data
    warnings.showwarning = lambda message, *_: warn_once(str(message))
    app()


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"moerank {VERSION}")
        raise typer.Exit
