import gc
import weakref

import numpy as np
import pytest
from sklearn.base import clone

from moerank import FSMRankSubgradient, GreedyRankRLS, NonconvexRanker
from moerank.data import RankingData
from moerank.metrics import MAP, NDCG
from moerank.rankers import (
    AdaRank,
    AdditiveRLS,
    FRank,
    KernelRankSVM,
    LambdaMART,
    LinearRanker,
    ListNet,
    RankBoost,
    RankFourier,
    RankNystrom,
    RankSVM,
    RankSVMStruct,
)
from moerank.solvers import make_solver


class Prefix(LinearRanker):
    """Weights 1 for the first `size` features that vary; counts how often it is trained."""

    _size = "size"
    trained = 0

    def __init__(self, size=1, scale=1.0):
        self.size = size
        self.scale = scale

    def default_grid(self, train):
        return [{"size": size, "scale": scale} for size in range(1, 5) for scale in (1.0, -1.0)]

    def _weights(self, train):
        Prefix.trained += 1
        assert all(np.ptp(column) > 0 for column in train.X.T)
        return self.scale * (np.arange(train.n_features) < self.size)

    def _scores_by_size(self, train, X):
        columns = X[:, self.varying_][:, : self.size]
        return self.scale * np.cumsum(columns, axis=1)


@pytest.fixture
def data():
    rng = np.random.default_rng(4)
    X = rng.random((60, 6))
    X[:, 1] = np.repeat(rng.random(6), 10)  # constant in every query, not in all documents
    return RankingData(X, rng.integers(0, 3, 60), np.repeat(np.arange(6), 10))


def test_tuning_trains_the_largest_size_of_each_setting_once(data):
    Prefix.trained = 0
    shares = []
    tuned = Prefix().tune(data, data, metric=NDCG(5), progress=shares.append)
    assert (Prefix.trained, shares) == (2, [0.5, 1.0])
    scores = {
        (entry["size"], entry["scale"]): NDCG(5).score(
            data, entry["scale"] * data.X[:, [0, 2, 3, 4, 5]][:, : entry["size"]].sum(axis=1)
        )
        for entry in Prefix().default_grid(data)
    }
    assert (tuned.size, tuned.scale) == max(scores, key=scores.get)


@pytest.mark.parametrize(
    "ranker",
    [
        AdaRank(n_rounds=25, reweighting="cumulative"),
        RankBoost(25),
        FRank(25, None),
        ListNet(25),
        GreedyRankRLS(8),
        LambdaMART(50),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
def test_predictions_are_the_staged_scores_of_every_size(noisy_data, ranker):
    staged = ranker.fit(noisy_data)._validation_scores(noisy_data, noisy_data)
    assert staged.shape == (noisy_data.n_documents, getattr(ranker, ranker._size))
    for size in (1, 7, staged.shape[1]):
        smaller = clone(ranker).set_params(**{ranker._size: size}).fit(noisy_data)
        np.testing.assert_array_equal(staged[:, size - 1], smaller.predict(noisy_data.X))
    if hasattr(ranker, "features_"):
        assert ranker.support_.tolist() == [f in ranker.features_ for f in range(12)]


STEPS = [{"lambda1": a, "lambda2": b, "eta0": c} for a, b, c in ((1.0, 1.0, 1.0), (1e-3, 1e-2, 0.1), (1e-6, 0.0, 0.01))]
COSTS = [{"lam": 0.1}, {"lam": 0.01, "C": 3.0, "max_iter": 4}, {"lam": 1e-3}]
KERNELS = [{"C": C, "gamma": gamma} for gamma in (0.1, 1.0) for C in (10.0, 1000.0)]
TOGETHER = [
    ([FSMRankSubgradient(**entry, max_iter=steps) for entry in STEPS for steps in (5, 40)], 2, 0.0),
    ([NonconvexRanker(penalty, **entry) for penalty in ("lp", "log", "mcp") for entry in COSTS], 1, 0.0),
    ([RankNystrom(30, random_state=5, **entry) for entry in KERNELS], 2, 1e-9),
    ([RankFourier(30, random_state=5, **entry) for entry in KERNELS], 2, 1e-9),
    ([KernelRankSVM(**entry) for entry in KERNELS], 2, 1e-9),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("rankers", "n_groups", "rtol"), TOGETHER, ids=lambda value: type(np.ravel(value)[0]).__name__)
def test_entries_trained_together_score_as_each_does_alone(noisy_data, rankers, n_groups, rtol):
    groups = rankers[0]._groups(rankers)
    assert len(groups) == n_groups
    for group in groups:
        scores = rankers[0]._candidate_scores(noisy_data, noisy_data, [rankers[i] for i in group])
        alone = np.column_stack([rankers[i].fit(noisy_data).predict(noisy_data) for i in group])
        assert len(np.unique(alone, axis=1).T) == len(group)
        np.testing.assert_allclose(scores, alone, rtol=rtol, atol=1e-3 * rtol)


def test_scores_that_are_all_equal_are_chosen_last(data):
    x = data.X[:, 0].reshape(6, 10)
    misleading = RankingData(data.X, (x == x.min(axis=1, keepdims=True)).ravel(), data.qid)  # the lowest is relevant
    assert MAP().score(misleading, np.zeros(60)) > MAP().score(misleading, x.ravel())
    tuned = Prefix().tune(misleading, misleading, grid=[{"scale": 0.0}, {"scale": 1.0}])
    assert tuned.scale == 1.0


def test_the_memory_of_training_data_keeps_no_validation_data(data):
    held_out = RankingData(-data.X, data.y, data.qid)
    seen = weakref.ref(held_out)
    make_solver("fs-ed").fit(data, validation=held_out)
    del held_out
    gc.collect()
    assert seen() is None


def test_a_constructor_is_inherited_and_a_field_becomes_a_parameter():
    class Own(RankSVM):
        def __init__(self, C=1.0, depth=2):
            super().__init__(C=C)
            self.depth = depth

    class Inherits(Own):
        width: int = 3

    class HasField(RankSVM):
        depth: int = 2

    assert clone(Inherits(depth=5)).get_params() == {"C": 1.0, "depth": 5}
    assert clone(HasField(depth=5)).get_params() == RankSVM().get_params() | {"depth": 5}


EXTREME = [RankSVM(C=1e308), RankSVMStruct(C=1e308), LambdaMART(3, learning_rate=1e308), AdditiveRLS(alpha=1e-320)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:.*stopped at")
@pytest.mark.parametrize("ranker", EXTREME, ids=repr)
def test_a_ranker_of_infinite_weights_is_refused(ranker):
    rng = np.random.default_rng(0)
    X, y, qid = rng.random((60, 4)), rng.integers(0, 3, 60), np.repeat(np.arange(6), 10)
    with pytest.raises(ValueError, match=rf"^{type(ranker).__name__}(:| scores row \d+ by).* scale the features,"):
        ranker.fit(X, y, qid=qid).predict(X)
