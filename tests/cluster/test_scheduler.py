"""What a run on a cluster says when the scheduler goes away, and how it goes on."""

import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

from moerank.cluster import DaskCluster
from moerank.data import make_web
from moerank.data.sharded_data import cut_into_shards
from moerank.mofsrank import MOFSRank
from moerank.rankers import RankRLS

distributed = pytest.importorskip("distributed")


def launch(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.getenv("PYTHONPATH")]))}
    command = [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.fixture
def scheduler():
    """A scheduler and a worker, each a process: the one that can be killed, and the address."""
    process = launch("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    address = next(match[0] for line in process.stderr if (match := re.search(r"tcp://127\.0\.0\.1:\d+", line)))
    worker = launch("dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
    for started in (process, worker):
        threading.Thread(target=started.stderr.read, daemon=True).start()  # a full pipe would stop it
    with distributed.Client(address, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
    yield process, address
    for started in (process, worker):
        started.kill()
        started.wait()


@pytest.mark.filterwarnings("ignore::moerank.rankers.estimator.ScaleWarning")
def test_a_scheduler_that_dies_ends_the_run_in_a_sentence_and_its_journal_goes_on_elsewhere(scheduler, tmp_path):
    process, address = scheduler
    data = make_web(12, seed=3)
    budget = {"population": 8, "generations": 6}
    settings = dict(instance_selection=False, feature_selection=budget, ensemble=False, random_state=0)
    evaluated = []

    def kill(stage, fraction, generation, n_eval):
        evaluated.append(n_eval)
        if generation == 3:
            process.kill()

    journal = tmp_path / "journal"
    with (
        DaskCluster(address) as cluster,
        pytest.raises(OSError, match=rf"the Dask scheduler at {address} is gone; start it, and run .* --resume"),
    ):
        MOFSRank(RankRLS(), progress=kill, journal=journal, **settings).fit(cluster.scatter(data, 2))
    assert evaluated == [8, 16, 24]
    resumed = MOFSRank(RankRLS(), journal=journal, resume=True, **settings).fit(cut_into_shards(data, 2))
    undisturbed = MOFSRank(RankRLS(), **settings).fit(cut_into_shards(data, 2))
    np.testing.assert_array_equal(resumed.front_coefs_, undisturbed.front_coefs_)
