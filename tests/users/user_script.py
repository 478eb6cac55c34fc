"""What a user writes, as in the README: it has no error under mypy, and it runs."""

import numpy as np
from numpy.typing import NDArray

import moerank as mr
from moerank.rankers import FitnessBackend, Population, RankerAdapter, train_population


class Ridge:
    """A backend of the user's own."""

    def fit_population(
        self,
        train: mr.RankingData,
        *,
        pair_mask: NDArray[np.bool_] | None = None,
        feature_mask: NDArray[np.bool_] | None = None,
        start: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        return mr.RankRLS(alpha=0.5).fit_population(train, pair_mask=pair_mask, feature_mask=feature_mask)


class Mean:
    """A ranker of the user's own, without weights."""

    def fit(self, X: NDArray[np.float64], y: NDArray[np.int64]) -> "Mean":
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(X.mean(axis=1))

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return {}


def main() -> None:
    train, vali, test = mr.load_planted_fold(1, n_queries=10, n_documents=12)
    ranker = mr.RankSVM(C=1.0).fit(train.X, train.y, qid=train.qid)
    scores = ranker.predict(test.X)
    x: float = mr.NDCG(10).score(test, scores)
    per_query: NDArray[np.float64] = mr.MAP().per_query(test, scores)
    listed: float = mr.make_metric("P@5", discount="letor").score(test, [0.0] * test.n_documents) if x < 0 else x
    assert len(per_query) == test.n_queries and listed == x

    same: mr.RankSVM = mr.RankSVM().tune(train, vali, metric="NDCG@5").fit(train, validation=vali)
    again: float = mr.MAP().score(test, same.predict(test))
    weights: NDArray[np.float64] = same.coef_
    support: NDArray[np.bool_] = same.support_
    assert weights.shape == support.shape and 0 <= again <= 1
    columns: NDArray[np.float64] = same.transform(test)
    names: list[str] = list(same.get_feature_names_out())
    indices: NDArray[np.int64] = same.get_support(indices=True)
    assert columns.shape[1] == len(names) == len(indices)

    exact = mr.RankRLS(alpha=1.0, loss="pair", target="difference").fit(train).predict(train)
    assert 0 <= mr.NDCG(10, gain="linear").score(train, exact) <= 1

    backends: list[FitnessBackend] = [mr.RankRLS(), mr.RankSVM(), mr.FSMRank(), RankerAdapter(Mean()), Ridge()]
    for backend in backends:
        population: Population = train_population(backend, train)
        table: NDArray[np.float64] = population.scores(test.X)
        means: NDArray[np.float64] = mr.NDCG(10).batch(test, table)
        assert len(means) == len(population) == 1
    problem = mr.FeatureSelection(train, backend=Ridge(), metric=mr.NDCG(10))
    assert problem.evaluate(np.ones((1, train.n_features), bool)).shape == (1, 2)

    chosen = mr.GAS(5, ranker=mr.RankRLS(), importance="measure", metric="MAP")
    chosen.fit(train.X, train.y, qid=train.qid, validation=(vali.X, vali.y, vali.qid))
    path = chosen.path(train)
    assert path.scores(test.X).shape == (test.n_documents, train.n_features)
    own: float = chosen.score(test.X, test.y, qid=test.qid)
    assert own == mr.MAP().score(test, chosen.predict(test)) and callable(mr.MAP().scorer())
    adapted = mr.MOFSRank(Mean(), instance_selection=False, ensemble=False)
    assert adapted.set_params(feature_selection__generations=2).get_params()["feature_selection__generations"] == 2
    trees = mr.SingleFeatures(5, ranker=Mean()).fit(train)
    assert np.isfinite(mr.NDCG(10).score(test, trees.predict(test)))

    budget = {"population": 8, "generations": 2}
    solver = mr.MOFSRank(
        mr.RankSVM(),
        instance_selection=budget,
        feature_selection=budget,
        ensemble=budget,
        refit=mr.LambdaMART(5),
        tune=False,
        random_state=0,
    )
    solver.fit(train.X, train.y, qid=train.qid, validation=vali)
    final: float = mr.MAP().score(test, mr.make_solver("fsmrank", lambda1=1e-3).fit(train).predict(test.X))
    assert 0 <= final <= 1 and len(solver.predict(test.X)) == test.n_documents
