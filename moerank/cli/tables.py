"""Tables that the commands print."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table

from moerank.cli.messages import escape_controls
from moerank.solvers import FAMILIES, SolverEntry

if TYPE_CHECKING:  # importing these takes seconds, and the table of solvers needs none of them
    from moerank.data.describe import DataDescription
    from moerank.runs.result import Explanation, Member, Result
    from moerank.studies.results import Results


# Width of output to files and pipes, wide enough that no row is wrapped.
UNBROKEN_WIDTH = 1000


def output() -> Console:
    """Return the console of standard output."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = UNBROKEN_WIDTH
    return console


def text_table(
    title: str | None,
    rows: Sequence[Mapping[str, str]],
    *,
    n_left: int = 1,
    ends: Collection[int] = (),
) -> Table:
    """Return a table whose first `n_left` columns are aligned to the left, the others to the right.

    A gap follows each row in `ends`. Control characters are escaped.
    """
    table = Table(
        title=None if title is None else escape_controls(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        show_edge=False,
        pad_edge=False,
    )
    columns = max((list(row) for row in rows), key=len)
    for index, column in enumerate(columns):
        justify: JustifyMethod = "left" if index < n_left else "right"
        table.add_column(
            escape_controls(column), justify=justify, overflow="fold", no_wrap=index == 0
        )
    for index, row in enumerate(rows):
        cells = [escape_controls(row.get(column, "")) for column in columns]
        table.add_row(*cells, end_section=index in ends)
    return table


def description_table(title: str, descriptions: Sequence[DataDescription]) -> Table:
    """Return a table with a column for each file and a row for each count."""
    files = {Path(description.name).name: description.as_dict() for description in descriptions}
    rows = []
    for key in descriptions[0].as_dict():
        if key not in ("name", "cautions"):
            counts = {name: _format_count(values[key]) for name, values in files.items()}
            rows.append({"": key.replace("_", " "), **counts})
    return text_table(title, rows)


def _format_count(value: object) -> str:
    if isinstance(value, Mapping):
        value = [f"{label}: {count:,}" for label, count in value.items()]
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else f"{value:,}"


def front_table(result: Result) -> Table:
    """Return the members of the front by size, then the baselines, with their metrics on all parts.

    Members are numbered as in front.csv and for --member. Each objective other than the number of features and the
    error has a column with its training values.
    """
    n_members = len(result.front)
    names = [f"{index + 1:>{len(str(n_members))}}" for index in range(n_members)]
    names[result.chosen] += " chosen"
    if n_members == 1:
        names = [result.solver]
    names += [baseline.name for baseline in result.baselines]
    rows = [
        {"member": name, **_values(ranker, result)}
        for name, ranker in zip(names, [*result.front, *result.baselines], strict=True)
    ]
    title = f"{result.problem}, fold {result.fold}: {result.solver}, seed {result.seed}"
    return text_table(title, rows, ends=[n_members - 1])


def _values(ranker: Member, result: Result) -> dict[str, str]:
    from moerank.runs.result import PARTS

    values = {"features": str(ranker.n_features)}
    for name in result.further_objectives:
        values[name] = f"{ranker.objectives[name]:.4g}"
    for name in result.metrics:
        for part in PARTS:
            head = f"{name}\n{part.removesuffix('dation')}"
            values[head] = f"{ranker.scores[part][name]:.4f}"
    return values


# Columns of the text of a run, and the maximum number of members of the front in its rows.
TEXT_WIDTH = 80
MAX_SETS = 7


def paragraph(text: str, max_lines: int | None = None) -> str:
    """Wrap and indent a text for a terminal; `…` stands for the lines beyond `max_lines`."""
    return fill(
        text,
        TEXT_WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        max_lines=max_lines,
        placeholder=" … (model.json)",
        break_on_hyphens=False,
        break_long_words=False,
    )


def run_summary(result: Result) -> str:
    """Return the text summary of a run: its verdict, some sets of features with their values, and the chosen names."""
    best, verdict = result.best, result.verdict
    seconds = f"{result.times.tuning + result.times.solver:.1f} s of CPU time"
    run = f"{result.problem}, fold {result.fold} · {result.solver}, seed {result.seed}"
    lines = [f"{run} · {seconds}", ""]
    if verdict:
        reason = verdict.advice
        if not reason and verdict.decision == "use" and verdict.n_features < verdict.n_allowed:
            reason = (
                f"On validation they rank as well as all {verdict.n_allowed}, "
                "within one standard error"
            )
        outcome = f"{verdict.outcome[0].upper()}{verdict.outcome[1:]}"
        for sentences in ((verdict.headline.upper(), reason), (outcome, verdict.rival)):
            lines += [paragraph(". ".join(filter(None, sentences)) + "."), ""]
    for sentence in result.leaks:
        lines += [paragraph(f"Caution: {sentence}"), ""]
    lines += _size_rows(result)
    names = result.names(best.features)
    if best.weights is not None:
        order = np.argsort(-np.abs(best.weights), kind="stable")
        names = [names[index] for index in order]
    origin = f" (from {best.source.split('[')[0]})" if best.source else ""
    lines.append(paragraph(f"The {len(names)}{origin}: {', '.join(names)}", 2))
    if result.explanation is not None:
        lines.append(paragraph(_explained(result.explanation), 4))
    if search := result.convergence.get("feature_selection"):
        gain = f"{100 * search.last_half:.1f} %"
        sentence = "In its second half the search improved the hypervolume of its front by"
        lines.append(paragraph(f"{sentence} {gain}."))
    return "\n".join(lines)


def _explained(explanation: Explanation) -> str:
    from moerank.verdict import short, signed

    worth = ", ".join(f"{name} {short(loss)}" for name, loss in explanation.worth.items())
    difference, error = explanation.curves
    return (
        f"Explained by curves on validation: {signed(difference)} ± {short(error)}, by an additive "
        f"ranker on the same features. Loss where a feature is permuted: {worth}"
    )


def _size_rows(result: Result) -> list[str]:
    """Return the sizes of some members, including the chosen one, and of the baselines, above their values."""
    from moerank.verdict import short

    metric, n_members = result.metric, len(result.front)
    indices = np.linspace(0, n_members - 1, min(MAX_SETS, n_members)).round().astype(int).tolist()
    if result.chosen not in indices:
        nearest = min(indices[1:-1], key=lambda index: abs(index - result.chosen))
        indices[indices.index(nearest)] = result.chosen
    rankers = [result.front[index] for index in indices]
    sizes = [str(member.n_features) for member in rankers]
    sizes[indices.index(result.chosen)] += "*"
    labels = {"all features": str(result.n_allowed), "LambdaMART": "LambdaMART"}
    for baseline in result.baselines:
        if baseline.name in labels:
            rankers.append(baseline)
            sizes.append(labels[baseline.name])
    rows = {"features": sizes}
    for name in result.further_objectives:
        rows[name] = [f"{ranker.objectives[name]:.3g}" for ranker in rankers]
    for part in ("validation", "test"):
        rows[part] = [short(ranker.scores[part][metric]) for ranker in rankers]
    width = max([5, *(len(cell) for row in rows.values() for cell in row[:-1])]) + 1
    lines = []
    for name, row in rows.items():
        cells = "".join(f"{cell:<{width}}" for cell in row)
        lines.append(f"  {name:<11.11}{cells}".rstrip())
    count = f"; {n_members} sets in all: --table, front.csv" if n_members > 1 else ""
    return [*lines, f"  * chosen{count}"]


def solver_table(entries: Collection[SolverEntry]) -> Table:
    """Return the table of solvers by family with their papers; an asterisk marks the recommended ones."""
    families = list(dict.fromkeys([*FAMILIES, *(entry.family for entry in entries)]))
    rows = []
    for entry in sorted(entries, key=lambda entry: families.index(entry.family)):
        author, *coauthors = entry.paper.partition(":")[0].split(", ")
        authors = f"{author} et al." if coauthors else author
        rows.append(
            {
                "solver": f"{entry.name} *" if entry.recommended else entry.name,
                "family": entry.family,
                "needs": ", ".join(entry.needs),
                "linear": "yes" if entry.linear else "no",
                "backend": "yes" if entry.backend else "no",
                "paper": f"{authors} {entry.year}",
            }
        )
    return text_table(None, rows, n_left=6)


def study_table(results: Results) -> tuple[Table, str]:
    """Return the means of the solvers of a problem, compared with a reference as in the report, and the findings."""
    from moerank.studies.comparison import compare_solvers, relation
    from moerank.studies.results import default_reference
    from moerank.verdict import short, signed

    means, errors = results.means()
    reference = default_reference(results)
    comparison = compare_solvers(results, f"test {results.metric}", reference)
    tests = comparison.frame.set_index("solver")
    against, rows = f"against {reference}", []
    for solver, mean in means.iterrows():
        row = {"solver": str(solver), "features": f"{mean['n_features']:.1f}"}
        for name in results.further_objectives:
            numbers = mean[name], errors.loc[solver, name]
            row[name] = " ± ".join(f"{x:.4f}" for x in numbers if not np.isnan(x))
        row[results.metric] = short(mean[f"test {results.metric}"])
        row[against] = "reference" if solver == reference else "no fold in common"
        row[""] = ""
        if solver in tests.index:
            test = tests.loc[solver]
            row[against] = f"{signed(test['difference'])} ± {short(test['error'])}"
            count = f" ({test['n']:,} queries)" if test["n"] < tests["n"].max() else ""
            row[""] = f"{test['finding']}, p {relation(test['adjusted'])}{count}"
        row["s"] = "" if np.isnan(mean["seconds"]) else f"{mean['seconds']:.1f}"
        rows.append(row)
    title = f"{results.problems[0]}: test {results.metric}, means over seeds, then folds"
    return text_table(title, rows), comparison.sentence
