"""What a run on a cluster says when the scheduler goes away, and how it goes on."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from helpers.dask_processes import SCHEDULER, WORKER, dask_process

from moerank.data import make_web
from moerank.data.dask import DaskCluster
from moerank.data.shards import cut_into_shards
from moerank.mofsrank import MOFSRank
from moerank.rankers import RankRLS
from moerank.studies.result_files import JOURNAL

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def scheduler():
    """A scheduler with a worker: the process of the one, which the last test kills, and its address."""
    with dask_process(*SCHEDULER) as (process, address), dask_process("worker", address, *WORKER):
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
        yield process, address


def waited_for(condition):
    """Whether something comes true within two minutes."""
    end = time.monotonic() + 120
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()


def test_ctrl_c_of_the_command_leaves_nothing_on_the_cluster_and_a_run_that_goes_on(
    scheduler, command, tmp_path, monkeypatch
):
    _, address = scheduler
    # On a busy machine this process may hear the signal late. The command would then end it, and all tests with it.
    monkeypatch.setattr("moerank.cli.messages.end", lambda code: None)
    settings = ["data.queries=20", "data.shards=2", "backend.name=rankrls"]
    for stage in ("instance_selection", "feature_selection", "ensemble"):
        settings += [f"{stage}.population=8", f"{stage}.generations={60 if stage == 'feature_selection' else 2}"]
    words = ["run", "web", "--dask", address, "--out", tmp_path / "run"]
    words += [word for setting in settings for word in ("--set", setting)]
    journal = tmp_path / "run" / f"{JOURNAL}.feature_selection"

    def interrupt():
        if waited_for(lambda: journal.exists() and journal.stat().st_size > 2_000):
            os.kill(os.getpid(), signal.SIGINT)

    (presser := threading.Thread(target=interrupt)).start()
    interrupted = command(*words)
    presser.join()
    assert interrupted.exit_code == 130
    assert "--resume" in interrupted.stderr
    with distributed.Client(address, set_as_default=False) as client:
        assert waited_for(lambda: not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
        assert not any(client.run(lambda dask_worker: list(dask_worker.data)).values())
    assert command(*words, "--resume").exit_code == 0
    assert (tmp_path / "run" / "result.json").is_file()


@pytest.mark.filterwarnings("ignore::moerank.rankers.ScaleWarning")
def test_a_scheduler_that_dies_ends_the_run_in_a_sentence_and_its_journal_goes_on_elsewhere(scheduler, tmp_path):
    process, address = scheduler
    data = make_web(12, seed=3)
    budget = {"population": 8, "generations": 6}
    settings = dict(instance_selection=False, feature_selection=budget, ensemble=False, random_state=0)
    undisturbed = MOFSRank(RankRLS(), **settings).fit(cut_into_shards(data, 2))
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
    np.testing.assert_array_equal(resumed.front_coefs_, undisturbed.front_coefs_)
