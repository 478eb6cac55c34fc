"""The commands moerank data design and moerank data costs, which measure what features cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moerank.cli.messages import notice, sentences

if TYPE_CHECKING:
    from moerank.data.measured_costs import MeasuredCosts


def design(
    features: Annotated[
        Path, typer.Argument(help="TOML file with a table for each feature, and group = in some.", metavar="FEATURES")
    ],
    runs: Annotated[int | None, typer.Option(help="Runs; by default the least number.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often each run is measured.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the design and of the order.")] = 0,
    out: Annotated[Path, typer.Option(help="CSV file for the runs.")] = Path("measurements.csv"),
) -> None:
    """Write which features to switch on in which run, so that their costs can be told apart.

    Measure each run with the same queries, in the order of the file, and write
    its time into the column time. moerank data costs makes costs of the times.

    Examples
    --------
    moerank data design features.toml --runs 32
    moerank data design features.toml --runs 32 --rounds 3 --out runs.csv
    """
    with sentences():
        from moerank.data.measured_costs import design_table, fewest_runs, switch_design
        from moerank.exports.deployable import read_features
        from moerank.files import replace_file
        from moerank.kernels.blas import one_blas_thread

        described = read_features(features)
        if not described:
            raise ValueError(f"{features}: no feature; write a table for each, as [price]")
        if out.exists():
            raise ValueError(f"{out} is there, and may hold measurements; choose another file with --out")
        groups = [feature.group for feature in described.values()]
        try:
            with one_blas_thread():
                chosen = switch_design(groups, fewest_runs(groups) if runs is None else runs, seed)
        except ValueError as error:
            raise ValueError(f"{features}: {error}") from None
        replace_file(out, design_table(list(described), groups, chosen, rounds, seed).encode())
        said = f"{len(chosen)} runs" if rounds == 1 else f"{len(chosen)} runs in {rounds} rounds"
        notice(f"wrote {out}: {said} of {len(groups)} features; fill in the column time")


def costs(
    measurements: Annotated[Path, typer.Argument(help="CSV file of moerank data design with the measured times.")],
    own: Annotated[
        Path | None,
        typer.Option(help="Table of costs of the features, as of profiles; only groups are estimated then."),
    ] = None,
    out: Annotated[Path, typer.Option(help="CSV file for the table of costs.")] = Path("features.csv"),
) -> None:
    """Estimate what features and groups cost from the times of runs with some of them.

    The unit is that of the times. The standard errors are written to a file
    beside the table, which [features] table of a problem file names.

    Examples
    --------
    moerank data costs measurements.csv
    moerank data costs measurements.csv --own profiled.csv --out features.csv
    """
    with sentences():
        from moerank.cli.tables import output
        from moerank.data.costs import read_cost_table
        from moerank.data.measured_costs import MOST_BYTES, Measurements, estimate_costs
        from moerank.files import read_text

        measured = Measurements.read(read_text(measurements, MOST_BYTES), str(measurements))
        known = None if own is None else read_cost_table(read_text(own, MOST_BYTES), str(own), measured.names).own
        try:
            found = estimate_costs(measured, known)
        except ValueError as error:
            raise ValueError(f"{measurements}: {error}") from None
        output().print(_table(found))
        for remark in found.remarks():
            typer.echo(f"{remark[0].upper()}{remark[1:]}.")
        beside = found.write(out)
        missing = f", {measured.n_open} not measured" if measured.n_open else ""
        notice(f"{found.n_measured} runs{missing}; without any feature a run takes {found.constant:.4g}")
        notice(f"wrote {out}, and {beside} with the standard errors")


def _table(found: MeasuredCosts) -> object:
    """Return a row for each feature and group."""
    from moerank.cli.tables import FittedTable

    table = FittedTable("costs", [""], ["cost", "standard error", "95 % from", "to"])
    for label, *numbers in zip(found.labels, found.values, found.errors, found.low, found.high, strict=True):
        table.add_texts(label, *(f"{number:.4g}" for number in numbers))
    return table
