"""What a web search data set of millions of documents costs: time of the processor, time on the clock, peak memory.

    python tests/benchmarks/web.py [--queries 3153] [--generations 10] [--workers 2] [--peers]

Each row runs in a process of its own, on the data of `make_web`; 31531 queries are the size of MSLR-WEB30K. The search
runs the generations that are asked for and is written for a hundred of them, too: its cost grows in proportion. With
--peers LightGBM's lambdarank (255 leaves, 25 trees) is trained on the same data. Never fails a build.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

import moerank as mr
from moerank.data.web import make_web

ROWS = {
    "RankRLS, all features": "one RankRLS().fit, the data in memory",
    "100 metrics": "NDCG@10 of 100 rankers of 3 to 40 features",
    "search": "FeatureSelection, population 100, RankRLS, NDCG@10, data and operators included",
    "query instances": "50 generations of InstanceSelection on queries would take",
}
PEER = "LightGBM, 25 trees"


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


def search(stage, generations):
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.optimize import minimize

    minimize(stage, NSGA2(100, **stage.operators()), ("n_gen", generations), seed=1)


def peer(data):
    import lightgbm

    groups = np.diff(data.offsets)
    begin = processor_seconds()
    lightgbm.LGBMRanker(n_estimators=25, num_leaves=255, n_jobs=1, verbose=-1).fit(data.X, data.y, group=groups)
    return processor_seconds() - begin


def run(row, n_queries, generations, workers):
    warm = make_web(20)  # kernels are compiled or read, and libraries imported
    backend = mr.RankRLS(alpha=0.01).fit(warm)
    search(mr.FeatureSelection(warm, backend), 2)
    backend.fit_queries(warm, np.ones((2, 20), bool))
    begin = processor_seconds(), time.perf_counter()
    data = make_web(n_queries)
    made = processor_seconds() - begin[0], time.perf_counter() - begin[1]
    rng = np.random.default_rng(0)
    if row == PEER:
        print(f"{row}: {peer(data):.1f} s of the processor")
        return
    if row == "RankRLS, all features":
        cost = timed(lambda: mr.RankRLS(alpha=0.01).fit(make_web(n_queries)) and None)
        cost = cost[0] - made[0], cost[1] - made[1]
    elif row == "100 metrics":
        W, metric = random_rankers(data.n_features, rng), mr.NDCG(10)
        metric.mean_of_linear(data, W[:1])
        cost = timed(lambda: metric.mean_of_linear(data, W), times=3)
    elif row == "search":
        stage = mr.FeatureSelection(data, backend, workers=workers)
        cost = timed(lambda: search(stage, generations))
        per = (cost[0] / generations, cost[1] / generations)
        print(f"{row}: a hundred generations {100 * per[0]:.0f} s of the processor, {100 * per[1]:.0f} s on the clock")
    else:
        stage = mr.InstanceSelection(data, backend, unit="query", workers=workers)
        stage.evaluate(rng.random((1, stage.n_var)) < 0.5)
        cost = timed(lambda: stage.evaluate(rng.random((100, stage.n_var)) < 0.3))
        print(f"{row}: {50 * cost[0]:.0f} s of the processor, {50 * cost[1]:.0f} s on the clock")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{row} ({data.n_documents:,} documents): {cost[0]:.2f} s of the processor, {cost[1]:.2f} s on the clock, "
        f"peak {peak:.2f} GiB"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=3153)
    parser.add_argument("--generations", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        run(arguments.row, arguments.queries, arguments.generations, arguments.workers)
        return
    for row in [*ROWS, *([PEER] if arguments.peers else [])]:
        settings = [f"--{name}={getattr(arguments, name)}" for name in ("queries", "generations", "workers")]
        subprocess.run([sys.executable, __file__, f"--row={row}", *settings], check=True)


if __name__ == "__main__":
    main()
