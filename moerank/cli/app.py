"""The commands together: moerank run, study, merge, report, plot, export, solvers and data describe."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from moerank.cli.data import DESCRIBE_EXAMPLES, cache, describe
from moerank.cli.export import EXPORT_EXAMPLES, export
from moerank.cli.merge import MERGE_EXAMPLES, merge
from moerank.cli.messages import escape_what_cannot_be_written, notice
from moerank.cli.report import PLOT_EXAMPLES, REPORT_EXAMPLES, plot, report
from moerank.cli.run import RUN_EXAMPLES, run
from moerank.cli.solvers import solvers
from moerank.cli.study import STUDY_EXAMPLES, study
from moerank.version import VERSION

__all__ = ["app", "main"]

# The commands import what they need themselves: --help answers at once.
app = typer.Typer(
    help="Feature selection for learning to rank by evolutionary multi-objective optimisation.",
    epilog="Begin with:  moerank run digits",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Look at ranking data.", no_args_is_help=True)
data_app.command(epilog=DESCRIBE_EXAMPLES)(describe)
data_app.command()(cache)
app.command(epilog=RUN_EXAMPLES)(run)
app.command(epilog=STUDY_EXAMPLES)(study)
app.command(epilog=MERGE_EXAMPLES)(merge)
app.command(epilog=REPORT_EXAMPLES)(report)
app.command(epilog=PLOT_EXAMPLES)(plot)
app.command(epilog=EXPORT_EXAMPLES)(export)
app.command()(solvers)
app.add_typer(data_app, name="data")


def main() -> None:
    """Run the command line."""
    escape_what_cannot_be_written()
    warnings.showwarning = lambda message, *_: notice(f"warning: {message}")
    app()


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"moerank {VERSION}")
        raise typer.Exit
