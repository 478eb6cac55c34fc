import numpy as np
import pytest
from helpers.pair_problems import differences, gaussian_kernel, minimum, pair_objective

from moerank.data import RankingData
from moerank.rankers import KernelRankSVM
from moerank.training.sorted import PairedDocuments


@pytest.mark.parametrize("C", [1.0, 100.0, 3000.0])
@pytest.mark.parametrize("gamma", [0.05, 1.0])
def test_minimum_and_scores_are_those_in_the_primal_on_an_exact_feature_map(noisy_data, C, gamma):
    ranker = KernelRankSVM(C=C, gamma=gamma, tol=1e-8).fit(noisy_data)
    K = gaussian_kernel(noisy_data.X, noisy_data.X, gamma)
    values, U = np.linalg.eigh(K)
    features = U * np.sqrt(values.clip(0.0))  # features @ features.T == K
    mapped = RankingData(features, noisy_data.y, noisy_data.qid)
    best = minimum(pair_objective(differences(mapped), C), features.shape[1])

    b = np.zeros(noisy_data.n_documents)
    b[PairedDocuments.of(noisy_data).rows] = ranker.weights_
    z, pairs = K @ b, noisy_data.pairs
    loss = np.mean(np.maximum(0.0, 1.0 - (z[pairs.better] - z[pairs.worse])) ** 2)
    assert 0.5 * b @ z + C * loss == pytest.approx(best.fun, rel=1e-8)
    np.testing.assert_allclose(ranker.predict(noisy_data.X), features @ best.x, atol=1e-4 * np.ptp(features @ best.x))


def test_scores_are_sums_over_the_documents_in_pairs(noisy_data):
    ranker = KernelRankSVM(C=100.0, gamma=0.5).fit(noisy_data)
    paired = np.unique(np.concatenate([noisy_data.pairs.better, noisy_data.pairs.worse]))
    assert 0 < len(paired) < noisy_data.n_documents
    np.testing.assert_array_equal(ranker.documents_, noisy_data.X[paired])
    X = np.random.default_rng(2).random((40, 12))
    np.testing.assert_allclose(
        ranker.predict(X), gaussian_kernel(X, ranker.documents_, 0.5) @ ranker.weights_, rtol=1e-9
    )
    assert ranker.predict(X[:0]).shape == (0,)


def test_a_matrix_over_the_limit_is_refused_with_its_size():
    n = 4000
    data = RankingData(np.linspace(0.0, 1.0, n)[:, None], np.arange(n) == 0, qid=0)
    gib = 8 * n**2 / 2**30
    with pytest.raises(ValueError, match=r"needs 0\.12 GiB for 4,000² kernel values, more than memory_limit=0\.1 GiB"):
        KernelRankSVM(memory_limit=0.1).fit(data)
    with pytest.raises(ValueError, match="rank-nystrom"):
        KernelRankSVM(memory_limit=gib * (1 - 1e-9)).fit(data)
    assert KernelRankSVM(memory_limit=gib).fit(data).weights_.shape == (n,)
    assert KernelRankSVM().memory_limit > 8 * 9219**2 / 2**30, "OHSUMED"
