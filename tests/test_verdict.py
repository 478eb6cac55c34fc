import json
import re
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from moerank.data import RankingData
from moerank.metrics import MAP, NDCG, Precision, check_differing
from moerank.mofsrank import MOFSRank
from moerank.statistics import (
    e_value,
    level_of_each,
    mean_interval,
    p_above,
    p_differs,
    p_not_within,
    queries_needed,
    shown_above,
    smallest_within_error,
)
from moerank.verdict import Verdict, compare, judge

SKEWED = np.clip(0.3 - np.random.default_rng(0).exponential(0.3, 400), -1, 1)


def test_the_p_values_are_those_of_the_t_test_where_nothing_is_skewed():
    half = np.random.default_rng(0).normal(0.0, 0.2, 100)
    d = np.concatenate([half, -half]) + 0.02
    assert p_differs(d) == pytest.approx(stats.ttest_1samp(d, 0).pvalue, rel=1e-9)
    above = stats.ttest_1samp(d, -0.05, alternative="greater").pvalue
    below = stats.ttest_1samp(d, 0.05, alternative="less").pvalue
    assert p_not_within(d, 0.05) == pytest.approx(max(above, below), rel=1e-9)
    assert mean_interval(d) == pytest.approx(tuple(stats.ttest_1samp(d, 0).confidence_interval()), rel=1e-9)


@pytest.mark.parametrize("d", [SKEWED, -SKEWED])
def test_skewness_is_removed_by_halls_transformation(d):
    n, g = len(d), stats.skew(d) * ((len(d) - 1) / len(d)) ** 1.5
    value = d.mean() - 0.03
    t = stats.ttest_1samp(d, value).statistic / np.sqrt(n)
    hall = np.sqrt(n) * (t + g * t**2 / 3 + g**2 * t**3 / 27 + g / (6 * n))
    expected = stats.t.sf(min(hall, np.sqrt(n) * t), n - 1)
    assert p_above(d, value) == pytest.approx(expected, rel=1e-9)


def test_a_skewness_of_rounding_errors_does_not_move_the_interval():
    d = np.tile([-0.4, 0.3], 200)
    for jitter in (0.0, 1e-18, 1e-17, 1e-15):
        low, high = mean_interval(d + jitter * np.arange(400) ** 2)
        assert (low, high) == pytest.approx(tuple(stats.ttest_1samp(d, 0).confidence_interval()), abs=1e-9)


@pytest.mark.parametrize("n", [40, 149, 150, 400])
@pytest.mark.parametrize("scale", [-1, 1, 0.01])
def test_the_interval_ends_where_the_tests_do(n, scale):
    d = scale * SKEWED[:n]
    low, high = mean_interval(d, 0.9)
    assert p_above(d, low) == pytest.approx(0.05, rel=1e-9)
    assert p_above(-d, -high) == pytest.approx(0.05, rel=1e-9)


def test_a_gain_is_larger_than_losses_of_1_that_the_queries_may_have_missed():
    d = np.random.default_rng(1).normal(0.01, 0.001, 368)
    frequency = d.mean() / (1 + d.mean())
    assert p_above(d) == pytest.approx((1 - frequency) ** 368, rel=1e-9)
    assert p_above(d[:290]) > 0.05 > p_above(d[:310])


@pytest.mark.parametrize(
    ("share", "n"), [(0.002, 784), (0.006, 150), (0.006, 300), (0.01, 200), (0.02, 60), (0.05, 149)]
)
@pytest.mark.parametrize("loss", [0.5, 1.0])
def test_losses_that_few_queries_have_break_no_level(share, n, loss):
    """The worst cells of tests/benchmarks/verdict.py; 400 draws, with bounds that a rate of .05 exceeds once in 10⁴."""
    rng, true = np.random.default_rng(2), -share * loss
    draws = [np.where(rng.random(n) < share, -loss, rng.normal(0, 0.003, n)) for _ in range(400)]
    assert sum(p_differs(d - true) < 0.05 for d in draws) <= 38
    ends = np.array([mean_interval(d) for d in draws])
    assert ((ends[:, 0] > true) | (ends[:, 1] < true)).sum() <= 38
    assert sum(shown_above(d, true) for d in draws) <= 38


def test_evidence_of_weighted_queries_does_not_depend_on_the_scale_of_their_differences():
    d = np.append(np.random.default_rng(3).normal(0.1, 0.2, 20), -1.0)
    assert e_value(5 * d, -1.0) == pytest.approx(e_value(d, -0.2), rel=1e-12)


@pytest.mark.filterwarnings("error")
def test_without_queries_that_can_differ_each_test_has_its_level():
    assert level_of_each(np.empty((0, 3))) == 0.05


@pytest.mark.parametrize("d", [[0.1], [0.1] * 500, [0.0] * 500])
def test_without_variance_nothing_is_shown(d):
    assert p_above(d) == p_differs(d) == p_not_within(d, 0.2) == 1.0
    assert mean_interval(d) == (-np.inf, np.inf)


def test_the_smallest_within_one_error_equals_its_statement():
    rng = np.random.default_rng(1)
    for _ in range(50):
        table, sizes = rng.random((7, 5)).round(1), rng.integers(1, 4, 5)
        best = max(range(5), key=lambda j: (round(table[:, j].mean(), 12), -sizes[j]))
        near = []
        for j in range(5):
            d = table[:, best] - table[:, j]
            if d.mean() <= stats.sem(d) + 1e-15:
                near.append(j)
        result = smallest_within_error(table, sizes)
        assert result in near
        assert sizes[result] == min(sizes[near])


def verdict(difference, spread, n=2000, **given):
    d = np.tile([difference - spread, difference + spread], n // 2) if n > 1 else np.array([difference])
    return judge(0.5 + d, np.full(n, 0.5), given.pop("part", "test"), "NDCG@10", 6, 45, **given)


@pytest.mark.parametrize(
    ("difference", "spread", "words"),
    [
        (-0.05, 0.01, "estimated loss .050 NDCG@10 (95 %: .048 to .052) on 2,000 test queries: a loss is detected"),
        (0.05, 0.01, "estimated gain .050 NDCG@10 (95 %: .048 to .052) on 2,000 test queries: a gain is detected"),
        (
            -0.001,
            0.02,
            "estimated loss .001 NDCG@10 (95 %: −.001 to .003) on 2,000 test queries: equivalent within .005",
        ),
        (-0.002, 0.1, "on 2,000 test queries: too few to tell; between 2,900 and 4,000 test queries could"),
        (0.0, 0.0, "on 2,000 test queries: both rank all of them equally well, which says nothing about other queries"),
        (-0.002, 0.01, "on 2,000 test queries: a loss is detected, and it lies within .005"),
    ],
)
def test_the_sentence_says_what_the_tests_show(difference, spread, words):
    result = verdict(difference, spread)
    assert str(result) == result.sentence
    assert result.sentence.startswith("6 of 45 features")
    assert result.sentence.endswith(words)


@pytest.mark.parametrize(
    ("decision", "difference", "advice", "headline", "sentence", "title"),
    [
        ("use", -0.001, "", "Use 6 of 45 features", "{}; estimated loss", "{}, they score .001 below all 45, "),
        ("use", -0.05, "", "6 of 45 features rank worse", "{}; estimated loss", "{}, they score .050 below all"),
        (
            "loss",
            0.05,
            "B.",
            "6 of 45 features rank worse",
            "{}; estimated gain .050 ",
            "{}, they score .050 above all",
        ),
        ("keep", 0.05, "B", "Keep all 45 features", "{}. B. 6 of 45 features; estimated gain", "{}, 6 score .050 ab"),
        ("limits", -0.05, "B", "Raise the limits", "{}. B. 6 of 45 features; estimated loss", "{}, 6 score .050 be"),
        ("none", 0.05, "", "6 of 45 features", "{}; estimated gain .050 ", "{}, they score .050 above all 45, "),
    ],
)
def test_the_decision_comes_first_and_a_detected_loss_takes_it_back(
    decision, difference, advice, headline, sentence, title
):
    result = verdict(difference, 0.02, decision=decision, advice=advice)
    assert result.headline == headline
    assert result.sentence.startswith(sentence.format(headline))
    assert advice in result.sentence
    assert result.title.startswith(title.format(f"{headline}: on 2,000 test queries"))
    assert Verdict.model_validate_json(result.model_dump_json()) == result


def test_whoever_chooses_all_features_keeps_them():
    assert judge([0.5] * 40, [0.5] * 40, "test", "MAP", 45, 45, decision="use").headline == "Keep all 45 features"


def test_a_verdict_that_was_stored_without_a_decision_says_what_it_said():
    advice = "Keep all features: on validation every member of the front ranked worse, this one by 0.025"
    stored = verdict(-0.01, 0.3, advice=advice).model_dump(mode="json")
    del stored["decision"]
    old = Verdict.model_validate_json(json.dumps(stored))
    assert old.headline == "6 of 45 features"
    assert old.sentence.endswith(advice)


@pytest.mark.parametrize(("difference", "p", "finding"), [(0.00425, 0.0575, "none"), (-0.0047, 0.0357, "loss")])
def test_the_level_of_a_finding_is_five_in_a_hundred(difference, p, finding):
    result = verdict(difference, 0.1)
    assert (result.p, result.finding) == (pytest.approx(p, abs=2e-4), finding)


@pytest.mark.parametrize("n", [11, 20, 30, 40, 100])
@pytest.mark.parametrize(("difference", "deviation"), [(-0.019, 0.043), (-0.03, 0.2), (0.009, 0.04), (0.001, 0.02)])
def test_as_many_queries_as_the_verdict_asks_for_find_something(n, difference, deviation):
    rng = np.random.default_rng(n)
    noise = rng.normal(size=n)
    d = difference + deviation * (noise - noise.mean()) / noise.std(ddof=1)
    size = queries_needed(d, 0.005)
    words = compare(d, unit="test queries").words
    least, most = (int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", words))
    assert least < size < most and words.endswith(" test queries could")
    draws = rng.normal(difference, deviation, (200, size)).clip(-1, 1)
    assert np.mean([min(p_differs(d), p_not_within(d, 0.005)) < 0.05 for d in draws]) >= 0.75


def test_few_queries_find_nothing_however_large_the_difference():
    few = verdict(-0.2, 0.01, n=28)
    assert (few.finding, few.equivalent) == ("none", False)
    assert few.sentence.endswith(" on 28 test queries: too few to tell; about 30 test queries could")
    single = verdict(-0.01, 0.0, n=1)
    assert single.error is None
    assert single.sentence.endswith("estimated loss .010 NDCG@10 on 1 test query: too few to tell")
    none = judge([0.0], [0.0], "test", "MAP", 6, 45, can_differ=[False])
    assert ": on 0 informative test queries of 1, they score the same as all 45; " in none.title


def test_optimism_margin_and_advice_are_said():
    assert verdict(-0.01, 0.05, part="validation").sentence.endswith(" (optimistic: these queries chose it)")
    assert verdict(0.0, 0.01, margin=0.02, advice="Keep all").sentence.endswith("equivalent within .020. Keep all")


def test_the_ranker_on_all_features_is_named():
    sentence = verdict(-0.001, 0.01, against="RankSVM(C=0.5)").sentence
    assert "(95 %: −.001 to .003) against RankSVM(C=0.5) with all of them on 2,000 test queries: " in sentence


def test_queries_that_cannot_differ_are_left_out():
    can_differ = np.arange(4000) % 4 == 0
    rng = np.random.default_rng(0)
    reference = np.where(can_differ, 0.5, 0.0)
    selection = np.where(can_differ, 0.49 + rng.normal(0, 0.02, 4000), 0.0)
    diluted = judge(selection, reference, "test", "NDCG@10", 6, 45)
    result = judge(selection, reference, "test", "NDCG@10", 6, 45, can_differ=can_differ)
    assert (result.n_queries, result.n_differing, diluted.n_differing) == (4000, 1000, 4000)
    assert result.difference == pytest.approx(4 * diluted.difference)
    assert (diluted.equivalent, result.equivalent) == (True, False)
    assert "on 1,000 informative test queries of 4,000: " in result.sentence


@pytest.mark.parametrize("metric", [NDCG(3), NDCG(3, short_queries="own_length"), MAP(), Precision(2)])
def test_a_query_can_differ_if_some_order_changes_its_value(metric):
    labels = ([0, 0, 0], [0, 1], [2, 2, 2], [0, 0, 0, 1], [1, 2, 2, 2], [1, 1, 0], [1])
    y = np.concatenate(labels)
    data = RankingData(np.arange(float(len(y)))[:, None], y, np.repeat(np.arange(len(labels)), list(map(len, labels))))
    for query, result in enumerate(metric.can_differ(data)):
        rows = slice(data.offsets[query], data.offsets[query + 1])
        values = set()
        for order in permutations(range(len(labels[query]))):
            scores = np.zeros(data.n_documents)
            scores[rows] = order
            values.add(round(metric.per_query(data, scores)[query], 12))
        assert result == (len(values) > 1)


def test_a_stored_verdict_is_read_and_what_follows_from_the_differences_computed_anew():
    result = verdict(-0.002, 0.05, n=40, against="<M>")
    assert result._repr_html_() == f"<p><strong>Verdict.</strong> {result.sentence.replace('<M>', '&lt;M&gt;')}</p>"
    assert Verdict.model_validate_json(result.model_dump_json()) == result
    stored = json.loads(result.model_dump_json())
    assert stored["sentence"] == result.sentence
    assert Verdict.model_validate_json(json.dumps(stored | {"finding": "loss"})).finding == "none"


def test_data_on_which_no_ranker_can_differ_are_refused_with_the_remedy():
    rng = np.random.default_rng(0)
    data = RankingData(rng.random((60, 3)), rng.integers(0, 2, 60), np.repeat(np.arange(10), 6), name="shop")
    same = r"^shop: NDCG@10 \(letor\) is the same for any order of the documents on all 10 queries"
    sentence = f"{same}, 9 of which can differ by the"
    with pytest.raises(ValueError, match=sentence):
        check_differing(NDCG(10, convention="letor"), data)
    with pytest.raises(ValueError, match=sentence):
        MOFSRank(metric=NDCG(10, convention="letor")).fit(data)
    assert check_differing(NDCG(10), data) == ""
    assert check_differing(NDCG(6, convention="letor"), data) == ""
