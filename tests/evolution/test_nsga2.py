import numpy as np
import pytest
from pymoo.operators.survival.rank_and_crowding.metrics import get_crowding_function
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from moerank.evolution.algorithms import select_rows


def selected_front_by_front(F, n, random_state):
    kept, rank, crowding = np.empty(0, np.int64), np.zeros(len(F), np.int64), np.zeros(len(F))
    for number, front in enumerate(NonDominatedSorting().do(F, n_stop_if_ranked=n)):
        excess = max(0, len(kept) + len(front) - n)
        distance = get_crowding_function("cd").do(F[front])
        rank[front], crowding[front] = number, distance
        if excess:
            drawn = random_state.permutation(len(front))
            front = front[drawn[np.argsort(distance[drawn], kind="stable")[excess:]]][::-1]
        kept = np.concatenate((kept, front))
    return kept, rank[kept], crowding[kept]


@pytest.mark.parametrize("n_objectives", [1, 2, 3])
@pytest.mark.parametrize("n_values", [1, 2, 5, 40, 1000])
def test_individuals_are_selected_as_by_pymoo_front_by_front(n_objectives, n_values):
    rng = np.random.default_rng(n_values)
    for seed in range(200):
        size = int(rng.integers(1, 100))
        F = rng.integers(0, n_values, (size, n_objectives)) * 0.1
        n = int(rng.integers(1, size + 1))
        drawing, right = np.random.default_rng(seed), np.random.default_rng(seed)
        results = select_rows(F, n, drawing), selected_front_by_front(F, n, right)
        for array, expected in zip(*results, strict=True):
            assert array.tobytes() == expected.tobytes()
        assert drawing.bit_generator.state == right.bit_generator.state
