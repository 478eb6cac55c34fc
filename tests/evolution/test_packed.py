import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.population import Population

from moerank.data import make_planted
from moerank.evolution import (
    DensitySampling,
    Journal,
    PackedProblem,
    SparseBitFlip,
    UniformCrossover,
    row_digests,
    search,
)
from moerank.evolution.operators import PackedBitFlip, PackedCrossover, PackedSampling, pack_rows, unpack_rows
from moerank.metrics import NDCG
from moerank.mofsrank import InstanceSelection
from moerank.rankers import RankRLS

SEEDED = np.random.default_rng


class Bits:
    """A problem with so many bits, to the operators."""

    def __init__(self, n_var):
        self.n_var = n_var
        self.problem = self


@pytest.mark.parametrize("n_bits", [1, 8, 63, 1001])
def test_operators_do_to_packed_strings_what_they_do_to_bool_ones(n_bits):
    problem = Bits(n_bits)
    X = DensitySampling()._do(problem, 12, random_state=SEEDED(1))
    packed = PackedSampling(DensitySampling())._do(problem, 12, random_state=SEEDED(1))
    np.testing.assert_array_equal(packed, np.packbits(X, axis=1))
    parents = np.arange(12).reshape(6, 2)
    children = [
        crossover.do(problem, Population.new("X", list(rows)), parents, random_state=SEEDED(2))
        for crossover, rows in ((UniformCrossover(0.7), X), (PackedCrossover(0.7), packed))
    ]
    np.testing.assert_array_equal(unpack_rows(children[1].get("X"), n_bits), children[0].get("X"))
    before = children[1].get("X")
    rows = [individual.X for individual in children[1]]
    for mutation, individuals in zip((SparseBitFlip(0.2), PackedBitFlip(0.2)), children, strict=True):
        mutation.do(problem, individuals, random_state=SEEDED(3))
    np.testing.assert_array_equal(unpack_rows(children[1].get("X"), n_bits), children[0].get("X"))
    assert (children[1].get("X") != before).any()
    np.testing.assert_array_equal(rows, before)  # the rows that were given stay as they were


def test_packed_strings_have_the_digests_of_bool_ones():
    X = SEEDED(0).random((5, 77)) < 0.5
    assert row_digests(pack_rows(X)) == row_digests(X)


@pytest.mark.parametrize("unit", ["pair", "document", "query"])
def test_a_packed_search_goes_the_same_way(tmp_path, unit):
    data = make_planted(n_queries=9, n_documents=12, seed=1).data
    runs, journals = [], []
    for packed in (False, True):
        stage = InstanceSelection(data, RankRLS(0.01), NDCG(5), unit=unit, workers=2)
        problem, operators = (PackedProblem(stage), stage.packed_operators()) if packed else (stage, stage.operators())
        journal = Journal(tmp_path / f"{packed}", {})
        runs.append(search(problem, NSGA2(20, **operators), 6, seed=4, journal=journal))
        again = Journal(tmp_path / f"{packed}", {})
        resumed = search(problem, NSGA2(20, **operators), 6, seed=4, journal=again)
        assert again.resumed
        np.testing.assert_array_equal(resumed.pop.get("F"), runs[-1].pop.get("F"))
        journals.append(list(stage._known))
    plain, found = runs
    np.testing.assert_array_equal(unpack_rows(found.pop.get("X"), stage.n_var), plain.pop.get("X"))
    np.testing.assert_array_equal(found.pop.get("F"), plain.pop.get("F"))
    np.testing.assert_array_equal(unpack_rows(found.archive.X, stage.n_var), plain.archive.X)
    np.testing.assert_array_equal(found.archive.F, plain.archive.F)
    assert set(journals[0]) == set(journals[1])
