"""The commands moerank certify, judge and stability, which show how far a result can be trusted."""

import json
from pathlib import Path
from typing import Annotated

import typer

from moerank.checks import Parameters, check_choice
from moerank.cli import options
from moerank.cli.messages import interruptible, notice, say
from moerank.files import prepare_folder


def certify_command(
    result: Path,
    *,
    data: Path | None = None,
    allow_code: options.AllowCode = False,
    as_json: options.AsJson = False,
) -> None:
    """Prove how close each member of a front is to the best feature subset of its size.

    The backend must be RankRLS. For each member the command prints its
    optimality gap: the fraction of the possible loss reduction that it gives
    up, compared with the proved optimum or with a bound on it. A certificate
    says nothing about the metric or about other queries. It is added to result.json, and figures and reports
    show it. Ctrl-C stops the proof and keeps what is proved so far.

    Examples
    --------
    moerank certify results/digits-fold1-seed0
    moerank certify results/study/cells/0123456789abcdef01234567.json
    """
    import pandas as pd

    from moerank.cli.progress import StageProgress
    from moerank.figures import RUN_FIGURES
    from moerank.figures.style import save_figure
    from moerank.runs.result import find_result, write_result
    from moerank.studies.evidence import certify as prove

    run = find_result(result)
    with StageProgress() as progress:
        certificate = prove(run, data, progress=progress)
    run = run.model_copy(update={"certificate": certificate})
    if result.is_dir():
        write_result(run, result)
        for name in ("certificate", "front"):
            save_figure(RUN_FIGURES[name].draw(run), result / f"{name}.png")
    else:
        run.write(result)
    if as_json:
        options.print_json(certificate.model_dump(mode="json"))
        return
    metric, sizes = run.metric, list(map(str, run.sizes))
    sizes[run.chosen] += " *"
    frame = pd.DataFrame(
        {
            "loss": certificate.losses,
            "minimum loss": certificate.least,
            "given up": certificate.given_up,
            metric: [member.scores["train"][metric] for member in run.front],
        },
        pd.Index(sizes, name="features"),
    )
    if certificate.groups:
        frame.insert(0, "groups", certificate.groups)
    table = frame.to_string(float_format="{:.4f}".format, formatters={"given up": "{:.1%}".format})
    say(f"{table}\n\n{certificate.sentence(run)}.")
    notice(f"wrote {result / 'result.json' if result.is_dir() else result}")


def judge_command(
    result: Path,
    new: Path,
    *,
    against: Path | None = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Exit with code {options.EXIT_FINDING} on this finding: loss, gain, "
            "'likely loss', 'likely gain' or none; repeatable."
        ),
    ] = None,
    label: str | None = None,
    query: str | None = None,
    allow_code: options.AllowCode = False,
    as_json: options.AsJson = False,
) -> None:
    """Check on new data whether the chosen model of a run still ranks as well as another one.

    The models are compared query by query. The command prints one line, which
    begins with the finding: loss, gain, likely loss, likely gain or none. With --json the line is a JSON
    object with all numbers.

    Parameters
    ----------
    new
        LETOR, CSV or Parquet file with raw values of the features.
    against : RESULT
        Run with the model to compare; by default the ranker on all features.

    Examples
    --------
    moerank judge results/shop-fold1-seed0 new.parquet --fail-on loss
    moerank judge results/today new.parquet --against results/yesterday --fail-on loss --json >> dashboard.jsonl
    """
    from typing import get_args

    from moerank.runs.run_folder import judge_on_new
    from moerank.verdict import Finding

    findings = fail_on or []
    for finding in findings:
        option: Parameters = {"--fail-on": finding}
        check_choice(get_args(Finding), **option)
    comparison = judge_on_new(result, new, against, label=label, query=query)
    say(json.dumps(comparison) if as_json else comparison["sentence"])
    if comparison["finding"] in findings:
        raise typer.Exit(options.EXIT_FINDING)


def stability_command(
    problem: str,
    *,
    data: Path | None = None,
    fold: options.Count = 1,
    solver: str | None = None,
    set_: list[str] | None = None,
    size: options.CountOrNone = None,
    threshold: float = 0.75,
    pairs: options.Count = 25,
    seed: options.Seed = 0,
    workers: options.Count = options.N_PROCESSORS,
    dask: str | None = None,
    out: Path | None = None,
    allow_code: options.AllowCode = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the features that are selected again when half of the training queries are left out.

    The solver selects features on random halves of the training queries. The
    command prints the features that most of these half-samples select, with a
    bound on the expected number of false ones among them. It writes stability.json and
    stability.png to the folder. After Ctrl-C the same command continues, and
    several commands with the same folder share the work.

    Parameters
    ----------
    fold
        Fold of the problem.
    size
        Maximum number of features; by default what the bound allows.
    threshold
        Fraction of the half-samples that must select a feature, above 0.5.
    pairs
        Number of times to halve the training queries.
    out
        Folder, by default results/PROBLEM-foldF-stability.

    Examples
    --------
    moerank stability digits --solver "mofsrank[instance_selection=false,ensemble=false]"
    moerank stability mq2008 --data ~/letor --size 6 --threshold 0.9 --pairs 50
    moerank stability my_problem.toml --solver best-subset
    """
    from moerank.cli.progress import StageProgress, compile_kernels
    from moerank.figures.frequency_of_study import stability_figure
    from moerank.figures.style import save_figure
    from moerank.runs.problem import load_problem
    from moerank.studies.evidence import stability as measure

    task = load_problem(problem, options.read_settings(set_))
    out = out or Path("results") / f"{task.name}-fold{fold}-stability"
    prepare_folder(out)
    with interruptible():
        compile_kernels([task.backend.name])
        with StageProgress() as progress:
            measured = measure(
                solver or task.solver.name,
                task,
                fold=fold,
                data=data,
                size=size,
                threshold=threshold,
                pairs=pairs,
                seed=seed,
                workers=workers,
                dask=dask,
                out=out,
                progress=progress,
            )
    measured.write(out / "stability.json")
    save_figure(stability_figure(measured), out / "stability.png")
    if as_json:
        options.print_json(measured.model_dump(mode="json"))
        return
    for sentence in measured.sentences():
        say(f"{sentence}.")
    notice(f"wrote {out / 'stability.json'} and {out / 'stability.png'}")
