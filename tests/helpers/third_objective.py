"""An objective of a user: the number of training queries that a ranker hurts."""

from moerank.mofsrank.objectives import Objective


class QueriesHurt(Objective):
    """Queries whose metric is lower than with all features."""

    name = "hurt"
    title = "Queries hurt"

    def values(self, candidates):
        return (candidates.per_query < candidates.reference[:, None]).sum(axis=0)

    def bounds(self, data, n_var):
        return 0.0, float(data.n_queries)
