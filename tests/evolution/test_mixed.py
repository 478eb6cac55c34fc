import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import Problem
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM
from scipy import stats

from moerank.evolution import DigestDuplicates, MixedCrossover, MixedMutation, MixedSampling, search

N_BITS, N_REALS = 6, 4
N_VAR = N_BITS + N_REALS
PROBLEM = Problem(n_var=N_VAR, xl=0.0, xu=1.0)


def sample(n, seed=0):
    return MixedSampling(N_BITS)._do(PROBLEM, n, random_state=np.random.default_rng(seed))


def assert_mixed(X):
    assert X.dtype == np.float64
    assert np.isin(X[..., :N_BITS], (0.0, 1.0)).all()
    assert ((X >= 0) & (X <= 1)).all()


def test_sampling_has_bits_of_all_densities_and_uniform_reals():
    X = sample(20_000)
    assert_mixed(X)
    # The number of ones is Binomial(n, U(0, 1)), which is uniform on 0 … n.
    assert stats.chisquare(np.bincount(X[:, :N_BITS].sum(axis=1).astype(int))).pvalue > 1e-3
    assert stats.kstest(X[:, N_BITS:].ravel(), "uniform").pvalue > 1e-3


def test_crossover_exchanges_each_bit_with_probability_one_half():
    parents = np.stack([np.zeros((3000, N_VAR)), np.ones((3000, N_VAR))])
    children = MixedCrossover(N_BITS)._do(PROBLEM, parents, random_state=np.random.default_rng(1))
    assert_mixed(children)
    first, second = children[..., :N_BITS]
    np.testing.assert_array_equal(first, 1.0 - second)
    patterns = first.astype(int) @ (1 << np.arange(N_BITS))
    assert stats.chisquare(np.bincount(patterns, minlength=2**N_BITS)).pvalue > 1e-3


def changes_of(parents, children):
    return np.abs(children - parents)[children != parents]


def test_crossover_treats_the_reals_as_pymoo_does():
    parents = np.stack([sample(8000, 1), sample(8000, 2)])
    ours = MixedCrossover(N_BITS)._do(PROBLEM, parents, random_state=np.random.default_rng(3))[..., N_BITS:]
    reals = parents[..., N_BITS:]
    theirs = SBX(eta=20)._do(Problem(n_var=N_REALS, xl=0.0, xu=1.0), reals, random_state=np.random.default_rng(4))
    assert stats.ks_2samp(changes_of(reals, ours), changes_of(reals, theirs)).pvalue > 1e-3
    assert abs((ours != reals).mean() - (theirs != reals).mean()) < 0.01


def test_mutation_changes_each_entry_with_the_same_probability():
    X = sample(20_000)
    mutated = MixedMutation(N_BITS)._do(PROBLEM, X, random_state=np.random.default_rng(5))
    assert_mixed(mutated)
    # Four standard errors of a share of 20,000 at 1/10 are 0.0085.
    np.testing.assert_allclose((mutated != X).mean(axis=0), 1 / N_VAR, atol=0.0085)
    reals = X[:, N_BITS:]
    theirs = PM(eta=20, prob_var=1 / N_VAR)._do(
        Problem(n_var=N_REALS, xl=0.0, xu=1.0), reals, random_state=np.random.default_rng(6)
    )
    changes = changes_of(reals, mutated[:, N_BITS:]), changes_of(reals, theirs)
    assert stats.ks_2samp(*changes).pvalue > 1e-3


class MixedProblem(Problem):
    def __init__(self, n_bits, n_reals):
        super().__init__(n_var=n_bits + n_reals, n_obj=2)
        self.n_bits = n_bits

    def _evaluate(self, X, out, *args, **kwargs):
        assert np.isin(X[:, : self.n_bits], (0.0, 1.0)).all()
        out["F"] = np.column_stack([X.sum(axis=1), ((1 - X) ** 2).sum(axis=1)])


@pytest.mark.parametrize(("n_bits", "n_reals"), [(6, 4), (1, 1), (30, 1)])
def test_whole_searches_depend_on_the_seed_alone(n_bits, n_reals):
    def run():
        algorithm = NSGA2(
            20,
            sampling=MixedSampling(n_bits),
            crossover=MixedCrossover(n_bits),
            mutation=MixedMutation(n_bits),
            eliminate_duplicates=DigestDuplicates(),
        )
        return search(MixedProblem(n_bits, n_reals), algorithm, 10, seed=2).pop.get("X")

    first = run()
    np.random.seed(99)  # noqa: NPY002 — the global state must not matter
    np.testing.assert_array_equal(first, run())
    assert len(np.unique(first, axis=0)) == 20
