import numpy as np
import pytest
from helpers.pair_problems import differences, gaussian_kernel, minimum, pair_objective
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from moerank.data import RankingData, load_fold
from moerank.metrics import MAP, NDCG
from moerank.rankers import KernelRankSVM, RankFourier, RankNystrom, RankSVM, RankSVMTRON
from moerank.training import sorted as sorted_problems
from moerank.training.pairs import SQUARED_HINGE, ListedPairs
from moerank.training.sorted import PairedDocuments

# OHSUMED with 500 components, C = 2⁻⁶ and gamma = 2⁻⁶: NDCG@10 and MAP of the five test folds, and their means.
PUBLISHED = {"N@10": [0.3955, 0.4576, 0.4356, 0.4593, 0.5047], "MAP": [0.3529, 0.4461, 0.4491, 0.5160, 0.4725]}
MEANS = {RankNystrom: (0.4505, 0.4473), RankFourier: (None, 0.4472)}


def fit(maker, data, **parameters):
    return maker(**{"random_state": 0, **parameters}).fit(data)


@pytest.mark.parametrize("C", [1.0, 1000.0])
@pytest.mark.parametrize(("gamma", "error"), [(1.0, 1e-6), (0.1, 1e-4)])
def test_nystrom_with_every_document_for_landmark_is_the_exact_kernel_ranker(noisy_data, C, gamma, error):
    exact = KernelRankSVM(C=C, gamma=gamma, tol=1e-9).fit(noisy_data)
    nystrom = fit(RankNystrom, noisy_data, C=C, gamma=gamma, tol=1e-9)
    X = np.random.default_rng(0).random((50, 12))
    expected = exact.predict(X)
    differences = nystrom.predict(X) - expected
    assert np.ptp(differences) < error * np.ptp(expected)  # a constant moves no document


def test_the_nystrom_map_is_the_low_rank_kernel_of_its_landmarks(noisy_data):
    ranker = fit(RankNystrom, noisy_data, n_components=25, gamma=0.5)
    X = noisy_data.X[:60]
    across = gaussian_kernel(X, ranker.landmarks_, 0.5)
    expected = across @ np.linalg.inv(gaussian_kernel(ranker.landmarks_, ranker.landmarks_, 0.5)) @ across.T
    mapped = ranker._image(X)
    np.testing.assert_allclose(mapped @ mapped.T, expected, atol=1e-8)
    rows = {tuple(row) for row in noisy_data.X.tolist()}
    assert {tuple(row) for row in ranker.landmarks_.tolist()} <= rows
    assert len({tuple(row) for row in ranker.landmarks_.tolist()}) == 25, "drawn without replacement"


@pytest.mark.parametrize("maker", [RankNystrom, RankFourier])
@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_the_solution_is_that_of_rank_svm_on_the_mapped_documents(noisy_data, maker, C):
    ranker = fit(maker, noisy_data, n_components=20, gamma=0.5, C=C, tol=1e-8)
    mapped = RankingData(ranker._image(noisy_data.X), noisy_data.y, noisy_data.qid)
    exact = RankSVM(C).fit(mapped).coef_
    problem = ListedPairs.of(mapped)
    best = problem.expand(exact, C, SQUARED_HINGE).value
    assert problem.expand(ranker.weights_, C, SQUARED_HINGE).value == pytest.approx(best, rel=1e-10)
    np.testing.assert_allclose(ranker.predict(noisy_data.X), mapped.X @ ranker.weights_, rtol=1e-9, atol=1e-9)


def test_the_error_of_fourier_features_falls_as_one_over_the_root_of_their_number(noisy_data):
    X = noisy_data.X[:80]
    exact = gaussian_kernel(X, X, 0.4)

    def error(k):
        mapped = [
            fit(RankFourier, noisy_data, n_components=k, gamma=0.4, random_state=seed)._image(X) for seed in range(4)
        ]
        return np.sqrt(np.mean([(Z @ Z.T - exact) ** 2 for Z in mapped]))

    errors = [error(k) for k in (30, 480)]
    assert 3.2 < errors[0] / errors[1] < 5.0  # √16 = 4
    assert errors[1] < 0.05


SMALL = [
    RankNystrom(30, C=100.0, gamma=0.5, random_state=5),
    RankFourier(30, C=100.0, gamma=0.5, random_state=5),
    KernelRankSVM(C=100.0, gamma=0.5),
]


def test_values_too_close_for_the_kernel_are_told(noisy_data):
    close = RankingData(1e-6 * noisy_data.X, noisy_data.y, noisy_data.qid)
    with pytest.warns(ConvergenceWarning, match=r"RankNystrom scores all documents alike; .* scale these to \[0, 1\]"):
        assert not np.ptp(RankNystrom(random_state=0).fit(close).predict(close))


@pytest.mark.parametrize("ranker", SMALL)
def test_identical_documents_tie_wherever_they_stand(noisy_data, ranker):
    ranker = clone(ranker).fit(noisy_data)
    rng = np.random.default_rng(3)
    rows = rng.random((31, 12))
    copies = rng.integers(0, 31, 2100)
    scores = ranker.predict(rows[copies])
    for document in range(31):
        assert len(set(scores[copies == document])) == 1


@pytest.mark.parametrize("maker", [RankNystrom, RankFourier])
def test_the_grid_weighs_a_pair_as_the_paper_does(noisy_data, maker):
    grid = maker().default_grid(noisy_data)
    weights = {np.log2(2.0 * entry["C"] / len(noisy_data.pairs)) for entry in grid}
    assert weights == set(range(-12, 7, 2))
    assert {np.log2(entry["gamma"]) for entry in grid} == set(range(-12, 3, 2))
    assert len(grid) == 80


@pytest.mark.parametrize("maker", [RankNystrom, RankFourier])
def test_published_values_on_ohsumed(letor_folder, maker):
    values = []
    for fold in range(1, 6):
        train, _, test = load_fold(letor_folder / "OHSUMED" / f"Fold{fold}")
        ranker = maker(500, C=0.5 * 2.0**-6 * len(train.pairs), gamma=2.0**-6, random_state=0)._learn(train)
        scores = ranker.predict(test.X)
        values.append((NDCG(10, convention="letor").score(test, scores), MAP().score(test, scores)))
    ndcg, mean_ap = np.transpose(values)
    expected = MEANS[maker]
    assert mean_ap.mean() == pytest.approx(expected[1], abs=2e-3)
    if maker is RankNystrom:  # the draw of the landmarks hardly matters: 500 span what the data have to offer
        assert ndcg.mean() == pytest.approx(expected[0], abs=2e-3)
        np.testing.assert_allclose(ndcg, PUBLISHED["N@10"], atol=5e-3)
        np.testing.assert_allclose(mean_ap, PUBLISHED["MAP"], atol=1e-3)


@pytest.mark.parametrize("kind", [KernelRankSVM, RankFourier, RankNystrom, RankSVMTRON])
def test_no_convergence_is_told_of_the_fit_and_not_of_the_tuning(noisy_data, kind, monkeypatch, recwarn):
    ranker = kind(C=500.0, tol=1e-9)
    with monkeypatch.context() as patch:
        patch.setattr(sorted_problems, "MAX_TRIED", 1)
        ranker.tune(noisy_data, noisy_data, [{"C": 10.0}, {"C": 20.0}])
        assert not recwarn.list
        with pytest.warns(ConvergenceWarning, match=f"^{kind.__name__} did not converge to tol=1e-09 in 1 steps"):
            ranker.fit(noisy_data)
    recwarn.clear()
    ranker.fit(noisy_data)
    assert not recwarn.list


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


def test_a_matrix_over_the_limit_is_refused_with_its_size(monkeypatch):
    data = RankingData(np.linspace(0.0, 1.0, 4000)[:, None], np.arange(4000) == 0, qid=0)
    monkeypatch.setenv("MOERANK_MEMORY", "0.1")
    with pytest.raises(ValueError, match=r"4,000² kernel values, which rank-nystrom .* would take 0\.119 GiB"):
        KernelRankSVM().fit(data)
