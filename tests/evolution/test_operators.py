from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.chance import plausible
from helpers.toy_search import WeighedBits, operators
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.individual import Individual
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM
from scipy import stats

from moerank.evolution import (
    AdaptiveBitFlip,
    DensitySampling,
    MixedCrossover,
    MixedMutation,
    MixedSampling,
    SparseBitFlip,
    SubsetSizeSampling,
    UniformCrossover,
    importance_degrees,
    redundancy_degrees,
    search,
)

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


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("n", [5, 46, 1001, 600_001])
def test_matings_draw_the_bytes_of_one_after_the_other(n, packed):
    """However many short strings are crossed at once, and however long they are."""
    X, rng = SEEDED(5).random((14, n)) < 0.5, SEEDED(6)
    first, second = (half.copy() for half in np.split(X, 2))
    for k in np.flatnonzero(rng.random(7) < 0.9):
        bits = np.unpackbits(np.frombuffer(rng.bytes(-(-n // 8)), np.uint8), count=n).view(bool)
        first[k], second[k] = np.where(bits, second[k], first[k]), np.where(bits, first[k], second[k])
    given = np.packbits(X, axis=1) if packed else X.copy()
    children = UniformCrossover(prob=0.9).cross(Problem(n_var=n), given, random_state=SEEDED(6))
    expected = np.concatenate((first, second))
    np.testing.assert_array_equal(children, np.packbits(expected, axis=1) if packed else expected)


def mutated(mutation, X, seed=0):
    population = Population.new("X", list(X))
    result = mutation.do(Problem(n_var=X.shape[1]), population, random_state=SEEDED(seed))
    assert result is population
    assert result.get("X").dtype == bool
    return result.get("X")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("n", "share"), [(5, 0.5), (40, 1 / 40), (40, 0.3), (30_000, 1 / 30_000), (30_000, 0.01)])
def test_flips_are_those_of_one_row_after_the_other(n, share, packed):
    X, rng = SEEDED(7).random((60, n)) < 0.5, np.random.default_rng(SEEDED(8).integers(2**63))
    expected = X.copy()
    for row, count in zip(expected, rng.binomial(n, share, len(X)), strict=True):
        row[rng.choice(n, count, replace=False, shuffle=False)] ^= True
    given = np.packbits(X, axis=1) if packed else X
    flipped = SparseBitFlip(share).mutate(Problem(n_var=n), given, random_state=SEEDED(8), algorithm=None)
    np.testing.assert_array_equal(flipped, np.packbits(expected, axis=1) if packed else expected)


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
    SparseBitFlip(0.5).do(Problem(n_var=10), population, random_state=SEEDED(0))
    assert population.get("X").any()
    assert not np.any(rows)


N_BITS, N_REALS = 6, 4
N_VAR = N_BITS + N_REALS
PROBLEM = Problem(n_var=N_VAR, xl=0.0, xu=1.0)


def sample(n, seed=0):
    return MixedSampling(N_BITS)._do(PROBLEM, n, random_state=np.random.default_rng(seed))


def assert_mixed(X):
    assert X.dtype == np.float64
    assert np.isin(X[..., :N_BITS], (0.0, 1.0)).all()
    assert ((X >= 0) & (X <= 1)).all()


def mixed_children(parents, seed):
    """The children (2, n, n_var) of parents (2, n, n_var), of which every pair mates."""
    pairs = [[Individual(X=a), Individual(X=b)] for a, b in zip(*parents, strict=True)]
    children = MixedCrossover(N_BITS, 1.0).do(PROBLEM, pairs, random_state=SEEDED(seed)).get("X")
    return children.reshape(parents.shape)


def test_sampling_has_bits_of_all_densities_and_uniform_reals():
    X = sample(20_000)
    assert_mixed(X)
    # The number of ones is Binomial(n, U(0, 1)), which is uniform on 0 … n.
    assert stats.chisquare(np.bincount(X[:, :N_BITS].sum(axis=1).astype(int))).pvalue > 1e-3
    assert stats.kstest(X[:, N_BITS:].ravel(), "uniform").pvalue > 1e-3


def test_crossover_exchanges_each_bit_with_probability_one_half():
    parents = np.stack([np.zeros((3000, N_VAR)), np.ones((3000, N_VAR))])
    children = mixed_children(parents, 1)
    assert_mixed(children)
    first, second = children[..., :N_BITS]
    np.testing.assert_array_equal(first, 1.0 - second)
    patterns = first.astype(int) @ (1 << np.arange(N_BITS))
    assert stats.chisquare(np.bincount(patterns, minlength=2**N_BITS)).pvalue > 1e-3


def changes_of(parents, children):
    return np.abs(children - parents)[children != parents]


def test_crossover_treats_the_reals_as_pymoo_does():
    parents = np.stack([sample(8000, 1), sample(8000, 2)])
    ours = mixed_children(parents, 3)[..., N_BITS:]
    reals = parents[..., N_BITS:]
    theirs = SBX(eta=20)._do(Problem(n_var=N_REALS, xl=0.0, xu=1.0), reals, random_state=np.random.default_rng(4))
    assert stats.ks_2samp(changes_of(reals, ours), changes_of(reals, theirs)).pvalue > 1e-3
    assert abs((ours != reals).mean() - (theirs != reals).mean()) < 0.01


def test_mutation_changes_each_entry_with_the_same_probability():
    X = sample(20_000)
    mutated = MixedMutation(N_BITS).do(PROBLEM, Population.new("X", X), random_state=SEEDED(5)).get("X")
    assert_mixed(mutated)
    # Four standard errors of a share of 20,000 at 1/10 are 0.0085.
    np.testing.assert_allclose((mutated != X).mean(axis=0), 1 / N_VAR, atol=0.0085)
    reals = X[:, N_BITS:]
    theirs = PM(eta=20, prob_var=1 / N_VAR)._do(
        Problem(n_var=N_REALS, xl=0.0, xu=1.0), reals, random_state=np.random.default_rng(6)
    )
    changes = changes_of(reals, mutated[:, N_BITS:]), changes_of(reals, theirs)
    assert stats.ks_2samp(*changes).pvalue > 1e-3


IMPORTANCE = np.array([0.5, 0.2, 0.3, 0.0])
REDUNDANCY = np.array([0.1, 0.6, 0.0, 0.3])
X = np.array([[False, True, False, True], [True, False, True, False]])
DEGREE = np.array([[0.5, 0.6, 0.3, 0.3], [0.1, 0.2, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("decay", "alpha"), [("inverse", 1 / 3), ("exp", np.e**-3), ("geometric", 0.729), ("linear", 0.6)]
)
@pytest.mark.parametrize("base", [None, 0.05])
def test_probabilities_follow_the_formulas_and_stop_at_one(decay, alpha, base):
    pm = 0.25 if base is None else base
    expected = {
        "additive": pm + alpha * DEGREE,
        "convex": (1 - alpha) * pm + alpha * DEGREE,
        "product": pm * (1 + alpha * DEGREE),
    }
    for form, probability in expected.items():
        mutation = AdaptiveBitFlip(IMPORTANCE, REDUNDANCY, form=form, decay=decay, base=base)
        np.testing.assert_allclose(mutation.probabilities(X, 3, progress=0.4), probability, rtol=1e-14)
    mutation = AdaptiveBitFlip([9.0, 0.1], [0.2, 9.0], base=0.3)
    np.testing.assert_allclose(mutation.probabilities(np.array([[False, True]]), 1), [[1.0, 1.0]])


def test_bits_flip_at_their_probabilities():
    mutation = AdaptiveBitFlip(IMPORTANCE, REDUNDANCY)
    rows = np.repeat(X, 10_000, axis=0)
    algorithm = SimpleNamespace(n_iter=3, termination=SimpleNamespace(perc=0.1))
    population = mutation.do(
        Problem(n_var=4), Population.new("X", rows), algorithm=algorithm, random_state=np.random.default_rng(0)
    )
    flips = population.get("X") ^ rows
    assert population.get("X").dtype == bool
    expected = mutation.probabilities(X, generation=2)
    assert len(np.unique(expected)) == 6
    # Four standard errors of a share of 10,000 are at most 0.02.
    np.testing.assert_allclose(flips.reshape(2, -1, 4).mean(axis=1), expected, atol=0.02)


def test_the_first_mating_is_generation_one():
    seen = []

    class Recording(AdaptiveBitFlip):
        def probabilities(self, X, generation, progress=0.0):
            seen.append((generation, progress))
            return super().probabilities(X, generation, progress)

    n = WeighedBits().n_var
    algorithm = NSGA2(8, **operators() | dict(mutation=Recording(np.full(n, 1 / n), np.full(n, 1 / n))))
    search(WeighedBits(), algorithm, 5, seed=1)
    assert sorted(set(seen)) == [(1, 0.2), (2, 0.4), (3, 0.6), (4, 0.8)]


def test_redundancy_is_the_share_of_the_absolute_correlations():
    features = np.random.default_rng(0).random((50, 4)) @ np.random.default_rng(1).normal(size=(4, 6))
    correlation = np.abs(np.corrcoef(features.T)) - np.eye(6)
    expected = correlation.sum(axis=0) / correlation.sum()
    np.testing.assert_allclose(redundancy_degrees(features), expected, rtol=1e-12)
    # A constant feature, even one whose mean is not exact, correlates with nothing and takes nothing from the others.
    with_constant = np.insert(features, 2, 0.1, axis=1)
    np.testing.assert_allclose(redundancy_degrees(with_constant), np.insert(expected, 2, 0.0), rtol=1e-12)
    np.testing.assert_array_equal(redundancy_degrees(np.ones((5, 3))), np.zeros(3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(redundancy=[-0.1, 0.2, 0.3, 0.4]), "must be 0 or more"),
        (dict(importance=[np.nan, 0.2, 0.3, 0.4]), "must be 0 or more"),
        (dict(form="sum"), "form must be one of 'additive', 'convex', 'product', not 'sum'"),
        (dict(decay="slow"), "decay must be one of 'inverse', 'exp', 'geometric', 'linear', not 'slow'"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        AdaptiveBitFlip(**dict(importance=IMPORTANCE, redundancy=REDUNDANCY) | change)


def test_the_readings_of_importance_follow_their_formulas():
    accuracy = np.array([0.2, 0.5, 0.3, 0.4])
    np.testing.assert_allclose(importance_degrees(accuracy, "accuracy"), accuracy)
    np.testing.assert_allclose(importance_degrees(accuracy, "scaled"), (accuracy - 0.2) / 0.3)
    np.testing.assert_allclose(importance_degrees(accuracy), accuracy / 1.4, rtol=1e-15)
    assert importance_degrees([0.5, 0.5], "scaled").tolist() == importance_degrees([0.0, 0.0]).tolist() == [0.0, 0.0]


def test_the_readings_of_redundancy_follow_their_formulas():
    table = np.random.default_rng(0).normal(size=(50, 4)) @ np.random.default_rng(1).normal(size=(4, 4))
    absolute = np.abs(np.corrcoef(table.T)) - np.eye(4)
    np.testing.assert_allclose(redundancy_degrees(table, "mean"), absolute.sum(axis=0) / 3, rtol=1e-12)
    np.testing.assert_allclose(redundancy_degrees(table, "selected"), absolute, rtol=1e-12, atol=1e-15)
    mutation = AdaptiveBitFlip(IMPORTANCE, redundancy_degrees(table, "selected"))
    for row, chances in zip(X, mutation.probabilities(X, 1), strict=True):
        ones = np.flatnonzero(row)
        total = sum(absolute[i, k] for i in ones for k in ones)
        for j in ones:
            assert chances[j] == pytest.approx(min(1.0, 0.25 + sum(absolute[j, k] for k in ones) / total))
    alone = np.array([[True, False, False, False]])
    assert mutation.probabilities(alone, 1)[0, 0] == 0.25, "a feature alone is redundant with nothing"


def test_groups_add_up_the_correlations_of_their_features():
    table = np.random.default_rng(2).normal(size=(40, 4)) @ np.random.default_rng(3).normal(size=(4, 4))
    shares = redundancy_degrees(table)
    grouped = redundancy_degrees(table, bit_of=[0, 1, 1, 2])
    np.testing.assert_allclose(grouped, [shares[0], shares[1] + shares[2], shares[3]], rtol=1e-12)


@pytest.mark.parametrize("mutation", [AdaptiveBitFlip(IMPORTANCE, REDUNDANCY), SparseBitFlip(), SparseBitFlip(0.7)])
def test_every_mutation_moves_the_draws_of_the_others_alike(mutation):
    shared, alone = np.random.default_rng(5), np.random.default_rng(5)
    algorithm = SimpleNamespace(n_iter=3, termination=SimpleNamespace(perc=0.1))
    mutation.do(Problem(n_var=4), Population.new("X", X.copy()), algorithm=algorithm, random_state=shared)
    alone.integers(2**63)
    assert shared.random() == alone.random()
