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
    Tail,
    e_value,
    level_of_each,
    mean_interval,
    p_above,
    p_differs,
    p_not_within,
    queries_needed,
    shown_above,
    smallest_within_error,
    weigh,
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


def test_the_spread_of_weighted_queries_is_that_of_a_ratio():
    """Σ w d / Σ w has the standard error √(Σ w² (d − d̄)² / (n − 1)) / (√n w̄), also where all queries lose alike."""
    rng = np.random.default_rng(4)
    w, d = rng.lognormal(0, 0.7, 200), -0.3 + rng.normal(0, 0.02, 200)
    found = compare(w * d, w)
    mean = np.average(d, weights=w)
    error = np.sqrt(np.sum(w**2 * (d - mean) ** 2) / 199) / np.sqrt(200) / w.mean()
    assert (found.difference, found.error) == (pytest.approx(mean, rel=1e-12), pytest.approx(error, rel=1e-12))
    assert found.n_effective == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-12)
    assert (found.finding, found.interval[0] < mean < found.interval[1] < 0) == ("loss", True)
    large = np.where(np.arange(200) == w.argmax(), 1.0, d)  # counts more than a loss of 1 of most queries
    mean = np.average(large, weights=w)
    assert compare(w * large, w).n_effective == pytest.approx(200 / (mean + w.max() / w.mean() * (1 - mean)))
    thrice = compare(3 * w * d, 3 * w)
    assert thrice.interval == pytest.approx(found.interval, rel=1e-12)
    again = rng.choice(200, (4000, 200))
    assert ((w * d)[again].sum(axis=1) / w[again].sum(axis=1)).std() == pytest.approx(error, rel=0.06)


def test_equal_weights_change_nothing():
    d = SKEWED[:149] / 3
    plain = compare(d)
    for weights in (np.ones(149), np.full(149, 0.1)):
        found = compare(d * weights, weights)
        assert (found.words, found.p) == (plain.words, pytest.approx(plain.p, rel=1e-9))
        assert found.interval == pytest.approx(plain.interval, rel=1e-9)
    values, scale = weigh(d[:20] * 0.1, np.full(20, 0.1))
    assert scale == pytest.approx(1.0) and values == pytest.approx(d[:20])


@pytest.mark.parametrize(
    ("weights", "heaviest", "finds"),
    [
        (np.where(np.arange(400) < 3, 60.0, 1.0), 60.0, False),  # they count as 29.7
        (np.where(np.arange(400) < 40, 9.0, 1.0), 9.0, True),
        (np.where(np.arange(400) < 40, 9.0, 1.0), 18.1, False),
        (None, 2.0, True),
        (None, 2.1, False),
    ],
)
def test_few_queries_that_carry_the_traffic_find_nothing(weights, heaviest, finds):
    d = np.random.default_rng(0).normal(-0.2, 0.05, 400)
    w = np.ones(400) if weights is None else weights
    found = compare(d * w, weights, tail=Tail(heaviest=heaviest))
    assert found.difference == pytest.approx(np.average(d, weights=w), rel=1e-12)
    assert found.finding == ("loss" if finds else "none")
    values, scale = weigh(-d * w, weights, heaviest)
    assert (shown_above(values, 0.1 / scale), np.isfinite(found.interval[0])) == (finds, finds)
    if not finds:
        assert found.words == "no finding, because few queries carry the traffic"
        assert (found.equivalent, found.n_effective) == (False, 1.0)
        stated = judge(d * w / w.mean(), 0 * d, "test", "MAP", 6, 45, weights=weights, tail=found.tail)
        assert "(95 %" not in stated.sentence and stated.sentence.endswith(found.words)
        assert stated.title.endswith("below all 45; no finding, because few queries carry the traffic")


@pytest.mark.parametrize(("exponent", "loss", "head"), [(0.8, 0.1, 50), (1.0, 0.1, 50), (1.2, 0.3, 20)])
def test_frequent_queries_that_no_part_has_are_not_found_to_gain(exponent, loss, head):
    """The most frequent of 20,000 queries lose, the truth is −.02; a t test finds a gain in 2 to 8 samples of 10."""
    rng, weights = np.random.default_rng(5), np.arange(1, 20_001) ** -exponent
    share = weights[:head].sum() / weights.sum()
    gain, found = (share * loss - 0.02) / (1 - share), []
    for _ in range(200):
        queries = rng.choice(20_000, 1000, replace=False)
        d = np.where(queries < head, -loss, gain) + rng.normal(0, 0.01, 1000)
        w, others = weights[queries[:200]], weights[queries[200:]]
        w, tail = w / w.mean(), Tail().joined(d[200:], others / others.mean())
        result = compare(w * d[:200], w, tail=tail)
        values, scale = weigh(w * d[:200], w, tail.heaviest)
        found.append((result.finding == "gain", not result.interval[0] <= -0.02 <= result.interval[1]))
        found[-1] += (shown_above(values, -0.02 / scale),)
    assert np.sum(found, axis=0).max() <= 18  # a rate of .05 has more once in 100


def test_a_loss_of_three_margins_is_likely_on_160_queries():
    """As measured on a shop; the t test finds it in four samples of five, the tests for losses of 1 in one of ten."""
    rng, found = np.random.default_rng(3), []
    for shift in (-0.0159, 0.0):
        draws = np.clip(rng.normal(shift, 0.067, (200, 160)), -1, 1)
        known = Tail(n=640, size=0.3)
        grades = [[compare(d, tail=tail).grades[0] for d in draws] for tail in (Tail(), known)]
        found.append([np.mean([grade == "detected" for grade in grades[0]])])
        found[-1] += [np.mean([grade != "none" for grade in of_tail]) for of_tail in grades]
    (detected, alone, with_parts), false = found
    assert detected < 0.2 and alone > 0.5 and with_parts > 0.75
    assert max(false) <= 0.09


@pytest.mark.parametrize(("share", "n"), [(0.006, 300), (0.01, 160), (0.02, 60), (0.02, 106), (0.05, 60)])
@pytest.mark.parametrize("loss", [0.5, 1.0])
def test_losses_that_few_queries_have_are_rarely_called_likely_gains(share, n, loss):
    """300 draws; training differences are half as large, and doubled as the verdict does."""
    rng, true, words = np.random.default_rng(6), -share * loss, 0

    def draw(size):
        return np.where(rng.random(size) < share, -loss, rng.normal(0, 0.003, size)) - true

    for _ in range(300):
        trained = 0.5 * draw(3 * n)
        words += compare(draw(n), tail=Tail().joined(2 * trained).joined(draw(n))).finding != "none"
    assert words <= 30  # a rate of .06 has more once in 300


@pytest.mark.parametrize(
    ("d", "tail", "finding", "words"),
    [
        (np.tile([-0.05, 0.03], 80), Tail(640, 0.3), "likely loss", "a loss is likely"),
        (-np.tile([-0.05, 0.03], 80), Tail(640, 0.3), "likely gain", "a gain is likely"),
        (np.tile([-0.05, 0.03], 80), Tail(640, 1.0), "none", "too few to tell; between 310 and 810 test queries could"),
        (
            np.tile([-0.015, 0.011], 150),
            Tail(1200, 0.1),
            "likely loss",
            "a loss is likely, and it likely lies within .005",
        ),
        (np.tile([-0.015, 0.016], 150), Tail(1200, 0.1), "none", "likely equivalent within .005"),
        (np.tile([-0.015, 0.016], 150), Tail(), "none", "too few to tell; between 710 and 1,100 test queries could"),
        (np.tile([-1.0, 1.0], 15), Tail(), "none", "too few to tell; between 110 and 470,000 test queries could"),
        (np.tile([-0.01, 0.03], 1000), Tail(), "gain", "a gain is detected"),
    ],
)
def test_what_other_parts_show_decides_what_is_likely(d, tail, finding, words):
    found = compare(d, tail=tail)
    assert (found.finding, found.words) == (finding, words)


def test_a_number_of_queries_counts_the_uninformative_ones():
    d = np.tile([-0.06, 0.02], 20)
    informative, all_queries = (compare(d, n_queries=n).words for n in (40, 120))
    assert informative == "too few to tell; between 150 and 390 test queries could"
    assert all_queries == "too few to tell; between 450 and 1,200 test queries could"


def test_a_stored_verdict_keeps_its_weights_and_the_tail():
    rng = np.random.default_rng(0)
    w, values = rng.lognormal(0, 0.5, 200), rng.random((200, 2))
    tail = Tail(n=600, size=0.5, heaviest=3.0)
    result = judge(*(values.T * w / w.mean()), "test", "MAP", 6, 45, weights=w, tail=tail)
    assert Verdict.model_validate_json(result.model_dump_json()) == result
    assert result.interval[0] < np.average(values[:, 0] - values[:, 1], weights=w) < result.interval[1]


def test_nothing_is_likely_where_queries_have_weights():
    d, w, tail = np.tile([-0.05, 0.03], 80), np.where(np.arange(160) % 4 < 2, 1.0, 1.5), Tail(640, 0.1, 1.5)
    assert compare(d, tail=tail).finding == "likely loss"
    assert compare(w * d, w, tail=tail).finding == compare(d, np.ones(160), tail=tail).finding == "none"
    assert compare(4 * w * d, w, tail=tail).finding == "loss"
