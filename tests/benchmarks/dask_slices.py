"""Searches on the workers of a Dask cluster of this machine, against the same search without it.

    python tests/benchmarks/dask_slices.py [--parts kills speed] [--kills 20] [--queries 4820]

"kills" ends a running worker in every second generation of one search, until so many are dead; Dask starts others in
their place. "speed" measures batches of feature subsets of synthetic data of the shape of MSLR-WEB30K by one worker and
by two, and prints the processor seconds of the longest worker, the least of several times. Exit code 1 if bits differ.
"""

import os
import random
import signal
import sys
import threading
import time

import dask
import frame
import numpy as np
from distributed import Client, LocalCluster, Status

import moerank as mr
from moerank.mofsrank.dask_slices import Slices


def cluster(n_workers):
    dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})  # else slow starts count as losses
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None)


def front(train, workers, progress=None, **budget):
    solver = mr.MOFSRank(
        instance_selection=False, feature_selection=budget, ensemble=False, random_state=0, workers=workers,
        progress=progress,
    )  # fmt: skip
    return solver.fit(train).fronts_["feature_selection"]


def kills(options):
    """Kill running workers only: Dask does not always start one again that dies while it starts."""
    train, draws, killed = mr.load_planted_fold(1)[0], random.Random(0), []
    budget = {"population": 100, "generations": 2 * options.kills + 5}

    def running():
        started = [nanny for nanny in local.workers.values() if nanny.process.status == Status.running]
        return [nanny.pid for nanny in started if nanny.status == Status.running and nanny.pid not in killed]

    def kill():
        while not (pids := running()):
            time.sleep(0.1)
        killed.append(draws.choice(pids))
        os.kill(killed[-1], signal.SIGKILL)

    def progress(stage, fraction, generation, n_eval):
        if generation % 2 and generation < 2 * options.kills:
            threading.Timer(draws.uniform(0, 0.05), kill).start()

    with cluster(options.workers) as local, Client(local) as client:
        there = front(train, client, progress, **budget)
    same = np.array_equal(there, front(train, 1, **budget))
    print(f"{len(killed)} workers killed in one search; the same front: {same}")
    return same


def speed(options):
    train, draws = mr.load_web_fold(1, n_queries=options.queries)[0], np.random.default_rng(0)
    print(f"{train.n_documents:,} documents, {train.n_features} features, batches of {options.batch}")
    batches = [draws.random((options.batch, train.n_features)) < 0.1 for _ in range(5)]
    values, longest = [], []
    for n_workers in (1, 2):
        stage = mr.FeatureSelection(train, adaptive=False)
        with cluster(n_workers) as local, Client(local) as client:
            slices = Slices(client, stage)
            slices.measure(batches[0])  # sends the data, and computes the Gram matrix
            seconds = []
            for _ in range(options.times):
                begin = client.run(time.process_time)
                values.append([slices.measure(batch) for batch in batches])
                end = client.run(time.process_time)
                seconds.append(max(end[worker] - begin[worker] for worker in begin))
            longest.append(min(seconds))
            print(f"{n_workers} workers: {longest[-1]:.2f} s of the processor of the longest one", flush=True)
    same = all(np.array_equal(value, values[0]) for value in values)
    print(f"one takes {longest[0] / longest[1]:.2f} times as long as two; the same values: {same}")
    return same


if __name__ == "__main__":
    options = frame.arguments(__doc__, parts=["kills", "speed"], kills=20, workers=3, queries=4820, times=4, batch=400)
    same = [{"kills": kills, "speed": speed}[part](options) for part in options.parts]
    sys.exit(not all(same))
