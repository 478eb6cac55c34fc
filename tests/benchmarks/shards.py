"""A search in shards on a Dask cluster: speed, bytes that travel, killed workers, and workers with little memory.

    python tests/benchmarks/shards.py [--queries 3000] [--shards 8] [--generations 10] [--kills 10] [--quick]

Workers of one thread each are started on this machine. Speed compares two of them with one, on the clock and by the
processor: where other work takes the cores, the thread that computes in the busiest worker, and that of the client, say
what the clock would, but for the messages. What two cores are worth here is measured by two loops beside one. Bytes are
those of the pickled messages to and from the worker that gets the most. Never fails a build.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter

import cloudpickle
import dask
import numpy as np
from distributed import LocalCluster, Status

import moerank as mr
from moerank.data.dask import DaskCluster, DaskShards
from moerank.data.embedded import make_web
from moerank.data.shards import cut_into_shards
from moerank.evolution import make_algorithm, search
from moerank.kernels.blas import one_blas_thread

TRAVELLED = Counter()
N_CALLS = Counter()


def count_bytes():
    """Count the bytes that go to each worker and come back from it."""
    submit, gathered = DaskCluster.submit, DaskShards._gathered

    def counted_submit(self, worker, function, *arguments):
        if function.__name__ == "_work":
            TRAVELLED[worker] += len(cloudpickle.dumps(arguments[1:]))
            N_CALLS[worker] += 1
        return submit(self, worker, function, *arguments)

    def counted_gathered(self, tasks):
        values = gathered(self, tasks)
        for worker, value in zip(tasks.values(), values, strict=True):
            TRAVELLED[worker] += len(pickle.dumps(value))
        return values

    DaskCluster.submit, DaskShards._gathered = counted_submit, counted_gathered


def generations(stage, n, report=None):
    with one_blas_thread():
        algorithm = make_algorithm("nsga2", 100, stage.operators(), stage.n_obj)
        return search(stage, algorithm, ("n_gen", n), seed=1, progress=report)


def seconds_of_threads():
    """Return the seconds that each thread of this process has had of the processor: one of them computes."""
    import psutil

    return {thread.id: thread.user_time + thread.system_time for thread in psutil.Process().threads()}


def measured(stage, n, cluster):
    """Return of n generations the seconds on the clock, of the client and of its busiest worker, and the bytes."""
    stage.operators()
    stage._known.clear()
    client = cluster.client
    generations(stage, 1)
    stage._known.clear()
    TRAVELLED.clear()
    N_CALLS.clear()
    before = client.run(seconds_of_threads)
    clock, own = time.perf_counter(), time.thread_time()
    generations(stage, n)
    clock, own = time.perf_counter() - clock, time.thread_time() - own
    after = client.run(seconds_of_threads)
    busiest = max(
        max(seconds - before[worker].get(thread, 0.0) for thread, seconds in threads.items())
        for worker, threads in after.items()
    )
    return clock / n, own / n, busiest / n, max(TRAVELLED.values()) / n, max(N_CALLS.values()) / n


def speed(data, arguments):
    rows = {}
    for n_workers in (1, 2):
        with (
            LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as local,
            DaskCluster(local.scheduler_address) as cluster,
        ):
            begin = time.perf_counter()
            train = cluster.scatter(data, arguments.shards)
            sent = time.perf_counter() - begin
            stage = mr.FeatureSelection(train, mr.RankRLS(alpha=0.01))
            rows[n_workers] = measured(stage, arguments.generations, cluster)
            clock, own, busiest, travelled, calls = rows[n_workers]
            print(
                f"FeatureSelection, RankRLS, {n_workers} worker{'s' * (n_workers > 1)}: {1000 * clock:.0f} ms a "
                f"generation on the clock; processor {1000 * busiest:.0f} ms of the busiest worker, "
                f"{1000 * own:.0f} ms of the client; {travelled / 2**20:.3f} MiB and {calls:.1f} calls to and from a "
                f"worker; sent in {sent:.1f} s",
                flush=True,
            )
            if n_workers == 2:
                kills(train, data, arguments, local)
                if not arguments.quick:
                    others(train, data, cluster)
    print(
        f"two workers against one: {rows[1][0] / rows[2][0]:.2f} times as fast on the clock, "
        f"{(rows[1][1] + rows[1][2]) / (rows[2][1] + rows[2][2]):.2f} by the processor (limit 1.7); "
        f"two loops that have nothing to do with each other are {2 * loops(2) / loops(1):.2f} times as fast as one here"
    )


def loops(n):
    """Return how many rounds of a loop each of n processes does in two seconds, side by side."""
    code = "import time\nn, end = 0, time.perf_counter() + 2\nwhile time.perf_counter() < end: n += 1\nprint(n)"
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(n)]
    return np.mean([int(process.communicate()[0]) for process in running])


def others(train, data, cluster):
    """Print what the other stages and backends cost a generation."""
    rng = np.random.default_rng(0)
    for title, make in {
        "FeatureSelection, RankSVM": lambda: mr.FeatureSelection(train, mr.RankSVM(C=5.0)),
        "InstanceSelection, RankRLS, queries": lambda: mr.InstanceSelection(
            train, mr.RankRLS(alpha=0.01), unit="query"
        ),
        "InstanceSelection, RankRLS, documents": lambda: mr.InstanceSelection(
            train, mr.RankRLS(alpha=0.01), unit="document"
        ),
        "Ensemble": lambda: mr.Ensemble(train, rng.normal(size=(20, data.n_features))),
    }.items():
        clock, own, busiest, travelled, calls = measured(make(), 2, cluster)
        print(
            f"{title}: {1000 * clock:.0f} ms a generation on the clock; processor {1000 * busiest:.0f} ms of the "
            f"busiest worker, {1000 * own:.0f} ms of the client; {travelled / 2**20:.3f} MiB and {calls:.1f} calls",
            flush=True,
        )


def kills(train, data, arguments, local):
    """Kill a worker at random again and again in one search, and compare its result with that of one process."""
    rng, seconds, killed = random.Random(0), [], [0]

    def kill(fraction, generation, n_eval):
        seconds.append(time.perf_counter())
        if generation % 4 == 2 and killed[0] < arguments.kills:
            # A nanny gives up where its worker dies before it has begun, some time after its registration.
            while not (
                there := [n for n in local.workers.values() if n.process and n.process.status == Status.running]
            ):
                time.sleep(0.1)
            threading.Timer(rng.random() * 0.1, os.kill, (rng.choice(there).process.process.pid, 9)).start()
            killed[0] += 1

    n = 4 * arguments.kills + 4
    there = generations(mr.FeatureSelection(train, mr.RankRLS(alpha=0.01)), n, kill)
    here = generations(mr.FeatureSelection(cut_into_shards(data, arguments.shards), mr.RankRLS(alpha=0.01)), n)
    same = np.array_equal(there.archive.F, here.archive.F)
    steps = np.diff(seconds)
    print(
        f"{killed[0]} workers killed in {n} generations: the longest took {steps.max():.1f} s, the median "
        f"{np.median(steps):.2f} s; the front is {'the same to the bit' if same else 'ANOTHER'}",
        flush=True,
    )


def memory(arguments):
    """Run on workers with less and less memory: each run ends well, or in a sentence."""
    data = make_web(arguments.queries // 2)
    for limit in ("1000MiB", "420MiB", "380MiB", "330MiB", "280MiB"):
        with (
            LocalCluster(2, threads_per_worker=1, dashboard_address=None, memory_limit=limit) as local,
            DaskCluster(local.scheduler_address) as cluster,
        ):
            try:
                train = cluster.scatter(data, arguments.shards)
                generations(mr.FeatureSelection(train, mr.RankRLS(alpha=0.01)), 4)
                print(f"{limit} for each worker: the search ends well", flush=True)
            except OSError as error:
                print(f"{limit} for each worker: {error}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--generations", type=int, default=10)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="leave out the other stages and backends")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})  # else one that has died twice is left out
    count_bytes()
    data = make_web(arguments.queries)
    n_bytes = data.X.nbytes / arguments.shards
    print(f"{data.n_documents:,} documents, {arguments.shards} shards of {n_bytes / 2**20:.0f} MiB")
    speed(data, arguments)
    memory(arguments)


if __name__ == "__main__":
    main()
