from collections import Counter
from itertools import product

import numpy as np
import pytest
from helpers.chance import plausible
from helpers.populations import crowded, peeled, placed, strings
from helpers.toy_search import WeighedBits
from pymoo.core.problem import Problem

from moerank.evolution import SparseEA, search

CODE = 1 << np.arange(4)


def winners(candidates, value):
    """The probability of each candidate to win a tournament of two that the smaller value wins, or the first drawn."""
    chance = Counter()
    for a, b in product(candidates, repeat=2):
        chance[b if value[b] < value[a] else a] += 1 / len(candidates) ** 2
    return chance


def flips(o, bits, score, off):
    """The probability of each string that flipping one of the bits can give; the string itself if there are none."""
    if not bits:
        return {o: 1.0}
    return {o ^ (1 << bit): share for bit, share in winners(bits, -score if off else score).items()}


def children_of(parents, score, standing):
    """The probability of each child, steps 4 to 6 in numbers."""
    chosen, chance = winners(range(len(parents)), standing), Counter()
    for i, j in product(chosen, repeat=2):
        p, q = parents[i], parents[j]
        for cross_off, mutate_off in product([True, False], repeat=2):
            for o, share in flips(p, ones(p & ~q if cross_off else q & ~p), score, cross_off).items():
                for child, part in flips(o, ones(o if mutate_off else ~o), score, mutate_off).items():
                    chance[child] += chosen[i] * chosen[j] * share * part / 4
    return np.array([chance[o] for o in range(16)])


def ones(o):
    return [bit for bit in range(4) if o >> bit & 1]


@pytest.mark.parametrize(
    ("rows", "score", "standing"),
    [
        (["1100"], [0, 1, 2, 3], [0]),
        (["1100", "0110"], [3, 1, 1, 0], [0, 0]),
        (["1111", "1000"], [0, 2, 1, 2], [1, 0]),
        (["1011", "0110", "0001"], [0, 0, 1, 1], [2, 0, 1]),
    ],
)
def test_children_are_as_likely_as_the_steps_make_them(rows, score, standing):
    X = strings(*rows)
    algorithm = placed(SparseEA(30_000), X, np.zeros((len(X), 2)), seed=3)
    algorithm.score, algorithm.standing = np.array(score), np.array(standing)
    expected = children_of([int(row @ CODE) for row in X], algorithm.score, algorithm.standing)
    np.testing.assert_allclose(expected.sum(), 1)
    counts = np.bincount(algorithm._mate() @ CODE, minlength=16)
    assert not counts[expected == 0].any()
    assert plausible(counts[expected > 0], expected[expected > 0])


def test_a_start_is_drawn_by_tournaments_on_the_score():
    algorithm = placed(SparseEA(10), strings("10"), [[0, 0]], seed=1)
    algorithm.score = np.array([0, 1])
    counts = np.bincount(algorithm._start(30_000) @ [1, 2], minlength=4)
    # One draw or two, as likely; each is the first bit with probability 3/4.
    first, second = (3 / 4 + 9 / 16) / 2, (1 / 4 + 1 / 16) / 2
    assert counts[0] == 0
    assert plausible(counts[1:], [first, second, 1 - first - second])


def test_single_strings_are_evaluated_first_and_score_the_bits():
    problem = WeighedBits(7)
    found = search(problem, SparseEA(10), 1, seed=1)
    np.testing.assert_array_equal(found.pop.get("X"), np.eye(7, dtype=bool))
    assert found.history[-1].n_eval == 7
    np.testing.assert_array_equal(found.algorithm.score, peeled(problem.evaluate(np.eye(7, dtype=bool))))
    assert [generation.n_eval for generation in search(problem, SparseEA(10), 3, seed=1).history][:2] == [7, 17]


def test_what_a_repair_adds_does_not_lower_the_score_of_a_bit():
    algorithm = placed(SparseEA(4), np.empty((0, 3), bool), np.empty((0, 2)))
    # The last bit stands in every string; the second one's string could not be evaluated.
    algorithm._survive(strings("101", "001"), np.array([[2.0, 5], [1, 4]]))
    assert algorithm.score.tolist() == [1, 2, 0]


def test_of_equal_objectives_the_older_survives_and_then_the_less_crowded():
    rng = np.random.default_rng(2)
    X = rng.random((60, 9)) < 0.5
    F = rng.integers(0, 12, (60, 2)).astype(float)
    algorithm = placed(SparseEA(12), X[:20], F[:20])
    kept = algorithm._survive(X, F)
    distinct = [i for i, row in enumerate(F) if not (F[:i] == row).all(axis=1).any()]
    front = peeled(F[distinct])
    order = np.lexsort((-crowded(F[distinct], front), front))
    assert len(distinct) > 12
    assert set(kept) <= set(distinct)
    assert sorted(front[np.searchsorted(distinct, kept)]) == sorted(front[order[:12]])
    best = kept[algorithm.standing == algorithm.standing.min()]
    assert set(best) <= {distinct[i] for i in order[: len(best)]}


def test_few_distinct_objectives_make_a_small_population():
    class Few(Problem):
        def _evaluate(self, X, out, *args, **kwargs):
            out["F"] = np.column_stack((X.sum(axis=1) % 3, X.sum(axis=1) % 2))

    found = search(Few(n_var=6, n_obj=2), SparseEA(20), 5, seed=1)
    assert len(found.pop) == 6
    assert found.history[-1].n_eval - found.history[-2].n_eval > 10, "the batch is as large as ever"
