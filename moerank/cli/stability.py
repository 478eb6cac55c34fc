"""The command moerank stability, which says on which features one can rely."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from moerank.cli import options
from moerank.cli.messages import interruptible, notice, say


def stability_command(
    problem: options.ProblemName,
    data: options.Data = None,
    fold: Annotated[int, typer.Option(min=1, help="Fold of the problem.")] = 1,
    solver: options.SolverName = None,
    set_: options.Settings = None,
    size: Annotated[int | None, typer.Option(min=1, help="Most features; by default what the bound permits.")] = None,
    threshold: Annotated[float, typer.Option(help="Share of the halves that must select a feature, above 0.5.")] = 0.75,
    pairs: Annotated[int, typer.Option(min=1, help="How often the training queries are halved.")] = 25,
    seed: options.Seed = 0,
    workers: options.Workers = options.N_PROCESSORS,
    out: Annotated[Path | None, typer.Option(help="Folder, by default results/PROBLEM-foldF-stability.")] = None,
    allow_code: options.AllowCode = False,
    as_json: options.AsJson = False,
) -> None:
    """Say which features can be relied on.

    The solver selects features on random halves of the training queries. The
    command prints the features that most halves select, with a bound on the
    expected number of false ones. The folder gets stability.json and
    stability.png. Finished halves stay there: run the same command again after
    an interruption, or with more pairs.

    Examples
    --------
    moerank stability digits --solver "mofsrank[instance_selection=false,ensemble=false]"
    moerank stability mq2008 --data ~/letor --size 6 --threshold 0.9 --pairs 50
    moerank stability my_problem.toml --solver best-subset
    """
    with interruptible(["moerank", *sys.argv[1:]]):
        from moerank.cli.progress import StageProgress, compiled
        from moerank.figures.stability_figure import stability_figure
        from moerank.figures.style import save_figure
        from moerank.files import replace_file
        from moerank.studies.evidence import stability as measure
        from moerank.studies.problem import load_problem

        chosen = load_problem(problem, options.read_settings(set_ or []))
        out = out or Path("results") / f"{chosen.name}-fold{fold}-stability"
        with compiled(("front",)), StageProgress() as progress:
            measured = measure(
                solver or chosen.solver.name,
                chosen,
                fold=fold,
                data=data,
                size=size,
                threshold=threshold,
                pairs=pairs,
                seed=seed,
                workers=workers,
                out=out,
                progress=progress,
            )
        replace_file(out / "stability.json", f"{measured.model_dump_json(indent=1)}\n".encode())
        save_figure(stability_figure(measured), out / "stability.png")
        if as_json:
            options.print_json(measured.model_dump(mode="json"))
            return
        for sentence in measured.sentences():
            say(f"{sentence}.")
        notice(f"wrote {out / 'stability.json'} and {out / 'stability.png'}")
