"""What a web search data set of millions of documents costs: time of the processor, time on the clock, peak memory.

    python tests/benchmarks/web.py [--queries 3153] [--generations 10] [--workers 2] [--peers] [--stages]

Each row runs in a process of its own, on the data of `make_web`; 31531 queries are the size of MSLR-WEB30K. The search
runs the generations that are asked for and is written for a hundred of them, too: what comes before the first is paid
once, and later generations have fewer features and cost less. With --stages MOFSRank runs as a whole, on queries as
instances and ten subsets of them: 22 minutes are its limit at full size. With
--peers LightGBM's lambdarank (255 leaves, 25 trees) is trained on the same data, and what it takes is compared with
10,000 subsets of the search in the same process. A last row trains RankRLS on the sample of MSLR in the folder that the
environment variable MOERANK_DATA names, scaled in single and in double precision. Never fails a build.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import moerank as mr
from moerank.data import fit_scaling
from moerank.data.folds import make_web
from moerank.training.pair_moments import PairMoments

ROWS = {
    "RankRLS, all features": "one RankRLS().fit, the data in memory",
    "RankSVM, every C of the grid": "RankSVM().tune with all features, the data in memory",
    "100 metrics": "NDCG@10 of 100 rankers of 3 to 40 features",
    "start of the search": "operators of FeatureSelection and the Gram matrix, before the first generation",
    "search": "FeatureSelection, population 100, RankRLS, NDCG@10, data and operators included",
    "search with RankSVM": "the same with RankSVM(C=5)",
    "query instances": "50 generations of InstanceSelection on queries would take",
}
STAGES = "three stages"
PEER = "LightGBM, 25 trees"
SAMPLE = "MSLR sample"
LIMIT = 1e-5
"""The largest relative difference of weights that single precision may make."""


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


def peer(data):
    import lightgbm

    groups = np.diff(data.offsets)
    begin = processor_seconds()
    lightgbm.LGBMRanker(n_estimators=25, num_leaves=255, n_jobs=1, verbose=-1).fit(data.X, data.y, group=groups)
    return processor_seconds() - begin


def compare_with_trees(data, backend, generations, workers):
    trees = peer(data)
    begin = processor_seconds()
    search(mr.FeatureSelection(data, backend, workers=workers), generations)
    subsets = 100 / generations * (processor_seconds() - begin)
    print(
        f"{PEER} of 255 leaves: {trees:.1f} s of the processor; 10,000 subsets, from {generations} generations: "
        f"{subsets:.0f} s, the time of {25 * subsets / trees:.0f} trees (limit 25)"
    )


def compare_precisions():
    """Print by how much the weights of RankRLS on the sample of MSLR differ that single precision has."""
    folder = os.environ.get("MOERANK_DATA")
    if folder is None or not Path(folder, "MSLR").is_dir():
        print(f"{SAMPLE}: not there; MOERANK_DATA names the folder with the folder MSLR")
        return
    for kind in ("query", "minmax", "standard"):
        weights = []
        for dtype in (np.float64, np.float32):
            train = mr.load_fold(Path(folder, "MSLR", "Fold1"), dtype=dtype)[0]
            scaled = mr.query_level_norm(train) if kind == "query" else fit_scaling(train, kind).apply(train)
            weights.append(mr.RankRLS(alpha=0.01).fit(scaled).coef_)
        double, single = weights
        difference = np.abs(single - double).max() / np.abs(double).max()
        print(f"{SAMPLE}, scaled by {kind}: weights differ by {difference:.1e} of the largest (limit {LIMIT:.0e})")


def run(row, n_queries, generations, workers):
    if row == SAMPLE:
        compare_precisions()
        return
    warm = make_web(20)  # kernels are compiled or read, and libraries imported
    backend = mr.RankRLS(alpha=0.01).fit(warm)
    search(mr.FeatureSelection(warm, backend), 2)
    backend.fit_population(warm, pair_mask=np.ones((2, 20), bool), unit="query")
    search(mr.FeatureSelection(warm, mr.RankSVM(C=5.0)), 2)
    mr.RankSVM().tune(warm, warm)
    begin = processor_seconds(), time.perf_counter()
    data = make_web(n_queries)
    made = processor_seconds() - begin[0], time.perf_counter() - begin[1]
    rng = np.random.default_rng(0)
    if row == PEER:
        compare_with_trees(data, backend, generations, workers)
        return
    if row == "RankRLS, all features":
        cost = timed(lambda: mr.RankRLS(alpha=0.01).fit(anew(data)), times=2)
    elif row == "RankSVM, every C of the grid":
        cost = timed(lambda: mr.RankSVM().tune(anew(data), warm))
    elif row == STAGES:
        cost = timed(lambda: mr.MOFSRank(backend, random_state=0, workers=workers).fit(data))
    elif row == "100 metrics":
        W, metric = random_rankers(data.n_features, rng), mr.NDCG(10)
        metric.mean_of_linear(data, W[:1])
        cost = timed(lambda: metric.mean_of_linear(data, W), times=3)
    elif row == "start of the search":
        print(f"{row}: the data were made in {made[0]:.2f} s of the processor, {made[1]:.2f} s on the clock")
        cost = timed(lambda: start(mr.FeatureSelection(anew(data), backend, workers=workers)))
    elif row in ("search", "search with RankSVM"):
        stage = mr.FeatureSelection(data, backend if row == "search" else mr.RankSVM(C=5.0), workers=workers)
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
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        run(arguments.row, arguments.queries, arguments.generations, arguments.workers)
        return
    for row in [*ROWS, *([STAGES] if arguments.stages else []), *([PEER] if arguments.peers else []), SAMPLE]:
        settings = [f"--{name}={getattr(arguments, name)}" for name in ("queries", "generations", "workers")]
        subprocess.run([sys.executable, __file__, f"--row={row}", *settings], check=True)


if __name__ == "__main__":
    main()
