"""One statistic for one question: the numbers and the words of comparisons, by plainer means and by simulation."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from helpers.changes import replace
from helpers.further_objective import with_cost
from scipy import stats

import moerank as mr
from moerank.cli.tables import study_table
from moerank.statistics import Tail, holm, paired_differences, weigh
from moerank.studies.comparison import CONSTRUCTED, UNDECIDED, adjust_together, compare_folds, compare_solvers
from moerank.studies.results import Results, front_quality, verdicts
from moerank.verdict import compare

METRIC = "NDCG@10"


def values(results, solver, folds=(1, 2), metric=METRIC):
    """The test metric of every query, averaged over the seeds by hand."""
    means = []
    for fold in folds:
        runs = [r.best.per_query["test"][metric] for r in results if (r.solver, r.fold) == (solver, fold)]
        means.append(np.mean(runs, axis=0))
    return np.concatenate(means)


def test_solvers_are_compared_query_by_query_by_the_rule_of_the_verdict(results):
    for metric in (METRIC, "MAP"):
        table = compare_solvers(results, f"test {metric}", "fsmrank").frame
        assert table["solver"].tolist() == [solver for solver in results.solvers if solver != "fsmrank"]
        for row in table.itertuples():
            d = paired_differences(
                values(results, row.solver, metric=metric), values(results, "fsmrank", metric=metric)
            )
            expected = compare(d)
            assert (row.n, row.difference, row.error) == pytest.approx((len(d), d.mean(), stats.sem(d)))
            assert row.p == pytest.approx(expected.p)
            assert (row.wins, row.ties, row.losses) == ((d > 0).sum(), (d == 0).sum(), (d < 0).sum())
            assert row.p <= row.adjusted <= 1


def test_every_pair_is_compared_as_with_a_reference(results):
    table = compare_solvers(results, "test MAP").frame
    assert list(zip(table["solver"], table["other"], strict=True)) == list(combinations(results.solvers, 2))
    for reference in results.solvers:
        expected = compare_solvers(results, "test MAP", reference).frame.set_index("solver")
        for row in table[table["other"] == reference].itertuples():
            for name in ("n", "difference", "error", "wins", "ties", "losses", "p"):
                assert getattr(row, name) == expected.loc[row.solver, name]


def test_pairs_are_compared_on_the_folds_that_both_have(results):
    one = {"mofsrank": 1, "fsmrank": 2}
    part = Results(r for r in results if r.fold == one.get(r.solver, r.fold))
    table = compare_solvers(part, "test MAP").frame.set_index(["solver", "other"])
    assert ("fsmrank", "mofsrank") not in table.index
    assert table.loc[("mofsrank", "greedy-rankrls"), "n"] == len(values(results, "mofsrank", [1]))
    alone = compare_solvers(Results([results[0]]), "test MAP")
    assert (alone.sentence, len(alone.frame)) == ("", 0)


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    """Two draws of the training part with the same test queries, and two folds that number queries of their own."""
    train, vali, test = mr.load_planted_fold(1, n_queries=200, n_documents=8)
    other = train.with_rows(np.flatnonzero(train.qid > train.qid[len(train.qid) // 2]))
    alone = mr.RankingData(test.X[::-1], test.y[::-1], test.qid, feature_names=test.feature_names)
    problems = {"same": [(train, vali, test), (other, vali, test)], "own": [(train, vali, test), (other, vali, alone)]}
    solvers = {"three": mr.GreedyRankRLS(3), "five": mr.GreedyRankRLS(5)}
    return mr.Study(problems, solvers, tmp_path_factory.mktemp("repeated")).run().results()


def test_a_query_of_several_folds_counts_once(repeated):
    same, own = (Results(repeated).of(problem) for problem in ("same", "own"))
    three, five = (np.reshape(values(same, name), (2, -1)).mean(axis=0) for name in ("three", "five"))
    row = compare_solvers(same, f"test {METRIC}").frame.iloc[0]
    assert (row["n"], row["p"]) == (40, pytest.approx(compare(three - five).p, rel=1e-12))
    assert own[0].queries["test"] == [f"{query} of fold 1" for query in same[0].queries["test"]]
    assert compare_solvers(own, f"test {METRIC}").frame["n"].tolist() == [80]
    for results, n in ((same, 40), (own, 80)):
        verdict = verdicts(results).set_index("solver").loc["three", "verdict"]
        differences = [run.verdict.differences for run in results if run.solver == "three"]
        expected = np.mean(differences, axis=0) if n == 40 else np.concatenate(differences)
        assert (verdict.n_queries, verdict.n_differing) == (n, len(expected))
        assert verdict.differences == pytest.approx(expected, rel=1e-12)


def made(run, solver, test, fold=1, seed=0, train=0.5):
    """Return a run of a solver with these values of test queries and this training mean."""
    ids = {part: [f"{part} {fold} {i}" for i in range(len(test))] for part in ("train", "validation", "test")}
    scores = {"train": {METRIC: train}, "validation": {METRIC: 0.5}, "test": {METRIC: float(np.mean(test))}}
    best = replace(run.best, scores=scores, per_query={"test": {METRIC: list(test)}})
    changes = {"front": [best], "chosen": 0, "queries": ids, "differing": list(range(len(test))), "verdict": None}
    return replace(run, solver=solver, fold=fold, seed=seed, metrics=[METRIC], **changes)


def losing_few(rng, n):
    """Half per cent of the queries lose 1, and the others gain .005 in the mean, which makes 0."""
    return np.where(rng.random(n) < 0.005, -1.0, 0.005 + 0.003 * rng.standard_normal(n))


def test_equal_solvers_get_no_word_where_few_queries_lose_much(tiny_result):
    """A t test with Holm's method finds one of nine such solvers in each study; see tests/benchmarks/comparison.py."""
    rng, words = np.random.default_rng(0), []
    for _ in range(10):
        runs = [made(tiny_result, "rankrls", np.full(106, 0.5))]
        runs += [made(tiny_result, f"equal {i}", 0.5 + losing_few(rng, 106)) for i in range(9)]
        table, finding = study_table(Results(runs))
        assert finding == f"Test {METRIC} against rankrls, query by query (106). Too few to tell: 9 solvers."
        assert list(table.columns[4].cells).count("") == 1
        p = [stats.ttest_1samp(np.subtract(run.best.per_query["test"][METRIC], 0.5), 0).pvalue for run in runs[1:]]
        words.append((holm(p) <= 0.05).any())
    assert all(words)


def test_a_difference_is_found_in_words_with_its_side_and_margin(tiny_result):
    rng = np.random.default_rng(1)
    base, n = np.full(4000, 0.5), 4000
    means = {"better": (0.02, 0.05), "tiny": (0.0025, 0.02), "equal": (0.0, 0.02), "wild": (0.0, 0.2)}
    runs = [made(tiny_result, "rankrls", base)]
    runs += [made(tiny_result, name, base + rng.normal(mean, sd, n)) for name, (mean, sd) in means.items()]
    comparison = compare_solvers(Results(runs), f"test {METRIC}", "rankrls")
    found = dict(zip(comparison.frame["solver"], comparison.frame["finding"], strict=True))
    assert found == {
        "better": "a gain is detected",
        "tiny": "a gain is detected, within .005",
        "equal": "equivalent within .005",
        "wild": UNDECIDED,
    }
    assert comparison.detected["solver"].tolist() == ["better", "tiny"]
    assert comparison.renamed({"better": "A", "rankrls": "B"}).sentence == (
        f"Test {METRIC} against B, query by query (4,000). A gain is detected: A. A gain is detected, within .005: "
        "tiny. Equivalent within .005: equal. Too few to tell: wild."
    )


def test_weights_of_queries_count_as_in_the_verdict(tiny_result):
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, 401) ** 1.2  # nine queries count
    weights /= weights.mean()
    d = rng.normal(0.05, 0.05, 400)
    runs = [made(tiny_result, "rankrls", 0.5 * weights), made(tiny_result, "heavy", (0.5 + d) * weights)]
    few, tail = {"test": weights.tolist()}, {"test": np.ones(400).tolist(), "train": [9.0] + [0.9] * 99}
    weighted = Results(replace(run, query_weights=few) for run in runs)
    row = compare_solvers(weighted, f"test {METRIC}", "rankrls").frame.iloc[0]
    expected = compare(d * weights, weights)
    assert (row.difference, row.error, row.p) == pytest.approx((expected.difference, expected.error, expected.p))
    assert (row.finding, compare(d).finding) == (UNDECIDED, "gain")
    runs = [made(tiny_result, "rankrls", np.full(400, 0.5)), made(tiny_result, "light", 0.5 + d)]
    outweighed = Results(replace(run, query_weights=tail) for run in runs)
    assert compare_solvers(outweighed, f"test {METRIC}", "rankrls").frame["finding"].tolist() == [UNDECIDED]
    assert expected.n_effective < 30 < len(weigh(d)[0]) and Tail().joined([], tail["train"]).heaviest == 9


def runs_of_folds(run, steps, n_folds, n_seeds, rng):
    """Runs of two searches whose training means differ by a step on each fold, and by noise of the seeds."""
    for fold in range(1, n_folds + 1):
        for seed in range(n_seeds):
            noise = 0.01 * rng.standard_normal(2)
            yield made(run, "base", [0.5], fold, seed, 0.5 + noise[0])
            yield made(run, "other", [0.5], fold, seed, 0.5 + steps[fold - 1] + noise[1])


def test_numbers_of_training_are_compared_fold_by_fold_at_any_number_of_seeds(tiny_result):
    """Signed ranks over folds and seeds find a difference that the folds do not have in half of the draws."""
    rng, by_runs, by_folds = np.random.default_rng(0), [], []
    for _ in range(60):
        steps = 0.02 * rng.standard_normal(5)
        results = Results(runs_of_folds(tiny_result, steps, 5, 11, rng))
        row = compare_solvers(results, f"train {METRIC}", "base").frame.iloc[0]
        frame = results.frame.pivot(index=["fold", "seed"], columns="solver", values=f"train {METRIC}")
        d = (frame["other"] - frame["base"]).groupby("fold").mean()
        assert (row.n, row.p) == (5, pytest.approx(stats.ttest_1samp(d, 0).pvalue, rel=1e-9))
        by_folds.append(row.finding != UNDECIDED)
        by_runs.append(stats.wilcoxon(frame["other"] - frame["base"]).pvalue <= 0.05)
    assert sum(by_runs) > 20
    assert sum(by_folds) <= 8  # a rate of .05 exceeds this once in 200


def test_the_sentence_of_numbers_of_training_names_quantity_and_unit(tiny_result):
    rng = np.random.default_rng(0)
    results = Results(runs_of_folds(tiny_result, np.full(4, -0.2), 4, 2, rng))
    assert compare_solvers(results, f"train {METRIC}", "base").sentence == (
        f"Train {METRIC} against base, fold by fold (4). A decrease is detected: other."
    )
    same = compare_solvers(results, "n_features", "base")
    assert same.sentence == "Number of features against base, fold by fold (4). Too few to tell: other."
    alone = Results(run for run in results if run.fold == 1)
    row = compare_solvers(alone, f"train {METRIC}", "base").frame.iloc[0]
    assert np.isnan([row.p, row.adjusted, row.error]).all() and row.finding == UNDECIDED


def test_what_is_true_by_construction_is_not_tested(results):
    """The ensemble goes on from the second stage with the same draws, and keeps its members."""
    pair = results.among(["mofsrank", "mofsrank[ensemble=false]"])
    comparison = compare_solvers(pair, "hypervolume", "mofsrank")
    (row,) = comparison.frame.itertuples()
    quality = front_quality(pair).groupby(["solver", "fold"])["hypervolume"].mean()
    d = quality["mofsrank[ensemble=false]"] - quality["mofsrank"]
    assert (row.difference, row.finding) == (pytest.approx(d.mean()), CONSTRUCTED) and np.isnan(row.adjusted)
    assert comparison.sentence.endswith("True by construction, not tested: mofsrank[ensemble=false].")
    assert compare_solvers(pair, "hypervolume", pair.solvers[1]).frame["finding"].tolist() == [CONSTRUCTED]
    assert compare_solvers(pair, "n_features", "mofsrank").frame["p"].notna().all()
    dropped = {"ensemble": {"keep_members": False}}
    may_lose = Results(replace(run, configuration=run.configuration | dropped) for run in pair)
    tested = compare_solvers(may_lose, "hypervolume", "mofsrank").frame
    assert tested["p"].notna().all() and CONSTRUCTED not in tested["finding"].tolist()
    others = compare_solvers(results, "hypervolume", "mofsrank").frame.set_index("solver")["finding"]
    assert others.index[others == CONSTRUCTED].tolist() == ["mofsrank[ensemble=false]"]


def test_fronts_of_other_goals_are_not_compared(results):
    priced = Results(
        [*results, *(replace(with_cost(run), solver="own") for run in results if run.solver == "mofsrank")]
    )
    assert "own" not in compare_solvers(priced, "hypervolume", "mofsrank").frame["solver"].tolist()
    assert "own" in compare_solvers(priced, "n_features", "mofsrank").frame["solver"].tolist()


def parts_of(n_folds):
    """The share of training queries that two folds have in common, if each takes all parts but two, as LETOR's do."""
    has = np.array([[(part - fold) % n_folds < n_folds - 2 for part in range(n_folds)] for fold in range(n_folds)])
    return has / np.sqrt(has.sum(axis=1, keepdims=True))


def test_common_training_queries_are_allowed_for():
    d = np.array([0.1, 0.3, 0.2, 0.5, 0.4])
    assert compare_folds(d) == pytest.approx((stats.sem(d), stats.ttest_1samp(d, 0).pvalue))
    half = 0.5 * (np.eye(5) + 1)  # Nadeau and Bengio: 1 / k + ρ / (1 − ρ)
    error = d.std(ddof=1) * np.sqrt(1 / 5 + 1)
    assert compare_folds(d, half) == pytest.approx((error, 2 * stats.t.sf(d.mean() / error, 4)))
    assert np.isnan([*compare_folds([0.1]), *compare_folds(d, np.ones((5, 5)))]).all()
    assert compare_folds([0.3] * 4) == (0.0, 1.0)
    rng, weights = np.random.default_rng(0), parts_of(5)
    draws = rng.standard_normal((2000, 5)) @ weights.T  # sums over parts of queries: the largest correlation
    corrected = np.mean([compare_folds(row, weights @ weights.T)[1] <= 0.05 for row in draws])
    assert corrected <= 0.06 < 0.2 < np.mean(stats.ttest_1samp(draws, 0, axis=1).pvalue <= 0.05)


def test_folds_that_share_training_queries_are_less_sure(tiny_result):
    rng = np.random.default_rng(0)
    apart = [*runs_of_folds(tiny_result, [-0.1, -0.12, -0.11, -0.13, -0.1], 5, 2, rng)]
    shared = []
    for run in apart:
        ids = [f"part {(run.fold + i) % 5} query {j}" for i in range(3) for j in range(10)]
        shared.append(replace(run, queries={**run.queries, "train": ids}))
    one, two = (compare_solvers(Results(runs), f"train {METRIC}", "base").frame.iloc[0] for runs in (apart, shared))
    assert one.difference == two.difference and two.error == pytest.approx(6**0.5 * one.error)
    assert one.p < 1e-3 < two.p


def test_one_test_of_all_pairs_finds_what_holm_cannot():
    """62 solvers of six kinds have 1,891 pairs, but almost all of them say the same."""
    rng, found = np.random.default_rng(0), []
    first, second = np.transpose(list(combinations(range(62), 2)))
    for _ in range(5):
        kinds = np.repeat(rng.normal(0, 0.03, (300, 6)), 11, axis=1)[:, :62]
        ranks = kinds + rng.normal(0, 0.005, (300, 62))
        ranks[:, :11] += 0.008
        d = ranks[:, first] - ranks[:, second]
        p = stats.ttest_1samp(d, 0).pvalue
        adjusted, level = adjust_together(d, p)
        assert ((adjusted <= 0.05) == (p < level)).all()
        assert (adjusted >= p).all() and 4 * 0.05 / 1891 <= level <= 0.05
        found.append(((adjusted <= 0.05).sum(), (holm(p) <= 0.05).sum()))
    by_flips, by_holm = np.sum(found, axis=0)
    assert by_flips > 1.3 * by_holm


def test_a_family_of_one_is_not_adjusted_and_draws_are_the_same_in_each_call():
    d = np.random.default_rng(0).normal(0.01, 0.1, (100, 3))
    assert adjust_together(d[:, :1], [0.03]) == (pytest.approx([0.03]), 0.05)
    one, two = adjust_together(d, [0.01, 0.2, 1.0]), adjust_together(d, [0.01, 0.2, 1.0])
    assert one[0].tolist() == two[0].tolist() and one[1] == two[1]
    assert adjust_together(np.zeros((40, 2)), [1.0, 1.0])[0].tolist() == [1.0, 1.0]
    assert adjust_together(np.empty((0, 0)), [])[1] == 0.05


def test_all_pairs_have_one_sentence(tiny_result):
    rng = np.random.default_rng(0)
    runs = [made(tiny_result, f"same {i}", 0.5 + rng.normal(0, 0.05, 200)) for i in range(5)]
    count = f"Test {METRIC}, query by query (200): a difference is detected in"
    sentence = compare_solvers(Results(runs), f"test {METRIC}").sentence
    assert sentence.startswith(f"{count} 0 of 10 pairs of solvers (one test of all pairs, p = ")
    runs.append(made(tiny_result, "worse", 0.3 + rng.normal(0, 0.05, 200)))
    pairs = compare_solvers(Results(runs), f"test {METRIC}")
    assert pairs.sentence == f"{count} 5 of 15 pairs of solvers (one test of all pairs, p < .001)."
    assert set(pairs.detected["other"]) == {"worse"}
    assert pd.api.types.is_integer_dtype(pairs.frame["n"])
