"""What rankers refuse and warn of, in which words; nonsense parameters of any kind are tested for all solvers alike."""

import numpy as np
import pytest
from helpers.returning import Columns, Returns
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import moerank as mr
from moerank.rankers import as_backend, require_sums, train_population, with_features

BUDGET = {"generations": 2, "population": 8}
SHORT = {"instance_selection": BUDGET, "feature_selection": BUDGET, "ensemble": BUDGET, "random_state": 0}
NO_PAIR = mr.RankingData([[0.1], [0.9], [0.5], [0.4]], [0, 1, 1, 1], [1, 1, 2, 2])
TINY = mr.RankingData([[1e-200, 0.0], [3e-200, 1e-300]], [0, 1], [0, 0], name="mine")


def weighted(data):
    weights = {"query_weights": 1 + np.arange(data.n_queries), "document_weights": 1 + np.arange(data.n_documents)}
    return mr.RankingData(data.X, data.y, data.qid, **weights)


def returned(what, data):
    return train_population(Returns(what), data, feature_mask=np.ones((4, data.n_features), bool))


def kept(ranker, data, unit, n=1):
    size = {"pair": data.n_pairs, "document": data.n_documents, "query": data.n_queries}[unit]
    return ranker.fit_population(data, pair_mask=np.ones((n, size), bool), unit=unit)


class Negated(mr.RankRLS):
    def predict(self, X):
        return -super().predict(X)


class NoNumbers(Ridge):
    def predict(self, X):
        return np.where(np.arange(len(X)) == 5, np.nan, super().predict(X))


NOT_A_BACKEND = "backend must be a ranker with fit_population, or with fit"
NO_WEIGHTS = "{} takes no weights of queries or documents. Use RankRLS or LambdaMART"
QUERIES_ONLY = r"no pair_mask of pairs or documents; .* or select queries"
NO_PAIRS = r"AdditiveRLS takes no pair_mask of pairs\. Select queries"
KEEPS_NO_PAIR = "row 0 of the mask keeps no preference pair to train on"
PAIRS, LAST_TWO, SECOND = np.ones((1, 2552), bool), np.array([False, False, True, True]), np.array([False, True])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda data: mr.RankSVM(C=0.0).fit(data), r"^C must be positive, not 0\.0$"),
        (lambda data: mr.AdditiveRLS(n_bins=256).fit(data), "^n_bins must be at most 255, not 256$"),
        (
            lambda data: mr.GreedyRankRLS().fit(1e8 * data.X[:40, :3], data.y[:40], qid=0),
            "alpha=1 is too small next to .* larger alpha, or scale the features",
        ),
        (lambda data: mr.ListNet(n_epochs=0).fit(data), "^n_epochs must be at least 1, not 0$"),
        (lambda data: mr.LambdaMART(n_leaves=1).fit(data), "^n_leaves must be at least 2, not 1$"),
        (lambda data: mr.BaggedLambdaMART(query_share=0.0).fit(data), r"^query_share must be in \(0, 1\], not 0\.0$"),
        (
            lambda data: mr.FSMRank(similarity="kendal").fit(data),
            "similarity must be one of .*; did you mean 'kendall'",
        ),
        (lambda data: mr.FSMRank(similarity={"a": 1}).fit(data), "numbers or a function, not {'a': 1}"),
        (lambda data: mr.FSMRank(similarity=np.triu(np.ones((12, 12)))).fit(data), "0 or more and symmetric"),
        (lambda data: mr.FSMRank(importance="losses").fit(data), "a Metric or .* one: unknown metric 'losses'"),
        (lambda data: mr.FSMRank(importance=np.ones(3)).fit(data), r"shape \(3,\); give it \(12,\), because"),
        (lambda data: mr.FSMRank(importance=[-1.0] * 12).fit(data), "importance must be finite, 0 or more"),
        (
            lambda data: mr.RankSVM().fit([[0.1], [0.1], [0.7], [0.7]], [0, 1, 0, 1], qid=[1, 1, 2, 2]),
            "nothing to rank",
        ),
        (lambda data: mr.SVMMAP().fit([[0.1], [0.4], [0.3]], [1, 2, 1], qid=0), "no query has both relevant documents"),
        *((lambda data, no=no: as_backend(no), NOT_A_BACKEND) for no in (5, StandardScaler(), Ridge, mr.RankSVM)),
        (
            lambda data: mr.RankerAdapter(Ridge()).fit_population(data, pair_mask=PAIRS),
            "Ridge is trained on documents.*",
        ),
        (lambda data: returned(np.zeros((3, 12)), data), r"shape \(4, 12\), .* not ndarray of shape \(3, 12\)"),
        (lambda data: returned("weights", data), r"Returns.fit_population .* scores\(X\), not str of shape"),
        (
            lambda data: require_sums(returned(Columns(3), data), mr.RankerAdapter(DecisionTreeRegressor())),
            r"^DecisionTreeRegressor has no weights \(coef_\).* ensemble=False",
        ),
        (lambda data: mr.RankRLS().leave_query_out([[1.0], [2.0], [3.0]], [0, 1, 0], qid=[1, 1, 2]), "nothing is left"),
        (lambda data: kept(mr.RankRLS(loss="query"), data, "pair"), QUERIES_ONLY),
        (lambda data: kept(mr.RankRLS(loss="query"), data, "document"), QUERIES_ONLY),
        (lambda data: mr.RankRLS().default_grid(TINY), "mine: .* too small to square: .* 3e-200; scale"),
        (lambda data: mr.RankRLS().fit_population(NO_PAIR, pair_mask=LAST_TWO, unit="document"), KEEPS_NO_PAIR),
        (lambda data: mr.RankRLS().fit_population(NO_PAIR, pair_mask=LAST_TWO[None], unit="document"), KEEPS_NO_PAIR),
        (lambda data: mr.RankRLS().fit_population(NO_PAIR, pair_mask=SECOND, unit="query"), KEEPS_NO_PAIR),
        (lambda data: mr.RankRLS().fit_population(NO_PAIR, pair_mask=SECOND[None], unit="query"), KEEPS_NO_PAIR),
        (lambda data: kept(mr.RankRLS(), weighted(data), "pair", 2), "RankRLS takes no weights .* Select queries"),
        (lambda data: kept(mr.RankRLS(), weighted(data), "document", 2), "RankRLS takes no weights .* Select queries"),
        (lambda data: kept(mr.AdditiveRLS(), data, "pair", 2), NO_PAIRS),
        (lambda data: mr.MOFSRank(mr.AdditiveRLS(), instance_selection={"unit": "pair"}).fit(data), NO_PAIRS),
        (lambda data: mr.ListNet().fit(weighted(data)), NO_WEIGHTS.format("ListNet")),
        (lambda data: mr.RankSVM().fit(weighted(data)), NO_WEIGHTS.format("RankSVM")),
        (lambda data: mr.RankSVM().fit_population(weighted(data)), NO_WEIGHTS.format("RankSVM")),
        (lambda data: mr.RankSVM().tune(weighted(data), data), NO_WEIGHTS.format("RankSVM")),
        (lambda data: mr.FSMRank().tune(weighted(data), data), NO_WEIGHTS.format("FSMRank")),
        (
            lambda data: mr.SingleFeatures().fit(weighted(data)),
            NO_WEIGHTS.format("SingleFeatures with its default ranker") + " as its ranker, or",
        ),
        (lambda data: mr.MOFSRank(mr.RankSVM(), **SHORT).fit(weighted(data)), NO_WEIGHTS.format("RankSVM")),
        (lambda data: mr.RankerAdapter(Ridge()).fit_population(weighted(data)), NO_WEIGHTS.format("Ridge")),
        (lambda data: mr.MOFSRank(refit=Ridge(), **SHORT).fit(weighted(data)), NO_WEIGHTS.format("Ridge")),
        (lambda data: Negated().fit(data), r"^Negated.predict differs from its _scores, .* Change _scores alone$"),
        (lambda data: with_features(NoNumbers()).fit(data), "^NoNumbers scores row 5 by nan"),
        (lambda data: mr.RankerAdapter(NoNumbers()).fit_population(data), "^NoNumbers scores row 5 by nan"),
    ],
)
def test_what_is_refused(noisy_data, call, message):
    with pytest.raises(ValueError, match=message):
        call(noisy_data)


HARD = np.random.default_rng(0).random((60, 4)) * [1e-8, 1.0, 1e4, 1e8]


@pytest.mark.filterwarnings("ignore:.*the scales of the features differ", "ignore:RankSVMStruct found no feature")
@pytest.mark.parametrize(
    ("ranker", "X", "message"),
    [
        (mr.RankSVM(5e6), None, r"stopped at \d+ Newton steps before the minimum for C=5e\+06; lower C"),
        (mr.FSMRank(max_iter=2, tol=1e-9), None, "FSMRank stopped at max_iter=2 steps.*; raise max_iter or tol"),
        (mr.FSMRank(lambda2=10.0), None, "FSMRank found no feature to rank by.*; a smaller lambda2"),
        (mr.RankSVMStruct(C=10.0, max_iter=2), None, "RankSVMStruct stopped within .* after max_iter=2 .*; raise"),
        (mr.RankSVMStruct(C=10.0), HARD, "rounding allows no better .*; scale them"),
    ],
)
def test_what_did_not_converge_is_told_with_its_remedy(noisy_data, ranker, X, message, monkeypatch):
    monkeypatch.setattr("moerank.training.pairs.EXACT_STEPS", 1)
    X, y = (noisy_data.X, noisy_data.y) if X is None else (X, np.arange(60) % 3)
    qid = noisy_data.qid if len(X) != 60 else 0
    with pytest.warns(ConvergenceWarning, match=message):
        ranker.fit(X, y, qid=qid)
