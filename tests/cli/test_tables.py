"""The tables of the console: what stands in them, with further objectives as well."""

import statistics

import pytest
from helpers.changes import replace
from helpers.further_objective import cost, with_cost

from moerank.cli.messages import notice
from moerank.cli.tables import front_table, output, study_table, text_table
from moerank.studies.problem import Published
from moerank.studies.results import Results


@pytest.fixture
def shown(capsys):
    """Return the rows of a table as words."""

    def rows(table):
        console = output()
        console.width = 200
        console.print(table)
        return [line.split() for line in capsys.readouterr().out.splitlines()]

    return rows


def test_members_have_a_column_for_each_further_objective(tiny_result, shown):
    priced = with_cost(tiny_result)
    rows = shown(front_table(priced))
    heads = next(row for row in rows if "features" in row)
    assert heads[:3] == ["member", "features", "cost"]
    for number, member in enumerate(priced.front):
        name = [str(number + 1), *(["chosen"] if number == priced.chosen else [])]
        expected = [*name, str(len(member.features)), f"{cost(member.features):.4g}"]
        assert expected in [row[: len(expected)] for row in rows]
    assert ["FSMRank", str(len(priced.baselines[-1].features)), f"{cost(priced.baselines[-1].features):.4g}"] in [
        row[:3] for row in rows
    ]
    assert not any("cost" in row for row in shown(front_table(tiny_result)))


def with_seconds(run, seconds):
    """A run with known times: those of a real one may be half-way between two roundings."""
    return replace(run, times=run.times.model_copy(update={"tuning": seconds / 3, "solver": seconds}))


def mean_of(runs, count):
    return f"{statistics.fmean(getattr(run, count) for run in runs):,.0f}"


def test_a_study_has_means_and_errors_of_each_solver(tiny_study, shown):
    problem = tiny_study.problems[0].model_copy(
        update={"published": (Published(method="Theirs", solver="fsmrank", scores={"MAP": 0.25}, source="a paper"),)}
    )
    results = Results(
        with_seconds(with_cost(run), 0.1 + number**0.5) for number, run in enumerate(tiny_study.results())
    )
    rows = {row[0]: row for row in shown(study_table(problem, results)) if row}
    heads = ["cells", "features", "cost", "NDCG@10", "published", "MAP", "published", "trained", "seconds"]
    assert rows["solver"][1:] == heads
    for solver in results.solvers:
        runs = results.among([solver])

        def words(value, digits, runs=runs):
            folds = [statistics.fmean(value(run) for run in runs if run.fold == fold) for fold in (1, 2)]
            return [f"{statistics.fmean(folds):.{digits}f}", "±", f"{statistics.stdev(folds) / 2**0.5:.{digits}f}"]

        expected = [
            *(solver, str(len(runs))),
            *words(lambda run: len(run.best.features), 1),
            *words(lambda run: cost(run.best.features), 4),
            *words(lambda run: run.best.scores["test"]["NDCG@10"], 4),
            *words(lambda run: run.best.scores["test"]["MAP"], 4),
            *(["0.2500"] if solver == "fsmrank" else []),
            *([mean_of(runs, "n_trained"), "of", mean_of(runs, "n_evaluations")] if runs[0].convergence else []),
            *words(lambda run: run.times.tuning + run.times.solver, 1),
        ]
        assert rows[solver] == expected
    single = shown(study_table(problem, Results(run for run in results if run.fold == 1)))
    assert not any("±" in row for row in single if row[:1] == ["fsmrank"])


def test_labels_are_shown_as_they_are(capsys):
    label = "fsmrank[lambda1=0.1]"
    cell = f"{label} [/bold] \x9b2J" + " and more" * 50
    output().print(text_table(f"title {label} :smile: \x1b[31m", [{"head": cell}]))
    notice(f"wrote {label}\x1b]0;gone\x07")
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].rstrip() == rf"title {label} :smile: \x1b[31m"
    assert rf"{label} [/bold] \x9b2J" + " and more" * 50 in printed.out
    assert printed.err == rf"wrote {label}\x1b]0;gone\x07" + "\n"
