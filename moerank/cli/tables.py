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

from moerank.cli.messages import printable
from moerank.solvers import FAMILIES, SolverEntry

if TYPE_CHECKING:  # these take seconds to import, and the table of solvers needs none of them
    import pandas as pd

    from moerank.data.describe import DataDescription
    from moerank.runs.result import Member, Result
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
        title=None if title is None else printable(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        show_edge=False,
        pad_edge=False,
    )
    columns = max((list(row) for row in rows), key=len)
    for number, column in enumerate(columns):
        justify: JustifyMethod = "left" if number < n_left else "right"
        table.add_column(printable(column), justify=justify, overflow="fold", no_wrap=number == 0)
    for number, row in enumerate(rows):
        table.add_row(
            *(printable(row.get(column, "")) for column in columns), end_section=number in ends
        )
    return table


def description_table(title: str, descriptions: Sequence[DataDescription]) -> Table:
    """Return one column per file and one row per count."""
    files = {Path(description.name).name: description.as_dict() for description in descriptions}
    keys = [key for key in descriptions[0].as_dict() if key != "name"]
    rows = [
        {"": key.replace("_", " "), **{name: _count(own[key]) for name, own in files.items()}}
        for key in keys
    ]
    return text_table(title, rows)


def _count(value: object) -> str:
    if isinstance(value, Mapping):
        value = [f"{label}: {count:,}" for label, count in value.items()]
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return value if isinstance(value, str) else f"{value:,}" if type(value) is int else f"{value:g}"


def front_table(result: Result) -> Table:
    """Return the members of the front by size, then the baselines, with their metrics on all parts.

    Members are numbered as in front.csv and for --member. Each objective other than the number of features and the
    error has a column with its training values.
    """
    rows = []
    for number, member in enumerate(result.front):
        mark = " chosen" if number == result.chosen else ""
        name = (
            f"{number + 1:>{len(str(len(result.front)))}}{mark}"
            if len(result.front) > 1
            else result.solver
        )
        rows.append({"member": name, **_values(member, result)})
    rows += [
        {"member": baseline.name, **_values(baseline, result)} for baseline in result.baselines
    ]
    title = f"{result.problem}, fold {result.fold}: {result.solver}, seed {result.seed}"
    return text_table(title, rows, ends=[len(result.front) - 1])


def _values(ranker: Member, result: Result) -> dict[str, str]:
    from moerank.runs.result import PARTS

    heads = {
        (name, part): f"{name}\n{part.removesuffix('dation')}"
        for name in result.metrics
        for part in PARTS
    }
    return {
        "features": str(len(ranker.features)),
        **{name: f"{ranker.objectives[name]:.4g}" for name in result.further_objectives},
        **{head: f"{ranker.scores[part][name]:.4f}" for (name, part), head in heads.items()},
    }


# Columns of the text of a run, and the number of members of the front in its rows.
TEXT_WIDTH = 80
MOST_SETS = 7


def paragraph(text: str, most_lines: int | None = None) -> str:
    """Return a text in lines of a terminal, indented; `…` stands for what is beyond `most_lines`."""
    return fill(
        text,
        TEXT_WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        max_lines=most_lines,
        placeholder=" … (model.json)",
        break_on_hyphens=False,
        break_long_words=False,
    )


def decision(result: Result) -> str:
    """Return what a reader decides by: the verdict, some sets of features with their values, and the chosen names."""
    best, verdict = result.best, result.verdict
    seconds = f"{result.times.tuning + result.times.solver:.1f} s of processor time"
    lines = [
        f"{result.problem}, fold {result.fold} · {result.solver}, seed {result.seed} · {seconds}",
        "",
    ]
    if verdict is not None:
        lost = "On validation they lose at most one standard error"
        reason = verdict.advice or lost * (
            verdict.decision == "use" and verdict.n_features < verdict.n_allowed
        )
        outcome = f"{verdict.outcome[0].upper()}{verdict.outcome[1:]}"
        for sentences in ((verdict.headline.upper(), reason), (outcome, verdict.rival)):
            lines += [paragraph(". ".join(filter(None, sentences)) + "."), ""]
    lines += [text for sentence in result.leaks for text in (paragraph(f"Caution: {sentence}"), "")]
    lines += _rows(result)
    names = result.names(best.features)
    if best.weights is not None:
        names = [
            name
            for _, name in sorted(
                zip(np.abs(best.weights), names, strict=True), key=lambda e: -e[0]
            )
        ]
    lines.append(paragraph(f"The {len(names)}: {', '.join(names)}", 2))
    if search := result.convergence.get("feature_selection"):
        gain = f"{100 * search.last_half:.1f} %"
        lines.append(
            paragraph(
                f"The second half of the search improved the hypervolume of its front by {gain}."
            )
        )
    return "\n".join(lines)


def _rows(result: Result) -> list[str]:
    """Return the sizes of some members, the chosen one among them, and of baselines, above their values."""
    from moerank.verdict import short

    metric, n_members, chosen = result.metrics[0], len(result.front), result.chosen
    names = {"all features": "", "LambdaMART": "LambdaMART"}
    baselines = [(names[other.name], other) for other in result.baselines if other.name in names]
    spread = np.linspace(0, n_members - 1, min(MOST_SETS, n_members)).round().astype(int).tolist()
    if chosen not in spread:
        spread[min(range(1, len(spread) - 1), key=lambda i: abs(spread[i] - chosen))] = chosen
    members = [
        (f"{len(result.front[i].features)}{'*' * (i == chosen)}", result.front[i]) for i in spread
    ]
    members += [(label or str(result.n_allowed), other) for label, other in baselines]
    rows = {"features": [size for size, _ in members]}
    rows |= {
        name: [f"{member.objectives[name]:.3g}" for _, member in members]
        for name in result.further_objectives
    }
    rows |= {
        part: [short(member.scores[part][metric]) for _, member in members]
        for part in ("validation", "test")
    }
    width = max([5, *(len(cell) for row in rows.values() for cell in row[:-1])]) + 1
    lines = [
        f"  {name:<11.11}" + "".join(f"{cell:<{width}}" for cell in row).rstrip()
        for name, row in rows.items()
    ]
    return [
        *lines,
        f"  * chosen; {n_members} sets in all: --table, front.csv"
        if n_members > 1
        else "  * chosen",
    ]


def solver_table(entries: Collection[SolverEntry]) -> Table:
    """Return the table of solvers by family with their papers; an asterisk marks the recommended ones."""
    families, rows = dict.fromkeys([*FAMILIES, *(entry.family for entry in entries)]), []
    for entry in (entry for family in families for entry in entries if entry.family == family):
        first, *others = entry.paper.partition(":")[0].split(", ")
        row = {
            "solver": entry.name + " *" * entry.recommended,
            "family": entry.family,
            "needs": ", ".join(entry.needs),
        }
        row |= {key: "yes" if getattr(entry, key) else "no" for key in ("linear", "backend")}
        rows.append(row | {"paper": f"{first}{' et al.' * bool(others)} {entry.year}"})
    return text_table(None, rows, n_left=6)


def study_table(results: Results) -> tuple[Table, str]:
    """Return the means of the solvers of a problem with their differences from a reference, and the finding in words.

    The tests are those of the report: paired t tests over test queries, with p values adjusted by Holm's method.
    """
    from moerank.figures.panels import named
    from moerank.studies.results import against_reference, default_reference
    from moerank.verdict import short, signed

    (means, errors), reference = results.means(), default_reference(results)
    tests = against_reference(results, reference, results.metric).set_index("solver")
    words = {name: _word(test["difference"], test["holm"]) for name, test in tests.iterrows()}
    n_queries, rows = results.n_queries(results.by_solver()[reference]), []
    for solver, mean in means.iterrows():
        row = {"solver": str(solver), "features": f"{mean['n_features']:.1f}"}
        row |= {
            name: _with_error(mean, errors.loc[solver], name, 4)
            for name in results.further_objectives
        }
        row |= {
            results.metric: short(mean[f"test {results.metric}"]),
            f"against {reference}": "reference",
            "": "",
        }
        if solver in tests.index:
            difference, error, p, n = tests.loc[solver, ["difference", "error", "holm", "n"]]
            row[f"against {reference}"] = f"{signed(difference)} ± {short(error)}"
            fewer = f" ({int(n):,} queries)" if n < n_queries else ""
            row[""] = f"{words[solver]}, p {'< .001' if p < 0.001 else f'= {short(p)}'}{fewer}"
        elif solver != reference:
            row |= {f"against {reference}": "no fold in common"}
        rows.append(
            row | {"s": _with_error(mean, errors.loc[solver], "seconds", 1).partition(" ")[0]}
        )
    heads = {"better": "Better", "worse": "Worse", "undecided": "Too few queries to tell"}
    groups = [
        named(head, [name for name, own in words.items() if own == word])
        for word, head in heads.items()
    ]
    tested = f"Against {reference} on {n_queries:,} test queries (paired t tests, Holm)."
    finding = " ".join([tested, *filter(None, groups)]) if words else ""
    return text_table(
        f"{results.problems[0]}: test {results.metric}, means over seeds, then folds", rows
    ), finding


def _word(difference: float, p: float) -> str:
    """Return the result of a test in a word."""
    from moerank.statistics import LEVEL

    return "undecided" if not p <= LEVEL else "better" if difference > 0 else "worse"


def _with_error(means: pd.Series, errors: pd.Series, column: str, digits: int) -> str:
    """Return the mean of a column, with its standard error if there is one; an empty text if there is no mean."""
    texts = [
        f"{numbers[column]:.{digits}f}"
        for numbers in (means, errors)
        if not np.isnan(numbers[column])
    ]
    return " ± ".join(texts)
