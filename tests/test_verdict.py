import numpy as np
import pytest
from scipy import stats

from moerank.statistics import equivalence_p, smallest_within_error
from moerank.verdict import judge


@pytest.fixture
def values():
    rng = np.random.default_rng(0)
    reference = rng.random(40)
    return reference + rng.normal(0.002, 0.01, 40), reference


@pytest.mark.parametrize("margin", [0.001, 0.005, 0.02])
def test_equivalence_equals_two_one_sided_t_tests(values, margin):
    d = np.subtract(*values)
    above = stats.ttest_1samp(d, -margin, alternative="greater").pvalue
    below = stats.ttest_1samp(d, margin, alternative="less").pvalue
    assert equivalence_p(*values, margin) == pytest.approx(max(above, below), rel=1e-9)


def test_equivalence_at_its_ends():
    assert equivalence_p([0.5], [0.5], 0.01) == 1.0
    assert equivalence_p([0.75, 0.5], [0.5, 0.25], 0.2) == 1.0
    assert equivalence_p([0.75, 0.5], [0.5, 0.25], 0.3) == 0.0


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
        found = smallest_within_error(table, sizes)
        assert found in near
        assert sizes[found] == min(sizes[near])


def verdict(difference, spread, n=40, **given):
    d = np.tile([difference - spread, difference + spread], n // 2) if n > 1 else np.array([difference])
    return judge(0.5 + d, np.full(n, 0.5), given.pop("part", "test"), "NDCG@10", 6, 45, **given)


@pytest.mark.parametrize(
    ("difference", "spread", "words"),
    [
        (-0.05, 0.01, "NDCG@10 −.050 ± .002 on 40 test queries: a loss is detected, not shown equivalent within .005"),
        (0.05, 0.01, "NDCG@10 +.050 ± .002 on 40 test queries: a gain is detected, not shown equivalent within .005"),
        (-0.001, 0.01, "NDCG@10 −.001 ± .002 on 40 test queries: no detectable loss, equivalent within .005"),
        (-0.002, 0.05, "−.002 ± .008 on 40 test queries: no detectable loss, not shown equivalent within .005"),
        (0.0, 0.0, "NDCG@10 +.000 ± .000 on 40 test queries: no detectable difference, equivalent within .005"),
        (-0.002, 0.001, "NDCG@10 −.002 ± .000 on 40 test queries: a loss is detected, equivalent within .005"),
    ],
)
def test_the_sentence_says_what_the_tests_show(difference, spread, words):
    sentence = verdict(difference, spread).sentence
    assert sentence.startswith("6 of 45 features; ")
    assert sentence.endswith(words)


def test_caution_margin_and_advice_are_said():
    assert verdict(-0.01, 0.05, n=22).sentence.endswith("(too few queries to tell)")
    assert "(optimistic: these queries chose it)" in verdict(-0.01, 0.05, part="validation").sentence
    assert "chose it, and they are too few)" in verdict(-0.01, 0.05, n=22, part="validation").sentence
    assert "equivalent within .020. Keep all." in verdict(0.0, 0.01, margin=0.02, advice="Keep all").sentence + "."
    single = verdict(-0.01, 0.0, n=1)
    assert single.error is None
    assert "NDCG@10 −.010 on 1 test queries: no detectable loss, not shown" in single.sentence


def test_the_ranker_on_all_features_is_named():
    said = verdict(-0.001, 0.01, against="RankSVM(C=0.5)").sentence
    assert "NDCG@10 −.001 ± .002 against RankSVM(C=0.5) with all of them, on 40 test queries: no det" in said
    assert verdict(-0.001, 0.01, against="RankSVM(C=0.5)").model_dump()["against"] == "RankSVM(C=0.5)"


def test_the_sentence_and_the_finding_are_stored():
    found = verdict(-0.002, 0.05)
    assert found.model_dump()["sentence"] == found.sentence
    assert found.model_dump()["difference"] == pytest.approx(-0.002)
