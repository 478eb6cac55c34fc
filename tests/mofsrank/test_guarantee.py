"""The guarantee for a choice: its tests against direct calculations, its order by hand, its level by simulation."""

import itertools

import numpy as np
import pytest

from moerank.data import load_planted_fold
from moerank.data.folds import of_queries
from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.mofsrank.objectives import guaranteed_member, halves, values_of
from moerank.statistics import e_value, largest_loss, level_of_each, mean_interval, p_above, shown_above

SIZES = np.array([1, 2, 4, 6, 9])
SMALL = dict(instance_selection=False, ensemble=False, feature_selection={"population": 12, "generations": 6})


def test_the_e_value_has_an_expectation_of_at_most_1():
    """Over all outcomes of differences of mean `value`, with equality, by enumeration."""
    for value, outcomes in [(0.0, (-0.5, 0.5)), (-0.2, (-1.0, 0.6)), (-0.02, (-0.52, 0.48))]:
        draws = itertools.product(outcomes, repeat=8)
        assert np.mean([e_value(d, value) for d in draws]) == pytest.approx(1.0, rel=1e-12)


def test_the_smallest_member_before_the_first_failure_is_chosen():
    rng = np.random.default_rng(0)
    ordering = np.array([0.2, 0.5, 0.6, 0.7, 0.8])
    noise = rng.normal(0, 0.02, (400, 5))
    d = noise - noise.mean(axis=0) - np.array([0.0, 0.1, 0.01, 0.005, 0.0])
    found = guaranteed_member(SIZES, ordering, d, 0.02)
    assert (found.chosen, found.shown, found.smaller, found.n_queries) == (2, True, True, 400)
    assert found.largest_loss == pytest.approx(-mean_interval(d[:, 2], 0.92)[0])
    assert found.sentence(SIZES, 12, "MAP", 0.02) == (
        "4 of 12 features lose less than 0.02 MAP against all of them, with 95 % confidence by 400 validation queries "
        "that chose nothing else; the next smaller set fails the test"
    )


def test_what_cannot_be_shown_is_said_with_the_loss_that_can():
    d = np.random.default_rng(0).normal(-0.03, 0.02, (100, 5))
    found = guaranteed_member(SIZES, np.array([0.2, 0.5, 0.6, 0.7, 0.8]), d, 0.02)
    assert (found.chosen, found.shown) == (4, False)
    assert found.sentence(SIZES, 12, "MAP", 0.02).endswith("chose nothing else; 9 features lose less than 0.058")
    few = guaranteed_member(SIZES, np.array([0.2, 0.5, 0.6, 0.7, 0.8]), np.full((2, 5), -1.0), 0.02)
    assert few.sentence(SIZES, 12, "MAP", 0.02).endswith("chose nothing else; keep all features")


@pytest.mark.parametrize("n", [5, 29, 30, 200])
def test_the_largest_loss_is_where_the_test_turns(n):
    d = np.random.default_rng(1).normal(0.01, 0.05, n)
    bound = largest_loss(d)
    assert bound == 1.0 or (shown_above(d, -bound - 0.001) and not shown_above(d, 0.002 - bound))
    if n >= 30:
        assert p_above(d, -bound) == pytest.approx(0.04)
    assert largest_loss(np.zeros(400)) < 0.02


def test_a_false_guarantee_is_as_rare_as_it_says():
    """Members that lose as much as the margin or more: 400 draws, and a bound that .05 exceeds once in 10⁴ runs."""
    rng, losses = np.random.default_rng(2), np.array([0.05, 0.03, 0.02, 0.01, 0.0])
    false = 0
    for _ in range(400):
        d = rng.normal(0, 0.05, (60, 1)) + rng.normal(0, 0.05, (60, 5)) - losses
        ordering = -losses + rng.normal(0, 0.01, 5)
        found = guaranteed_member(SIZES, ordering, d, 0.02)
        false += found.shown and losses[found.chosen] >= 0.02
    assert false <= 38


def test_the_corrected_level_holds_for_the_best_of_many():
    """A plain interval misses the mean of the best of 20 equal members far more often than 1 time in 20."""
    rng, missed, corrected = np.random.default_rng(3), 0, 0
    for _ in range(200):
        d = rng.normal(0, 0.5, (200, 20))
        best = d[:, d.mean(axis=0).argmax()]
        missed += mean_interval(best)[0] > 0
        corrected += mean_interval(best, 1 - level_of_each(d, draws=500))[0] > 0
    assert missed > 40
    assert corrected <= 14


def test_the_queries_of_the_tests_tune_and_order_nothing():
    train, vali, test = load_planted_fold(1, n_queries=200)
    solver = MOFSRank(final="guaranteed", margin=0.1, random_state=0, **SMALL).fit(train, validation=vali)
    first, second = halves(vali, 0)
    assert sorted([*set(first.qid), *set(second.qid)]) == sorted(set(vali.qid))
    alone = MOFSRank(final="validation", margin=0.1, random_state=0, **SMALL).fit(train, validation=first)
    assert solver.front_.equals(alone.front_)
    means = values_of(first, NDCG(10), solver.front_rankers_).mean(axis=0)
    d = values_of(second, NDCG(10), solver.front_rankers_) - values_of(second, NDCG(10), solver._reference)
    expected = guaranteed_member(solver.front_support_.sum(axis=1), means, d, 0.1)
    assert solver.guarantee_ == expected
    assert solver.chosen_ == expected.chosen
    assert "20 validation queries that chose nothing else" in solver.verdict(test).sentence
    with pytest.raises(ValueError, match='final="guaranteed" needs validation data'):
        MOFSRank(final="guaranteed", **SMALL).fit(train)
    with pytest.raises(ValueError, match="one query has no halves"):
        MOFSRank(final="guaranteed", **SMALL).fit(train, validation=of_queries(train, np.array([0])))
