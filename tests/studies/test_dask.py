"""Studies on a Dask cluster: a real scheduler and two worker processes on the loopback."""

import sys
import time
from functools import partial

import pytest
from helpers.dask_processes import WORKER, dask_process
from helpers.dask_processes import scheduler as scheduler

import moerank as mr
from moerank.studies.study import Study

distributed = pytest.importorskip("distributed")

SOLVERS = ["fsmrank", "ranksvm-primal", "mofsrank"]


@pytest.fixture(scope="module")
def cluster(scheduler):
    """A client of the scheduler, its process, and those of its two workers, which the tests end one after the other."""
    process, address = scheduler
    with (
        dask_process("worker", address, "--name", "one", *WORKER) as (one, _),
        dask_process("worker", address, "--name", "two", *WORKER) as (two, _),
        distributed.Client(address, set_as_default=False) as client,  # a study has none but its own
    ):
        client.wait_for_workers(2, timeout=60)
        yield client, process, [one, two]


def finished(study):
    """The front of each cell by its label."""
    return {(result.solver, result.fold, result.seed): result.front for result in study.results()}


def test_both_workers_take_part_and_change_nothing(cluster, tiny_problem_file, undisturbed, tmp_path):
    client, _, _ = cluster
    study = Study([tiny_problem_file], SOLVERS, tmp_path, folds=[1, 2], seeds=2)
    with distributed.get_task_stream(client) as stream:
        study.run(dask=client.scheduler.address)
    assert {task["worker"] for task in stream.data} == set(client.scheduler_info()["workers"])
    assert finished(study) == finished(Study.load(undisturbed))


def test_halves_run_on_both_workers_and_change_nothing(cluster):
    client, _, _ = cluster
    train, vali, _ = mr.load_planted_fold(1, n_queries=20, n_documents=8)
    call = partial(mr.stability, mr.GreedyRankRLS(3), train, vali, pairs=4, size=2)
    with distributed.get_task_stream(client) as stream:
        result = call(dask=client.scheduler.address)
    assert {task["worker"] for task in stream.data} == set(client.scheduler_info()["workers"])
    assert result == call()


def test_a_worker_that_dies_takes_no_cell_with_it(cluster, tiny_problem_file, undisturbed, tmp_path):
    client, _, workers = cluster
    study = Study([tiny_problem_file], SOLVERS, tmp_path, folds=[1, 2], seeds=2)
    seen = []

    def kill_one(cell, succeeded):
        seen.append(succeeded)
        if len(seen) == 2:
            workers[0].kill()

    study.run(dask=client.scheduler.address, done=kill_one)
    assert workers[0].wait(timeout=10) != 0
    assert finished(study) == finished(Study.load(undisturbed))
    deadline = time.monotonic() + 30
    while len(client.scheduler_info()["workers"]) > 1 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(client.scheduler_info()["workers"]) == 1


def test_a_scheduler_that_goes_away_ends_the_study_in_a_sentence(cluster, tiny_problem_file, tmp_path):
    client, process, _ = cluster
    address = client.scheduler.address
    study = Study([tiny_problem_file], SOLVERS, tmp_path, folds=[1, 2], seeds=2)
    with pytest.raises(OSError, match=rf"the Dask scheduler at {address} is gone; start it, and run the same command"):
        study.run(dask=address, done=lambda *_: process.kill())
    assert "failed" not in study.states().values()
    assert len(study.run().results()) == 8


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense", "http://127.0.0.1:80"])
def test_an_address_without_a_scheduler_is_told(tiny_problem_file, tmp_path, monkeypatch, address):
    monkeypatch.setattr("moerank.mofsrank.dask_slices.CONNECT", 1)
    with pytest.raises(OSError, match=rf"no Dask scheduler answers at {address} \(.+\); give --dask its address"):
        Study([tiny_problem_file], ["rankrls"], tmp_path).run(dask=address)


def test_without_dask_the_extra_is_named(tiny_problem_file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(OSError, match=r"--dask needs the package distributed: pip install 'moerank\[distributed\]'"):
        Study([tiny_problem_file], ["rankrls"], tmp_path).run(dask="tcp://127.0.0.1:1")
