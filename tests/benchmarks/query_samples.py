"""What a search on a sample of the queries loses against the search on all of them.

    python tests/benchmarks/query_samples.py [--queries 10000] [--evaluations 5000] [--seeds 3]

The staircase search with RankRLS selects features of `make_web` on 5, 10, 25 and 100 % of the training queries. From
each front the member with the least training error of at most k features is taken. RankRLS is trained anew on its
features with all training queries, and measured on the test queries. Differences from the search on all queries are
paired by query after the mean over the seeds; each seed draws other queries. Seconds are of the processor. Never fails
a build.
"""

from __future__ import annotations

import time

import frame
import numpy as np
from pymoo.optimize import minimize

import moerank as mr
from moerank.data.folds import of_queries
from moerank.evolution import make_algorithm

SHARES = (0.05, 0.1, 0.25, 1.0)
SIZES = (5, 10, 20, 40)
METRIC = mr.NDCG(10)


def front(train, alpha, n_evaluations, seed):
    """Return the strings and objectives of the front of a search on `train`."""
    stage = mr.FeatureSelection(train, mr.RankRLS(alpha=alpha), METRIC)
    algorithm = make_algorithm("staircase", 100, stage.operators())
    result = minimize(stage, algorithm, ("n_eval", n_evaluations), seed=seed)
    return np.atleast_2d(result.X), np.atleast_2d(result.F)


def test_values(train, test, alpha, X, F):
    """Return NDCG@10 (n_sizes, n_queries) on test queries of the best member of each size, trained on all queries."""
    chosen = [X[np.where(F[:, 0] <= k, F[:, 1], np.inf).argmin()] for k in SIZES]
    W = mr.RankRLS(alpha=alpha).fit_population(train, feature_mask=np.array(chosen))
    return METRIC.of_linear(test, W).T


def main():
    arguments = frame.arguments(__doc__, queries=10_000, evaluations=5_000, seeds=3)
    train, vali, test = mr.load_web_fold(1, n_queries=arguments.queries)
    alpha = mr.RankRLS().tune(train, vali).alpha
    values, seconds = {}, {}
    for share in SHARES:
        own, begin = [], time.process_time()
        for seed in range(arguments.seeds):
            drawn = np.sort(np.random.default_rng(seed).permutation(train.n_queries)[: round(share * train.n_queries)])
            part = train if share == 1 else of_queries(train, drawn)
            own.append(front(part, alpha, arguments.evaluations, seed))
        seconds[share] = (time.process_time() - begin) / arguments.seeds
        values[share] = np.mean([test_values(train, test, alpha, *each) for each in own], axis=0)
    print(f"{train.n_documents:,} training documents, {train.n_queries:,} queries; test NDCG@10 of at most k features")
    for share in SHARES:
        cells = []
        for k, own, whole in zip(SIZES, values[share], values[1.0], strict=True):
            difference = own - whole
            error = difference.std(ddof=1) / np.sqrt(len(difference))
            cells.append(f"k = {k}: {own.mean():.4f}" + (f" ({difference.mean():+.4f} ± {error:.4f})" * (share < 1)))
        print(f"{100 * share:3.0f} % of the queries, {seconds[share]:5.1f} s:  " + "   ".join(cells))


if __name__ == "__main__":
    main()
