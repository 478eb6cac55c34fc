"""The commands moerank certify and moerank judge, which examine the result of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moerank.cli import options
from moerank.cli.messages import notice, say

if TYPE_CHECKING:
    from rich.table import Table

    from moerank.studies.result import Certificate, Result


def certify_command(
    result: options.Ran,
    data: options.Data = None,
    enumerate_: Annotated[
        int, typer.Option("--enumerate", min=0, help="Rank by all subsets of up to so many features; 0 for none.")
    ] = 3,
    time_limit: Annotated[
        float | None, typer.Option(min=0.001, help="Seconds after which bounds take the place of proofs of the loss.")
    ] = None,
    workers: options.Workers = options.N_PROCESSORS,
    allow_code: options.AllowCode = False,
    as_json: options.AsJson = False,
) -> None:
    """Prove how far each member of a front is from the best features of its size.

    The backend must be RankRLS. For each member the command prints how much of
    the reduction of the training loss it gives up against the proved optimum,
    or against its bound. It also trains all subsets of up to three features,
    which proves the metric itself for small members. A certificate says
    nothing about other queries. It is added to result.json, and figures and
    reports show it. Ctrl-C keeps what is proved, first of the losses, then
    of the metric.

    Examples
    --------
    moerank certify results/digits-fold1-seed0
    moerank certify results/mq2008-fold1-seed0 --enumerate 4
    moerank certify results/study/cells/0123456789abcdef01234567.json --time-limit 60
    """
    from moerank.cli.progress import StageProgress
    from moerank.figures.of_run import draw_run_figures
    from moerank.files import replace_file
    from moerank.studies.evidence import certify as prove
    from moerank.studies.result import find_result, write_result

    stored = find_result(result)
    with StageProgress() as progress:
        certificate = prove(
            stored, data, enumerate_to=enumerate_, time_limit=time_limit, workers=workers, progress=progress
        )
    stored = stored.model_copy(update={"certificate": certificate})
    if result.is_dir():
        write_result(stored, result)
        draw_run_figures(stored, result)
    else:
        replace_file(result, stored.to_json().encode())
    if as_json:
        options.print_json(certificate.model_dump(mode="json"))
        return
    from moerank.cli.tables import output

    output().print(_table(stored, certificate))
    say(f"{certificate.sentence(stored)}.")
    notice(f"wrote {result / 'result.json' if result.is_dir() else result}")


def _table(result: Result, certificate: Certificate) -> Table:
    """Return a row for each member."""
    from moerank.cli.tables import text_table

    metric, rows = result.metrics[0], []
    for number, (member, given_up) in enumerate(zip(result.front, certificate.given_up, strict=True)):
        size = len(member.features)
        largest = f"{1.0 - certificate.errors[size - 1]:.4f}" if size <= len(certificate.errors) else ""
        rows.append(
            {
                "features": f"{size}{' *' * (number == result.chosen)}",
                "loss": f"{certificate.losses[number]:.4f}",
                "least loss": f"{certificate.least[number]:.4f}",
                "given up": f"{given_up:.1%}",
                metric: f"{member.scores['train'][metric]:.4f}",
                f"largest\n{metric}": largest,
            }
        )
    return text_table(f"{result.solver} on fold {result.fold} of {result.problem}", rows, n_left=0)


def judge_command(
    result: options.Ran,
    new: Annotated[Path, typer.Argument(help="LETOR, CSV or Parquet file with raw values of the features.")],
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="RESULT", help="Compare with the model of another run; by default with the ranker on all features."
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(help=f"Exit code {options.FAILED_BOUND} for this finding: loss, gain or none; repeatable."),
    ] = None,
    label: options.Label = None,
    query: options.Query = None,
    allow_code: options.AllowCode = False,
    as_json: options.AsJson = False,
) -> None:
    """Compare the chosen model of a run with another model on new data, query by query.

    Standard output has one line, which begins with the finding: loss, gain
    or none. With --json it is an object of JSON with all numbers.

    Examples
    --------
    moerank judge results/shop-fold1-seed0 new.parquet --fail-on loss
    moerank judge results/today new.parquet --against results/yesterday --fail-on loss --json >> dashboard.jsonl
    """
    from typing import get_args

    from moerank.checks import check_choice
    from moerank.studies.run_folder import judge_on_new
    from moerank.verdict import Finding

    for finding in fail_on or ():
        check_choice(get_args(Finding), **{"--fail-on": finding})
    judged = judge_on_new(result, new, against, label=label, query=query)
    say(json.dumps(judged.model_dump()) if as_json else judged.sentence)
    if judged.finding in (fail_on or ()):
        raise typer.Exit(options.FAILED_BOUND)
