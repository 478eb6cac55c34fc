import numpy as np
import pytest

from moerank.data import RankingData, load_planted_fold
from moerank.metrics import NDCG
from moerank.rankers import RankRLS
from moerank.studies.problem import make_problem
from moerank.studies.run_fold import run_fold


def weighted(data, seed):
    weights = np.random.default_rng(seed).integers(1, 9, data.n_queries)
    return RankingData(data.X, data.y, data.qid, data.given_names, name=data.name, query_weights=weights)


@pytest.fixture(scope="module")
def parts():
    plain = load_planted_fold(1, n_queries=60, n_documents=10)
    return [weighted(part, number) for number, part in enumerate(plain)]


def test_a_run_says_weighted_means(parts):
    settings = {"comparison.trees": 0, "metric.name": "NDCG@5", "backend.tune": False}
    result = run_fold(make_problem("mine", tuple(parts), settings), solver="rankrls[alpha=0.5]", seed=2)
    ranker = RankRLS(alpha=0.5).fit(parts[0])
    for name, part in zip(("train", "validation", "test"), parts, strict=True):
        values = NDCG(5).per_query(part, part.X @ ranker.coef_)
        mean = values @ part.query_weights / part.query_weights.sum()
        assert abs(mean - values.mean()) > 1e-4
        assert result.best.scores[name]["NDCG@5"] == pytest.approx(mean, abs=1e-12)
        assert np.mean(result.best.per_query[name]["NDCG@5"]) == pytest.approx(mean, abs=1e-12)
        assert result.best.further[name]["NDCG@3"] == pytest.approx(
            NDCG(3).per_query(part, part.X @ ranker.coef_) @ part.query_weights / part.query_weights.sum(), abs=1e-12
        )
