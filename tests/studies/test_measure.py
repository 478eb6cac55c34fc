"""The error on the training part is measured once, whether the rankers have weights or not, and has the same bits."""

import numpy as np
import pytest

from moerank.metrics import MAP, NDCG
from moerank.mofsrank.objectives import errors_of, read_objectives
from moerank.rankers import LinearPopulation, RankRLS
from moerank.studies.run_fold import Measure

METRICS = (NDCG(10), MAP())


class WithoutWeights:
    """Rankers that show their scores alone."""

    coefs = None

    def __init__(self, population):
        self.population = population

    def __len__(self):
        return len(self.population)

    def scores(self, X):
        return self.population.scores(X)

    def take(self, rows):
        return WithoutWeights(self.population.take(rows))


@pytest.mark.parametrize("kind", [LinearPopulation, lambda W: WithoutWeights(LinearPopulation(W))])
def test_the_error_is_that_of_the_search_to_the_bit_and_measured_once(parts, kind, monkeypatch):
    train = parts["train"]
    rng = np.random.default_rng(0)
    support = rng.random((37, train.n_features)) < 0.4
    population = kind(rng.normal(size=support.shape) * support)
    errors = errors_of(train, METRICS[0], population)
    measured = []

    def counted(owner, name):
        original = getattr(owner, name)

        def count(metric, data, rankers):
            measured.append((metric, data))
            return original(metric, data, rankers)

        return count

    for name in ("of_linear", "per_query", "batch"):
        owner = next(kind for kind in type(METRICS[0]).__mro__ if name in vars(kind))
        monkeypatch.setattr(owner, name, counted(owner, name))
    measure = Measure(parts, METRICS, read_objectives(("features", "error")), RankRLS())
    rankers = measure.measured("some", population, support)
    assert [ranker.objectives["error"] for ranker in rankers] == errors.tolist()
    assert [ranker.objectives["features"] for ranker in rankers] == support.sum(axis=1).tolist()
    assert sum(metric == METRICS[0] and data is train for metric, data in measured) == 1
