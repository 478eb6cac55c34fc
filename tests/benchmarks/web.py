"""What a web search data set of millions of documents costs: time of the processor, time on the clock, peak memory.

    python tests/benchmarks/web.py [--queries 3153] [--generations 10] [--workers 2]

Each row runs in a process of its own, on the data of `make_web`; 31531 queries are the size of MSLR-WEB30K. Never fails
a build.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import frame
import numpy as np

import moerank as mr
from moerank.data.folds import make_web
from moerank.training.pair_moments import PairMoments

ROWS = {
    "RankRLS, all features": "one RankRLS().fit, the data in memory",
    "RankSVM, every C of the grid": "RankSVM().tune with all features, the data in memory",
    "100 metrics": "NDCG@10 of 100 rankers of 3 to 40 features",
    "start of the search": "operators of FeatureSelection and the Gram matrix, before the first generation",
    "search": "FeatureSelection, population 100, RankRLS, NDCG@10, data and operators included",
}


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def timed(work, *, times=1):
    """Return the processor's and the clock's seconds of the fastest of some runs."""
    seconds = []
    for _ in range(times):
        begin = processor_seconds(), time.perf_counter()
        work()
        seconds.append((processor_seconds() - begin[0], time.perf_counter() - begin[1]))
    return min(seconds)


def random_rankers(n_features, rng):
    W = np.zeros((100, n_features))
    for w in W:
        chosen = rng.choice(n_features, rng.integers(3, 41), replace=False)
        w[chosen] = rng.normal(size=len(chosen))
    return W


def anew(data):
    """Return the same data, of which nothing has been computed yet."""
    return mr.RankingData(data.X, data.y, data.qid, data.feature_names)


def start(stage):
    stage.operators()
    PairMoments.of(stage.train)


def search(stage, generations):
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.optimize import minimize

    minimize(stage, NSGA2(100, **stage.operators()), ("n_gen", generations), seed=1)


def run(row, n_queries, generations, workers):
    warm = make_web(20)  # kernels are compiled or read, and libraries imported
    backend = mr.RankRLS(alpha=0.01).fit(warm)
    search(mr.FeatureSelection(warm, backend), 2)
    mr.RankSVM().tune(warm, warm)
    data = make_web(n_queries)
    if row == "RankRLS, all features":
        cost = timed(lambda: mr.RankRLS(alpha=0.01).fit(anew(data)), times=2)
    elif row == "RankSVM, every C of the grid":
        cost = timed(lambda: mr.RankSVM().tune(anew(data), warm))
    elif row == "100 metrics":
        W, metric = random_rankers(data.n_features, np.random.default_rng(0)), mr.NDCG(10)
        metric.mean_of_linear(data, W[:1])
        cost = timed(lambda: metric.mean_of_linear(data, W), times=3)
    elif row == "start of the search":
        cost = timed(lambda: start(mr.FeatureSelection(anew(data), backend, workers=workers)))
    else:
        stage = mr.FeatureSelection(data, backend, workers=workers)
        cost = timed(lambda: search(stage, generations))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{row} ({data.n_documents:,} documents): {cost[0]:.2f} s of the processor, {cost[1]:.2f} s on the clock, "
        f"peak {peak:.2f} GiB"
    )


def main():
    arguments = frame.arguments(__doc__, queries=3153, generations=10, workers=2, row="")
    if arguments.row:
        run(arguments.row, arguments.queries, arguments.generations, arguments.workers)
        return
    for row in ROWS:
        settings = [f"--{name}={getattr(arguments, name)}" for name in ("queries", "generations", "workers")]
        subprocess.run([sys.executable, __file__, f"--row={row}", *settings], check=True)


if __name__ == "__main__":
    main()
