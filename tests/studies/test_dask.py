"""Studies on a Dask cluster: a real scheduler and two worker processes on the loopback."""

import os
import re
import subprocess
import sys
import threading
import time

import pytest

from moerank.studies.study import Study

distributed = pytest.importorskip("distributed")

SOLVERS = ["fsmrank", "ranksvm-primal", "mofsrank"]


def launch(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.getenv("PYTHONPATH")]))}
    command = [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.fixture
def cluster():
    """The address of a scheduler, and its two worker processes."""
    scheduler = launch("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    address = next(match[0] for line in scheduler.stderr if (match := re.search(r"tcp://127\.0\.0\.1:\d+", line)))
    options = ("--nthreads", "1", "--no-dashboard", "--no-nanny")
    workers = [launch("dask_worker", address, "--name", name, *options) for name in ("one", "two")]
    processes = [scheduler, *workers]
    for process in processes:  # a full pipe would stop them
        threading.Thread(target=process.stderr.read, daemon=True).start()
    with distributed.Client(address) as client:
        client.wait_for_workers(2, timeout=60)
        yield client, workers
    for process in processes:
        process.kill()
        process.wait()


def finished(study):
    """The front of each cell by its label."""
    return {cell.label: result.front for cell, result in study.results().items()}


@pytest.fixture(scope="module")
def undisturbed(tiny_problem_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    return finished(Study([tiny_problem_file], SOLVERS, folder, folds=[1, 2], seeds=2).run())


def test_both_workers_take_part_and_change_nothing(cluster, tiny_problem_file, undisturbed, tmp_path):
    client, _ = cluster
    study = Study([tiny_problem_file], SOLVERS, tmp_path, folds=[1, 2], seeds=2)
    with distributed.get_task_stream(client) as stream:
        study.run(dask=client.scheduler.address)
    assert {task["worker"] for task in stream.data} == set(client.scheduler_info()["workers"])
    assert finished(study) == undisturbed


def test_a_worker_that_dies_takes_no_cell_with_it(cluster, tiny_problem_file, undisturbed, tmp_path):
    client, workers = cluster
    study = Study([tiny_problem_file], SOLVERS, tmp_path, folds=[1, 2], seeds=2)
    seen = []

    def kill_one(cell, succeeded):
        seen.append(succeeded)
        if len(seen) == 2:
            workers[0].kill()

    study.run(dask=client.scheduler.address, done=kill_one)
    assert workers[0].wait(timeout=10) != 0
    assert finished(study) == undisturbed
    deadline = time.monotonic() + 30
    while len(client.scheduler_info()["workers"]) > 1 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(client.scheduler_info()["workers"]) == 1
