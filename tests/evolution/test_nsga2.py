import numpy as np
import pytest
from helpers.toy_search import operators
from pymoo.operators.survival.rank_and_crowding.metrics import get_crowding_function
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from moerank.evolution.nsga2 import NSGA2
from moerank.evolution.rows import Rows


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
        n, n_old = (int(number) for number in rng.integers(1, size + 1, 2))
        both = [Rows(part, [bytes(row) for row in part], part) for part in np.split(F, [n_old])]
        algorithm = NSGA2(**operators())
        algorithm.random_state = np.random.default_rng(seed)
        algorithm._select(both[0], n, both[1] if n_old < size else None)
        right = np.random.default_rng(seed)
        kept, rank, crowding = selected_front_by_front(F, n, right)
        rows = algorithm.rows
        assert rows.F.tobytes() == rows.X.tobytes() == F[kept].tobytes()
        assert rows.digests == [bytes(row) for row in F[kept]]
        assert rows.data["rank"].tolist() == rank.tolist()
        assert rows.data["crowding"].tobytes() == crowding.tobytes()
        assert algorithm.random_state.bit_generator.state == right.bit_generator.state
