"""One search on the workers of a Dask scheduler: real processes on the loopback."""

import os
import pickle
import signal
from contextlib import suppress

import pytest
from helpers.dask_processes import WORKER, dask_process
from helpers.dask_processes import scheduler as scheduler

from moerank.data import make_planted
from moerank.mofsrank import MOFSRank, dask_slices

distributed = pytest.importorskip("distributed")

BUDGET = {"population": 12, "generations": 5}
STAGES = {"instance_selection": BUDGET, "feature_selection": BUDGET, "ensemble": BUDGET}


@pytest.fixture(scope="module")
def train():
    return make_planted(n_queries=12, n_documents=12, seed=1).data


@pytest.fixture(scope="module")
def client(scheduler):
    # The last test ends the scheduler; then a timeout of the connection may expire while the client closes it.
    with suppress(RuntimeError), distributed.Client(scheduler[1], set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def alone(train):
    return MOFSRank(**STAGES, random_state=0).fit(train)


def assert_same(solver, alone):
    for stage, F in alone.fronts_.items():
        assert solver.fronts_[stage].tobytes() == F.tobytes()
    assert solver.front_coefs_.tobytes() == alone.front_coefs_.tobytes()


def test_any_number_of_workers_gives_the_same_bits_and_a_dead_one_changes_nothing(
    train, client, alone, tmp_path, monkeypatch
):
    address = client.scheduler.address
    with dask_process("worker", address, *WORKER) as (first, _):
        client.wait_for_workers(1, timeout=60)
        with distributed.get_task_stream(client) as stream:
            assert_same(MOFSRank(**STAGES, random_state=0, workers=client).fit(train), alone)
        assert len(stream.data) >= 15
        own = dask_slices.environment()
        with monkeypatch.context() as patch:
            patch.setattr(dask_slices, "environment", lambda: own.replace("numpy", "numpy 1.0, really"))
            with pytest.raises(OSError, match=r"worker at tcp://.* has moerank .*, but this process has .* numpy 1\.0"):
                MOFSRank(**STAGES, random_state=0, workers=client).fit(train)
        (tmp_path / "own_metric.py").write_text("from moerank.metrics import NDCG\nclass Own(NDCG): pass")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)  # of the second worker alone
        with dask_process("worker", address, *WORKER):
            client.wait_for_workers(2, timeout=60)
            own_metric = pytest.importorskip("own_metric").Own(5)
            with pytest.raises(OSError, match=r"tcp://.* \(No module named 'own_metric'\); install there .* of yours"):
                MOFSRank(metric=own_metric, **STAGES, random_state=0, workers=client).fit(train)
            generations = []

            def kill(stage, fraction, generation, n_eval):
                generations.append((stage, generation))
                if (stage, generation) == ("feature_selection", 2):
                    os.kill(first.pid, signal.SIGKILL)

            with distributed.get_task_stream(client) as stream:
                solver = MOFSRank(
                    **STAGES, random_state=0, workers=client, progress=kill, memo=tmp_path / "memo", resume=True
                ).fit(train)
            assert_same(solver, alone)
            assert len({task["worker"] for task in stream.data}) == 2
            assert len(generations) == 15
            # Every value is known, and the workers measure the fronts again.
            again = MOFSRank(**STAGES, random_state=0, workers=client, memo=tmp_path / "memo", resume=True).fit(train)
            assert_same(again, alone)
            assert pickle.loads(pickle.dumps(again)).workers == 1


def test_a_cluster_without_workers_ends_the_search_in_a_sentence(train, client, monkeypatch):
    monkeypatch.setattr(dask_slices, "SECONDS_FOR_A_WORKER", 1)
    with pytest.raises(OSError, match=r"has no worker any more; start one: dask worker tcp://.*, and resume"):
        MOFSRank(**STAGES, random_state=0, workers=client).fit(train)


def test_a_scheduler_that_is_gone_ends_the_search_in_a_sentence(train, scheduler, client, monkeypatch):
    monkeypatch.setattr(client, "_timeout", 1)
    monkeypatch.setattr(client.rpc, "timeout", 1)
    scheduler[0].kill()
    scheduler[0].wait()
    with pytest.raises(OSError, match=r"the Dask scheduler at tcp://.* is gone; start it, and resume the search"):
        MOFSRank(**STAGES, random_state=0, workers=client).fit(train)
