"""The tables of the console: what stands in them, with further objectives as well."""

import statistics

import numpy as np
import pytest
from helpers.changes import replace
from helpers.further_objective import cost, with_cost

from moerank.cli.messages import notice
from moerank.cli.tables import front_table, output, run_summary, study_table, text_table
from moerank.studies.comparison import compare_solvers
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
    assert ["all", "features", "20", f"{cost(range(20)):.4g}"] in [row[:4] for row in rows]
    lines = run_summary(priced).splitlines()
    costs = next(line.split()[1:] for line in lines if line.startswith("  cost"))
    assert costs[-1] == f"{cost(range(20)):.3g}"
    assert max(map(len, lines)) <= 80
    assert not any("cost" in row for row in shown(front_table(tiny_result)))


def with_seconds(run, seconds):
    """A run with known times: those of a real one may be half-way between two roundings."""
    return replace(run, times=run.times.model_copy(update={"tuning": seconds / 3, "solver": seconds}))


def test_a_study_has_the_differences_from_a_reference_with_the_tests_of_the_report(tiny_study, shown):
    results = Results(
        with_seconds(with_cost(run), 0.1 + number**0.5) for number, run in enumerate(tiny_study.results())
    )
    table, finding = study_table(results)
    rows = {row[0]: row for row in shown(table) if row}
    assert rows["solver"][1:] == ["features", "cost", "NDCG@10", "against", "ranksvm-primal", "s"]
    comparison = compare_solvers(results, "test NDCG@10", "ranksvm-primal")
    tests = comparison.frame.set_index("solver")
    for solver in results.solvers:
        runs = results.among([solver])

        def mean(value, runs=runs):
            return statistics.fmean(statistics.fmean(value(run) for run in runs if run.fold == fold) for fold in (1, 2))

        words = rows[solver]
        assert words[1] == f"{mean(lambda run: len(run.best.features)):.1f}"
        assert words[2] == f"{mean(lambda run: cost(run.best.features)):.4f}"
        assert float(words[5]) == pytest.approx(mean(lambda run: run.best.scores["test"]["NDCG@10"]), abs=5.1e-4)
        assert words[-1] == f"{mean(lambda run: run.times.tuning + run.times.solver):.1f}"
        if solver == "ranksvm-primal":
            assert words[6] == "reference"
            continue
        values = results.query_values("NDCG@10")
        d = values[solver] - values["ranksvm-primal"]
        assert float(words[6].replace("−", "-")) == pytest.approx(d.mean(), abs=5.1e-4)
        assert float(words[8]) == pytest.approx(d.std(ddof=1) / len(d) ** 0.5, abs=5.1e-4)
        assert " ".join(words[9:13]) == f"{tests.loc[solver, 'finding']},"
    assert finding == comparison.sentence
    assert finding.startswith("Test NDCG@10 against ranksvm-primal, query by query (6). Too few to tell: ")
    assert study_table(results.among(["fsmrank"]))[1] == ""
    fewer = Results(run for run in results if (run.solver, run.fold) != ("fsmrank", 2))
    (row,) = (row for row in shown(study_table(fewer)[0]) if row and row[0] == "fsmrank")
    assert row[-3:-1] == ["(3", "queries)"]


@pytest.mark.parametrize(("shift", "word"), [(-0.9, "A loss is detected"), (0.9, "A gain is detected")])
def test_the_finding_of_a_study_is_that_of_its_tests(tiny_study, monkeypatch, shift, word):
    """A solver whose queries all lie on one side of the reference, by about as much."""
    monkeypatch.setattr("moerank.statistics.MIN_QUERIES", 5)
    results = Results(tiny_study.results()).among(["fsmrank", "ranksvm-primal"])
    other = {run.fold: run.best.per_query["test"]["NDCG@10"] for run in results if run.solver == "ranksvm-primal"}
    moved = []
    for run in results:
        values = np.add(other[run.fold], shift + 0.01 * np.arange(len(other[run.fold]))).tolist()
        best = replace(run.best, per_query={"test": {"NDCG@10": values}})
        moved.append(replace(run, front=[best], chosen=0) if run.solver == "fsmrank" else run)
    assert study_table(Results(moved))[1].endswith(f"query by query (6). {word}: fsmrank.")


def test_labels_are_shown_as_they_are(capsys):
    label = "fsmrank[lambda1=0.1]"
    cell = f"{label} [/bold] \x9b2J" + " and more" * 50
    output().print(text_table(f"title {label} :smile: \x1b[31m", [{"head": cell}]))
    notice(f"wrote {label}\x1b]0;gone\x07")
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].rstrip() == rf"title {label} :smile: \x1b[31m"
    assert rf"{label} [/bold] \x9b2J" + " and more" * 50 in printed.out
    assert printed.err == rf"wrote {label}\x1b]0;gone\x07" + "\n"
