"""Shards on a real scheduler with two worker processes: the same bits as in one process, whatever dies."""

import functools
import os
import threading
import time

import numpy as np
import pytest

from moerank.data import RankingData, make_web, query_level_norm
from moerank.data.dask import DaskCluster, DaskShards, placed
from moerank.data.shards import cut_into_shards
from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import FSMRank, RankRLS, RankSVM

distributed = pytest.importorskip("distributed")

N_SHARDS = 4


@pytest.fixture(scope="module")
def scheduler():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local:
        yield local


@pytest.fixture
def cluster(scheduler):
    scheduler.wait_for_workers(2, timeout=60)  # one that was killed comes back
    with DaskCluster(scheduler.scheduler_address) as found:
        yield found


@pytest.fixture(scope="module")
def data():
    return query_level_norm(make_web(12, seed=2))


def searched(train, backend, unit="query", **settings):
    budget = {"population": 6, "generations": 3}
    instances = budget | {"unit": unit, "max_subsets": 2}
    solver = MOFSRank(
        backend,
        instance_selection=instances,
        feature_selection=budget,
        ensemble=budget,
        random_state=0,
        **settings,
    )
    return solver.fit(train)


def assert_same(one, other):
    for stage, F in one.fronts_.items():
        np.testing.assert_array_equal(F, other.fronts_[stage])
    np.testing.assert_array_equal(one.front_coefs_, other.front_coefs_)


@pytest.mark.filterwarnings("ignore::moerank.rankers.ScaleWarning")
@pytest.mark.parametrize(
    ("backend", "unit"),
    [
        (RankRLS(alpha=0.01), "document"),
        (RankSVM(C=0.05, tol=1e-3), "query"),
        (RankSVM(C=0.05, tol=1e-3), "document"),
        (FSMRank(tol=0.3), "query"),
    ],
)
def test_two_workers_and_one_process_find_the_same_bits(cluster, data, backend, unit):
    here = searched(cut_into_shards(data, N_SHARDS), backend, unit)  # first, lest each worker compiles the kernels
    assert_same(here, searched(cluster.scatter(data, N_SHARDS), backend, unit))


def test_one_worker_finds_the_same_bits(cluster, data, monkeypatch):
    look = DaskCluster.look

    def first(cluster, **kwargs):
        cluster._threads = dict(list(look(cluster, **kwargs).items())[:1])
        return cluster._threads

    monkeypatch.setattr(DaskCluster, "look", first)
    cluster.look()
    train = cluster.scatter(data, N_SHARDS)
    W = np.random.default_rng(0).normal(size=(5, data.n_features))
    means = NDCG(10).mean_of_linear(train, W)
    assert train.where == "4 shards on 1 worker"
    np.testing.assert_array_equal(means, NDCG(10).mean_of_linear(cut_into_shards(data, N_SHARDS), W))
    np.testing.assert_allclose(means, NDCG(10).mean_of_linear(data, W), rtol=1e-14)


@pytest.mark.filterwarnings("ignore::moerank.rankers.ScaleWarning")
def test_a_worker_killed_in_mid_search_changes_nothing(scheduler, cluster, data):
    undisturbed = searched(cut_into_shards(data, N_SHARDS), RankRLS(alpha=0.01))
    train = cluster.scatter(data, N_SHARDS)
    killed = []

    def kill(stage, fraction, generation, n_eval):
        if (stage, generation) == ("feature_selection", 2):
            pid = scheduler.workers[0].process.process.pid
            killed.append(pid)
            threading.Timer(0.02, os.kill, (pid, 9)).start()

    found = searched(train, RankRLS(alpha=0.01), progress=kill)
    assert len(killed) == 1
    assert_same(found, undisturbed)


def test_what_a_shard_raises_comes_through(cluster, data):
    train = cluster.scatter(data, N_SHARDS)
    with pytest.raises(ValueError, match="data can come scaled per query"):
        train.map(RankingData.declared, "minmax")
    assert train.map(np.shape) == [()] * N_SHARDS  # and the next call finds everything as it was


def test_a_worker_out_of_memory_is_said_in_words(cluster, data):
    train = cluster.scatter(data, N_SHARDS)
    with pytest.raises(OSError, match=r"the Dask worker tcp://\S+ is out of memory \(.*allocate.*\); give it more"):
        train.map(functools.partial(np.full, 2**45))


def test_shards_for_which_there_is_no_room_are_refused_before_they_are_read(cluster):
    with pytest.raises(OSError, match=r"no room for shards 1, 2 of 4: about 2\.62e\+06 GiB are needed, and of its"):
        DaskShards(cluster, [pytest.fail] * N_SHARDS, [2**50] * N_SHARDS).map(np.shape, [])


@pytest.mark.parametrize(
    ("what", "name", "value"),
    [
        ("moerank", "moerank.data.dask.VERSION", "other"),
        ("python", "platform.python_version", lambda: "other"),
        ("processor", "platform.machine", lambda: "other"),
    ],
)
def test_workers_of_another_kind_are_refused_by_name(scheduler, monkeypatch, what, name, value):
    monkeypatch.setattr(name, value)
    with pytest.raises(
        OSError, match=rf"the Dask worker tcp://\S+ has another {what} \(.+\) than this process \(other.*\)"
    ):
        DaskCluster(scheduler.scheduler_address)


def test_a_client_that_was_given_stays_open(scheduler, data):
    with distributed.Client(scheduler, set_as_default=False) as client:
        with DaskCluster(client) as cluster:
            train = cluster.scatter(data, N_SHARDS)
            assert train.n_documents == data.n_documents
        assert client.status == "running"
        del train, cluster


@pytest.mark.filterwarnings("ignore::moerank.rankers.ScaleWarning")
def test_an_interrupt_leaves_nothing_on_the_cluster(scheduler, data):
    def interrupt(stage, fraction, generation, n_eval):
        if stage == "feature_selection":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), DaskCluster(scheduler.scheduler_address) as cluster:
        searched(cluster.scatter(data, N_SHARDS), RankRLS(), progress=interrupt)
    deadline = time.monotonic() + 20
    while scheduler.scheduler.tasks and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not scheduler.scheduler.tasks


def test_shards_stay_where_they_are_as_far_as_shares_allow():
    home = dict(enumerate(["a", "a", "b", "b", "c", "c", "d", "d"]))
    threads = dict.fromkeys("abcd", 1)
    assert placed(home, 8, threads) == list(home.values())
    del threads["b"]
    after = placed(home, 8, threads)
    assert [after[shard] for shard in (0, 1, 4, 5, 6, 7)] == list("aaccdd")
    assert set(after) == set("acd")
    assert max(after.count(worker) for worker in "acd") == 3
    assert placed({}, 4, {"a": 3, "b": 1}) == list("aaab")
