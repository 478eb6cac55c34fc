from itertools import product

import numpy as np
import pytest
from helpers.chance import plausible
from pymoo.core.individual import Individual
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from scipy import stats

from moerank.evolution import DensitySampling, SparseBitFlip, SubsetSizeSampling, UniformCrossover

SEEDED = np.random.default_rng


def crossed(crossover, a, b, n_matings, seed=0):
    """The first and the second children of `n_matings` matings of the rows a and b."""
    matings = [[Individual(X=a), Individual(X=b)] for _ in range(n_matings)]
    children = crossover.do(Problem(n_var=len(a)), matings, random_state=SEEDED(seed)).get("X")
    assert children.dtype == bool
    assert children.shape == (2 * n_matings, len(a))
    return children[:n_matings], children[n_matings:]


def test_densities_are_log_uniform():
    X = DensitySampling(0.02, 0.4)._do(Problem(n_var=20_000), 400, random_state=SEEDED(1))
    assert X.dtype == bool
    position = np.log(X.mean(axis=1) / 0.02) / np.log(0.4 / 0.02)
    assert stats.kstest(position, "uniform").pvalue > 1e-3


def test_bits_of_one_density_are_independent():
    X = DensitySampling(0.3, 0.3)._do(Problem(n_var=3), 20_000, random_state=SEEDED(2))
    patterns = list(product([0, 1], repeat=3))
    observed = [np.equal(X, pattern).all(axis=1).sum() for pattern in patterns]
    expected = np.array([0.3 ** sum(pattern) * 0.7 ** (3 - sum(pattern)) for pattern in patterns])
    # An empty row gets one random bit, so none is empty and those with one bit are more frequent.
    assert observed[0] == 0
    expected += np.equal(np.sum(patterns, axis=1), 1) * expected[0] / 3
    assert plausible(observed[1:], expected[1:])


@pytest.mark.parametrize(("low", "high"), [(0, 0.5), (0.5, 0.4), (0.5, 1.1)])
def test_impossible_densities_are_refused(low, high):
    with pytest.raises(ValueError, match="0 < low <= high <= 1"):
        DensitySampling(low, high)


def test_subset_sizes_are_uniform_and_so_are_the_subsets_of_a_size():
    n = 5
    X = SubsetSizeSampling()._do(Problem(n_var=n), 20_000, random_state=SEEDED(3))
    assert X.dtype == bool
    sizes = X.sum(axis=1)
    assert plausible(np.bincount(sizes, minlength=n + 1)[1:], np.ones(n))
    pairs = X[sizes == 2] @ (1 << np.arange(n))
    observed = np.bincount(pairs, minlength=1 << n)
    assert np.count_nonzero(observed) == 10
    assert plausible(observed[observed > 0], np.ones(10))


@pytest.mark.parametrize("n", [1, 7, 64, 1001])
def test_children_share_out_the_genes_of_their_parents(n):
    a, b = SEEDED(4).random((2, n)) < 0.5
    before = a.copy(), b.copy()
    first, second = crossed(UniformCrossover(prob=1.0), a, b, 20)
    np.testing.assert_array_equal(np.sort([first, second], axis=0), np.sort(np.stack([[a, b]] * 20, axis=1), axis=0))
    np.testing.assert_array_equal((a, b), before)


@pytest.mark.parametrize("prob", [0.0, 1.0])
def test_children_own_their_memory(prob):
    pair = [Individual(X=np.zeros(50, bool)), Individual(X=np.ones(50, bool))]
    for child in UniformCrossover(prob).do(Problem(n_var=50), [pair, pair], random_state=SEEDED(0)):
        assert child.X.flags.owndata
        assert not any(child.X is parent.X for parent in pair)


def test_matings_take_place_with_their_probability():
    a, b = np.zeros(200, bool), np.ones(200, bool)
    first, second = crossed(UniformCrossover(prob=0.6), a, b, 3000)
    taken = first.any(axis=1)
    np.testing.assert_array_equal(taken, ~second.all(axis=1))
    assert stats.binomtest(int(taken.sum()), 3000, 0.6).pvalue > 1e-3


def test_uniform_crossover_exchanges_each_gene_independently():
    first, _ = crossed(UniformCrossover(prob=1.0), np.zeros(11, bool), np.ones(11, bool), 20_000)
    patterns = first @ (1 << np.arange(11))
    assert plausible(np.bincount(patterns, minlength=2048), np.ones(2048))


def test_parents_may_be_given_by_index():
    population = Population.new("X", SEEDED(5).random((4, 30)) < 0.5)
    indices = np.array([[0, 3], [2, 1]])
    by_index = UniformCrossover().do(Problem(n_var=30), population, indices, random_state=SEEDED(6))
    directly = UniformCrossover().do(Problem(n_var=30), population[indices], random_state=SEEDED(6))
    np.testing.assert_array_equal(by_index.get("X"), directly.get("X"))


def mutated(mutation, X, seed=0):
    population = Population.new("X", list(X))
    result = mutation.do(Problem(n_var=X.shape[1]), population, random_state=SEEDED(seed))
    assert result is population
    assert result.get("X").dtype == bool
    return result.get("X")


def test_flips_are_distributed_like_one_coin_a_bit():
    start = np.tile([True, False, True, False], (20_000, 1))
    flips = mutated(SparseBitFlip(0.35), start) ^ start
    patterns = list(product([0, 1], repeat=4))
    observed = [np.all(flips == pattern, axis=1).sum() for pattern in patterns]
    assert plausible(observed, [0.35 ** sum(pattern) * 0.65 ** (4 - sum(pattern)) for pattern in patterns])


def test_one_bit_flips_on_average_by_default():
    n = 50_000
    flips = mutated(SparseBitFlip(), np.zeros((2000, n), bool), seed=1)
    counts = np.bincount(flips.sum(axis=1), minlength=8)
    assert plausible([*counts[:5], counts[5:].sum()], [*stats.poisson.pmf(np.arange(5), 1), stats.poisson.sf(4, 1)])
    places = np.flatnonzero(flips) % n
    assert stats.kstest(places / n, "uniform").pvalue > 1e-3


def test_mutation_leaves_the_rows_it_was_given():
    X = np.zeros((5, 10), bool)
    population = Population.new("X", list(X))
    rows = [individual.X for individual in population]
    copies = SparseBitFlip(0.5).do(Problem(n_var=10), population, inplace=False, random_state=SEEDED(0))
    assert copies.get("X").any()
    assert not population.get("X").any()
    SparseBitFlip(0.5).do(Problem(n_var=10), population, random_state=SEEDED(0))
    assert population.get("X").any()
    assert not np.any(rows)


@pytest.mark.parametrize("operator", [UniformCrossover(1.0), SparseBitFlip(0.9)])
def test_rows_of_other_types_are_refused(operator):
    individuals = Population.new("X", np.zeros((2, 10)))
    given = individuals if isinstance(operator, SparseBitFlip) else individuals[None, :]
    with pytest.raises(TypeError, match=r"holds float64.*DensitySampling"):
        operator.do(Problem(n_var=10), given, random_state=SEEDED(0))
