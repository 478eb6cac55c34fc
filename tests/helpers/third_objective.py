"""An objective of a user: the number of training queries that a ranker hurts."""

from moerank.mofsrank.objectives import Objective
from moerank.rankers import train_population


class QueriesHurt(Objective):
    """Queries whose metric is lower than with all features."""

    name = "hurt"
    title = "Queries hurt"

    def values(self, candidates):
        data, metric = candidates.data, candidates.metric

        def baseline():
            return metric.per_query(data, train_population(candidates.backend, data).scores(data.X))

        return (candidates.per_query < data.remember((metric, repr(candidates.backend)), baseline)).sum(axis=0)

    def bounds(self, data, n_var):
        return 0.0, float(data.n_queries)
