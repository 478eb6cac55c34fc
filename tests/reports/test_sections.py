import os
import platform
import re
import shutil
from collections import Counter
from functools import cache

import numpy as np
import pytest
from helpers.changes import replace
from helpers.further_objective import cost
from scipy import stats

from moerank.reports.report import Entry, Report, mark_best, number, with_error
from moerank.reports.sections import certificates, pairs, results, sections, verdict
from moerank.studies.comparison import against_reference, query_pairs, standings
from moerank.studies.problem import Published
from moerank.studies.result import Certificate
from moerank.studies.study import Study


@cache
def titled(report):
    return {section.title: section for section in sections(report)}


def test_sections_are_in_reading_order(report):
    first = ["Verdict", "Results: tiny", "Tests", "All pairs of solvers", "Features chosen", "Ablations"]
    assert list(titled(report)) == [*first, "Question", "Problems", "Solvers", "How to reproduce"]


def test_certificates_are_a_section_of_their_own(report, report_of):
    """Of the first run alone: its chosen member lacks a quarter of the reduction, the others nothing."""
    first, *others = report.results
    losses = [0.8 if number == first.chosen else 0.75 for number in range(len(first.front))]
    known = {"sizes": [1, 2], "best": [0.9, 0.8], "bounds": [0.9, 0.7], "least": [0.75] * len(losses), "losses": losses}
    certificate = Certificate(alpha=1.0, **known, errors=[0.5], n_subsets=20, hypervolume=0.6)
    (row,) = certificates(report_of([replace(first, certificate=certificate), *others])).tables[0].rows
    name, size = first.solver, str(len(first.best.features))
    assert [entry.text for entry in row] == ["tiny", "1", name, size, "25.0%", "25.0%", "1 of 2", "1", "60%"]


def test_the_verdict_names_the_solver_that_validation_likes_best(report, tiny_study):
    """Chosen from the frame of the runs; the numbers behind are those of `chosen_solver`, with tests of its own."""
    frame = tiny_study.frame()
    selecting = frame[frame["solver"] != "ranksvm-primal"]
    folds = selecting.groupby(["solver", "fold"])[["validation NDCG@10", "test NDCG@10", "n_features"]].mean()
    means = folds.groupby("solver").mean()
    best = means["validation NDCG@10"].idxmax()
    answer, grounds = titled(report)["Verdict"].paragraphs
    runs = runs_of(report, best).values()
    often = Counter(name for run in runs for name in run.names(run.best.features))
    named = [name for name, n in often.items() if n > len(runs) / 2]
    size, listed = re.match(rf"tiny: {best}, with (\S+) of 20 features \((.*?)\)\. Against ", answer).groups()
    assert size == f"{means.loc[best, 'n_features']:.1f}"
    shown = re.split(", | and ", listed.removeprefix(f"in most of its {len(runs)} runs: "))
    assert {name for name in shown if not name.endswith(" more")} <= set(named)
    assert len(shown) == min(len(named), 9)
    assert f"on {len(report.results[0].queries['test']) * 2} test queries" in answer
    assert (
        "Chosen among 4 solvers that select features, by the mean NDCG@10 of validation queries on 2 folds" in grounds
    )
    assert f"On test queries it has {means.loc[best, 'test NDCG@10']:.4f} ± " in grounds
    compared = selecting.groupby(["solver", "fold"])["compared"].mean().groupby("solver").mean()
    said = (
        f"{compared[best]:,.0f} settings and members of it, and {compared.min():,.0f} to {compared.max():,.0f} of each"
    )
    assert said in grounds
    by_test = means["test NDCG@10"].round(10)
    assert ("Test values would choose" in grounds) == (by_test[best] < by_test.max())


@pytest.mark.parametrize(
    ("difference", "n", "words"),
    [
        (-0.05, 400, "test queries: a loss is detected. The test of no difference has p < 0.001, that of a difference"),
        (0.05, 400, "on 400 test queries: a gain is detected. The test of no difference has p < 0.001"),
        (0.0, 400, "equivalent within .005. The test of no difference has p = 1.000, that of a difference beyond the"),
        (-0.05, 8, "Against RankSVM with all of them: estimated loss .050 NDCG@10"),
        (-0.05, 8, "on 8 test queries: too few to tell"),
    ],
)
def test_the_verdict_says_how_sure_it_is(difference, n, words, report, report_of):
    (run, *_) = runs_of(report, "fsmrank").values()
    differences = tuple(np.tile([difference - 0.01, difference + 0.01], n // 2).tolist())
    judged = replace(run.verdict, n_queries=n, differences=differences)
    answer, grounds, unfinished = verdict(report_of([replace(run, verdict=judged)])).paragraphs
    assert words in answer
    assert "Chosen as the only one that selects, by the mean NDCG@10 of validation queries on one fold." in grounds
    assert unfinished.startswith("1 of 18 runs are finished")


def test_without_a_selection_there_is_no_verdict(report, report_of):
    said = verdict(report_of(report.results.among(["ranksvm-primal"]))).paragraphs[0]
    assert said == "tiny: no verdict, because no finished run selects features and was judged by test queries."


def test_no_best_is_marked_where_solvers_have_other_folds(report, report_of):
    def bold(of):
        tables = results(of, report.problems[0]).tables
        return [entry.text for table in tables for row in table.rows for entry in row if entry.best], tables[0].caption

    found, caption = bold(report)
    assert found and "the best of a column is bold" in caption
    kept = [result for result in report.results if (result.solver, result.fold) != ("fsmrank", 2)]
    found, caption = bold(report_of(kept))
    assert not found and "no best is marked, because solvers have different folds" in caption


def test_the_days_and_the_machine_of_the_results_are_told(tiny_study, tmp_path):
    shutil.copytree(tiny_study.out, tmp_path / "copy")
    for day, path in enumerate(sorted((tmp_path / "copy" / "cells").iterdir())):
        os.utime(path, (0, 86_400 * min(day, 3)))
    section = titled(Report(Study.load(tmp_path / "copy")))["How to reproduce"]
    assert "written from 1970-01-01 to 1970-01-04 (UTC)" in section.paragraphs[1]
    assert platform.machine() in {row[0].text: row[1].text for row in section.tables[0].rows}["machine"]


def test_results_are_means_over_folds_after_seeds(report, tiny_study):
    frame = tiny_study.frame()
    table = titled(report)["Results: tiny"].tables[0]
    for row in table.rows:
        rows = frame[frame["solver"] == row[0].text]
        assert row[table.columns.index("runs")].text == str(len(rows))
        for metric in ("NDCG@10", "MAP"):
            folds = [rows[rows["fold"] == fold][f"test {metric}"].mean() for fold in (1, 2)]
            error = abs(folds[0] - folds[1]) / 2
            assert row[table.columns.index(metric)].text == f"{np.mean(folds):.4f} ± {error:.4f}"


def test_the_best_of_a_column_is_marked_as_it_is_printed():
    entries = [with_error(0.51234, 0.01), number(0.51231), number(0.4), Entry("none"), number(float("nan"))]
    mark_best(entries)
    assert [entry.best for entry in entries] == [True, True, False, False, False]
    mark_best(entries, largest=False)
    assert [entry.best for entry in entries][:3] == [False, False, True]


def test_tests_are_those_of_the_queries(report):
    table, judged = titled(report)["Tests"].tables
    judges = [[entry.text for entry in row[:2]] for row in judged.rows]
    assert judges == [
        ["fsmrank", "RankSVM"],
        ["mofsrank", "its backend"],
        ["mofsrank-no-ensemble", "its backend"],
        ["greedy-rankrls", "RankRLS"],
    ]
    assert report.reference == "ranksvm-primal"
    expected = against_reference(report.results, "ranksvm-primal", "NDCG@10").set_index("solver")
    for row in table.rows:
        found = expected.loc[row[0].text]
        assert row[3].value == found["p"]
        assert row[2].text == f"{found['wins']:.0f} / {found['ties']:.0f} / {found['losses']:.0f}"


def test_all_pairs_are_counted_by_the_tests_of_their_queries(report):
    table, fronts = titled(report)["All pairs of solvers"].tables
    pairs = query_pairs(report.results, "NDCG@10")
    standing = standings(pairs)
    n_found = sum(len(places["better"]) for places in standing.values())
    assert f"10 tests, one for each pair, of which {n_found} find" in table.caption
    assert f"over the {pairs['n'].max()} test queries" in table.note
    assert [row[1].value for row in table.rows] == sorted((row[1].value for row in table.rows), reverse=True)
    for row in table.rows:
        places = standing[row[0].text]
        assert [entry.value for entry in row[2:5]] == [len(places[name]) for name in ("better", "worse", "undecided")]
        assert set(row[5].text.split(", ")) - {""} == set(places["better"])
    assert {row[0].text for row in fronts.rows} == {"mofsrank", "mofsrank-no-ensemble"}
    assert "1 test, of which" in fronts.caption
    assert "over the 6 common cells" in fronts.note


def test_too_few_cells_are_said_and_not_tested(report, report_of):
    section = titled(report_of([result for result in report.results if result.seed < 2]))["All pairs of solvers"]
    assert [table.name for table in section.tables] == ["pairs-tiny"]
    assert section.paragraphs[1] == (
        "tiny: the hypervolumes of the searches are not tested. Pairs: 1; common cells of a pair, each a fold and a "
        "seed: 4. With fewer than 6 cells no adjusted signed-rank test can reach 0.05."
    )


def test_many_that_are_beaten_are_not_all_named(report, report_of):
    """Twelve solvers, each better than all before it by far."""
    first, second = runs_of(report, "fsmrank").values()
    made = []
    for level in range(12):
        for run in (first, second):
            n = len(run.best.per_query["test"]["NDCG@10"])
            values = (level / 12 + np.linspace(0, 0.01, n)).tolist()
            scores = {**run.best.scores, "test": {"NDCG@10": float(np.mean(values)), "MAP": 0.5}}
            best = replace(run.best, scores=scores, per_query={"test": {"NDCG@10": values}})
            made.append(replace(run, solver=f"s{level:02}", front=[best], chosen=0))
    table = pairs(report_of(made, "s00")).tables[0]
    assert [row[0].text for row in table.rows] == [f"s{level:02}" for level in range(11, -1, -1)]
    assert table.rows[0][5].text == "s10, s09, s08, s07, s06, s05, s04, s03 and 3 more"
    assert table.rows[3][5].text == "s07, s06, s05, s04, s03, s02, s01, s00"


def test_ablations_are_compared_fold_by_fold_after_seeds(report, tiny_study):
    (table,) = titled(report)["Ablations"].tables
    (row,) = table.rows
    assert row[0].text == "ensemble"
    means = tiny_study.frame().groupby(["solver", "fold"])[["n_features", "test NDCG@10"]].mean()
    for head, name in (("features", "n_features"), ("test NDCG@10", "test NDCG@10")):
        a, b = (means.loc[solver, name].to_numpy() for solver in ("mofsrank-no-ensemble", "mofsrank"))
        column = table.columns.index(head)
        assert row[column].value == pytest.approx((a - b).mean(), abs=1e-12)
        expected = stats.ttest_rel(a, b).pvalue if np.ptp(a - b) else float((a == b).all())
        assert row[column + 1].value == pytest.approx(expected)


def test_instances_are_counted_for_solvers_that_select_them(report, tiny_study):
    table = titled(report)["Results: tiny"].tables[2]
    assert [row[0].text for row in table.rows] == ["mofsrank", "mofsrank-no-ensemble"]
    runs = [run for run in tiny_study.results() if run.solver == "mofsrank"]
    used = {fold: np.mean([run.best.instances for run in runs if run.fold == fold]) for fold in (1, 2)}
    total = {fold: next(run.n_instances for run in runs if run.fold == fold) for fold in (1, 2)}
    assert table.rows[0][2].value == pytest.approx(np.mean(list(total.values())))
    assert table.rows[0][3].value == pytest.approx(np.mean(list(used.values())))
    assert table.rows[0][4].value == pytest.approx(np.mean([used[fold] / total[fold] for fold in (1, 2)]))


def test_results_can_be_shown_by_any_metric_that_is_kept(tiny_study):
    table = titled(Report(tiny_study, metrics=["NDCG@1", "MeanNDCG"]))["Results: tiny"].tables[0]
    columns = ["NDCG@1", "MeanNDCG"]
    assert [name for name in table.columns if name in (*columns, "NDCG@10", "MAP")] == columns
    runs = [run.best.further["test"] for run in tiny_study.results() if run.solver == "ranksvm-primal"]
    row = next(row for row in table.rows if row[0].text == "ranksvm-primal")
    for name in columns:
        assert row[table.columns.index(name)].value == pytest.approx(np.mean([scores[name] for scores in runs]))
    with pytest.raises(ValueError, match="unknown metric 'NDCG@11'"):
        Report(tiny_study, metrics=["NDCG@11"])


def test_published_results_have_their_sources(report, report_of):
    entry = Published(method="Theirs", solver="fsmrank", features=3.0, scores={"MAP": 0.25}, source="a paper")
    problem = replace(report.problems[0], published=(entry,))
    published = titled(report_of(report.results, problems=[problem]))["Problems"].tables[1]
    assert published.columns == ["method", "solver here", "features", "MAP", "source"]
    assert [e.text for e in published.rows[0]] == ["Theirs", "fsmrank", "3.0", "0.2500", "a paper"]


def test_what_is_missing_is_named_and_the_rest_reported(tiny_study, tiny_problem_file, tmp_path):
    Study([tiny_problem_file], ["rankrls"], tmp_path, folds=[1]).run()
    shutil.copytree(tmp_path, tmp_path / "copy")
    study = Study([tiny_problem_file], ["rankrls", "fsmrank"], tmp_path / "copy", folds=[1, 2])
    report = Report(study)
    text = "\n".join(titled(report)["Question"].paragraphs)
    assert "1 of 4 runs are finished" in text
    assert "fsmrank on tiny: 2; rankrls on tiny: 1" in text
    assert "Results: tiny" in titled(report)


def test_ablations_without_a_common_run_are_left_out(report, report_of):
    only = {"mofsrank": 1, "mofsrank-no-ensemble": 2}
    kept = [result for result in report.results if only.get(result.solver, result.fold) == result.fold]
    assert "Ablations" not in titled(report_of(kept))


def test_a_single_run_is_never_significant(report, report_of):
    kept = [result for result in report.results if result.fold == 1 and result.seed == 0]
    (table,) = titled(report_of(kept))["Ablations"].tables
    assert [row[column].text for row in table.rows for column in (2, 4, 6)] == ["1.000"] * 3


def test_published_values_stand_only_beside_the_parameters_of_the_table(report, report_of):
    entry = Published(method="Theirs", solver="fsmrank", scores={"MAP": 0.25}, source="a paper")
    problem = replace(report.problems[0], published=(entry,))
    given = [replace(run, solver="fsmrank[lambda1=0.5]") for run in runs_of(report, "fsmrank").values()]
    table = results(report_of([*report.results, *given]), problem).tables[0]
    shown = {row[0].text: row[table.columns.index("MAP") + 1].text for row in table.rows}
    assert shown["fsmrank"] == "0.2500"
    assert shown["fsmrank[lambda1=0.5]"] == ""


def test_a_reference_that_has_no_results_is_refused(tiny_study):
    with pytest.raises(ValueError, match="the study has no results of rankboost; choose one of fsmrank"):
        Report(tiny_study, reference="rankboost")


def runs_of(report, solver):
    return {(result.fold, result.seed): result for result in report.results if result.solver == solver}


def test_fronts_are_measured_by_the_area_under_their_steps(report):
    table = titled(report)["Results: tiny"].tables[1]
    assert [row[0].text for row in table.rows] == report.results.solvers
    for row in table.rows:
        folds = {1: [], 2: []}
        for (fold, _), result in runs_of(report, row[0].text).items():
            points = [(len(m.features), m.scores["train"]["NDCG@10"]) for m in result.front]
            best = [max((value for size, value in points if size <= k), default=0.0) for k in range(1, 20)]
            folds[fold].append(sum(best) / 20)
        means = [np.mean(values) for values in folds.values()]
        assert row[1].text == f"{np.mean(means):.4f} ± {abs(means[0] - means[1]) / 2:.4f}"


def test_features_are_counted_over_the_runs(report):
    (table,) = titled(report)["Features chosen"].tables
    assert "ranksvm-primal" not in [row[0].text for row in table.rows]  # it selects nothing
    for row in table.rows:
        runs = list(runs_of(report, row[0].text).values())
        chosen = [{result.feature_names[i] for i in result.best.features} for result in runs]
        sizes = [
            np.mean([len(r.best.features) for c, r in runs_of(report, row[0].text).items() if c[0] == f])
            for f in (1, 2)
        ]
        assert row[1].text == f"{np.mean(sizes):.1f} ± {abs(sizes[0] - sizes[1]) / 2:.1f}"
        pairs = [(a, b) for i, a in enumerate(chosen) for b in chosen[:i]]
        assert row[2].value == pytest.approx(np.mean([len(a & b) / len(a | b) for a, b in pairs]))
        listed = re.findall(r"([^,()]+) \((\d+)%\)", row[4].text)
        shares = [sum(name.strip() in names for names in chosen) / len(chosen) for name, _ in listed]
        assert [f"{share:.0%}" for share in shares] == [f"{percent}%" for _, percent in listed]
        assert shares == sorted(shares, reverse=True)
        assert len(listed) == min(8, len(set.union(*chosen)))


def test_a_further_objective_has_a_column_and_a_figure(priced_report, report):
    section = titled(priced_report)["Results: tiny"]
    table, fronts, _ = section.tables
    assert table.columns[:6] == ["solver", "features", "NDCG@10", "MAP", "cost", "runs"]
    for row in table.rows:
        runs = runs_of(priced_report, row[0].text)
        means = [np.mean([cost(r.best.features) for (f, _), r in runs.items() if f == fold]) for fold in (1, 2)]
        assert row[4].text == f"{np.mean(means):.4f} ± {abs(means[0] - means[1]) / 2:.4f}"
    assert "cost: on the training data." in table.note
    assert "from the least to the largest cost of all members on the fold" in fronts.note
    names = [f"{name}-tiny" for name in ("accuracy", "fronts", "hypervolume", "cost", "objectives", "instances")]
    assert list(section.figures) == names  # no attainment surfaces of three objectives
    plain = titled(report)["Results: tiny"]
    assert "cost" not in plain.tables[0].columns
    assert list(plain.figures) == [
        f"{name}-tiny" for name in ("accuracy", "fronts", "attainment", "hypervolume", "cost", "instances")
    ]


def test_ablations_are_compared_in_every_objective(priced_report):
    (table,) = titled(priced_report)["Ablations"].tables
    assert table.columns[-2:] == ["cost", "p"]
    full, without = (runs_of(priced_report, name) for name in ("mofsrank", "mofsrank-no-ensemble"))
    gaps = [
        np.mean([cost(without[key].best.features) - cost(full[key].best.features) for key in full if key[0] == fold])
        for fold in (1, 2)
    ]
    assert table.rows[0][-2].value == pytest.approx(np.mean(gaps))
