"""Shards on the workers of a Dask cluster: which worker holds which, and what happens when one of them dies.

A shard is tied to one worker. Where that is gone, others read its shards again, and compute what it had not returned:
a sum over shards does not depend on who computes it, so nothing else changes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from moerank.cluster.worker import Source, hold, packed, room, step_on, work
from moerank.cluster.workers import AGAIN, POLL, WAIT, Workers, in_gib
from moerank.data import RankingData
from moerank.data.sharded_data import Step
from moerank.data.shares import Run, add_up, runs_of

if TYPE_CHECKING:
    from distributed import Future

__all__ = ["DaskShards", "Given", "placed"]

T = TypeVar("T")

MOST_DEATHS = 5
"""Times that workers may die in one call one after the other: then the call is what they die of."""

BESIDE = 1.25
"""What a shard takes with all that is remembered for it, as a multiple of its features and labels."""


class Given:
    """The source of a shard that the client has sent; the client keeps it, and sends it again where it is lost."""

    def __init__(self, data: RankingData) -> None:
        self._data = data

    @property
    def n_bytes(self) -> int:
        """Memory of features and labels."""
        return int(self._data.X.nbytes + self._data.y.nbytes)

    def __call__(self) -> RankingData:
        """Return the shard."""
        return self._data


class DaskShards:
    """Shards on the workers of a cluster; a `ShardHolder`.

    Parameters
    ----------
    workers : Workers
    sources : sequence of Source
    steps : sequence of Step
        What is done to each shard after it is read.
    """

    def __init__(self, workers: Workers, sources: Sequence[Source], steps: Sequence[Step] = ()) -> None:
        self._workers, self._sources, self._steps = workers, sources, tuple(steps)
        self._home: dict[int, str] = {}
        self._held: dict[int, Future[Any]] = {}
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._sources)

    @property
    def where(self) -> str:
        """The numbers of shards and workers, in words."""
        n = len(set(self._home.values()))
        return f"{len(self)} shard{'s' * (len(self) != 1)} on {n} worker{'s' * (n != 1)}"

    def map(self, function: Callable[..., T], arguments: Sequence[Sequence[Any]]) -> list[T]:
        """Let each worker work on its shards; see `ShardHolder`."""
        found = self._run(function, arguments, lambda shards: [(shard, shard + 1) for shard in shards])
        return [found[shard, shard + 1] for shard in range(len(self))]

    def total(self, function: Callable[..., T], arguments: Sequence[Sequence[Any]]) -> T:
        """Let each worker add up its shards as far as the order of the sum has them together, and add up the rest."""
        found = self._run(function, arguments, lambda shards: runs_of(shards, len(self)))
        return add_up((0, len(self)), lambda shard: found[shard, shard + 1], found)

    def changed(self, step: Step) -> DaskShards:
        """Return the shards that a step makes of these, on the same workers."""
        shards = DaskShards(self._workers, self._sources, (*self._steps, step))
        with self._lock:
            self._settle()
            shards._home = dict(self._home)
            for shard, held in self._held.items():
                shards._held[shard] = self._submit(self._home[shard], step_on, held, step)
        return shards

    def _run(
        self, function: Callable[..., T], arguments: Sequence[Sequence[Any]], split: Callable[[list[int]], list[Run]]
    ) -> dict[Run, T]:
        """Return the sums over the runs into which `split` takes the shards of each task apart."""
        todo, found, deaths = set(range(len(self))), dict[Run, T](), 0
        while todo:
            tasks: dict[Future[Any], tuple[str, list[Run]]] = {}
            with self._lock:
                for worker, shards in self._settle().items():
                    n_threads = self._workers.there().get(worker, 1)
                    for part in np.array_split(sorted(todo.intersection(shards)), n_threads):
                        if len(part):
                            runs = split(part.tolist())
                            held = {shard: self._held[shard] for shard in part.tolist()}
                            tasks[self._submit(worker, work, held, runs, function, *_messages(arguments, held))] = (
                                worker,
                                runs,
                            )
            before = len(todo)
            for runs, values in self._results(tasks):
                found.update(zip(runs, values, strict=True))
                for run in runs:
                    todo.difference_update(range(*run))
            deaths = 0 if len(todo) < before else deaths + 1
            if deaths >= MOST_DEATHS:
                raise OSError(self._dying())
        return found

    def _dying(self) -> str:
        return (
            f"Dask workers have died {MOST_DEATHS} times over the same of {self.where}, most likely for want of "
            f"memory; give them more, or take more shards and more workers, and {AGAIN}"
        )

    def _submit(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._workers.asked(
            lambda: self._workers.client.submit(function, *arguments, workers=[worker], pure=False)
        )

    def _results(self, tasks: Mapping[Future[Any], tuple[str, list[Run]]]) -> Iterator[tuple[list[Run], list[Any]]]:
        """Yield the runs and sums of each task that its worker has lived to finish."""
        client, waiting = self._workers.client, list(tasks)
        try:
            while waiting:
                try:
                    gathering = client.gather(waiting, asynchronous=True)
                    values = client.sync(asyncio.wait_for, gathering, POLL)
                except TimeoutError:
                    self._workers.refuse_paused()
                    waiting = self._alive(waiting, tasks)
                except BaseException as error:
                    waiting = self._alive(self._not_failed(waiting, tasks, error), tasks)
                else:
                    yield from ((tasks[future][1], value) for future, value in zip(waiting, values, strict=True))
                    return
        except BaseException:
            with suppress(Exception):
                client.cancel(list(tasks), force=True)
            raise

    def _alive(self, waiting: list[Future[Any]], tasks: Mapping[Future[Any], tuple[str, list[Run]]]) -> list[Any]:
        """Return the tasks whose workers are there."""
        there = self._workers.look()
        return [future for future in waiting if tasks[future][0] in there]

    def _not_failed(
        self, waiting: list[Future[Any]], tasks: Mapping[Future[Any], tuple[str, list[Run]]], error: BaseException
    ) -> list[Future[Any]]:
        """Return the tasks that go on after an error, which is raised if it is more than the death of a worker."""
        from distributed import KilledWorker

        if not isinstance(error, Exception | CancelledError | asyncio.CancelledError):
            raise error
        going = [future for future in waiting if future.status not in ("error", "cancelled", "lost")]
        for future in waiting:
            if future.status == "error":
                reason = self._workers.asked(lambda future=future: future.exception(timeout=WAIT))  # type: ignore[misc]
                if not isinstance(reason, KilledWorker | CancelledError):
                    raise self._in_words(reason, tasks[future][0]) from None
        if len(going) == len(waiting):
            self._workers.look()  # which says so if the scheduler is gone
            raise error
        with self._lock:  # what their workers held is not to be relied on
            for future in set(waiting) - set(going):
                for shard, worker in list(self._home.items()):
                    if worker == tasks[future][0]:
                        del self._home[shard]
        return going

    def _in_words(self, reason: BaseException, worker: str) -> BaseException:
        """Return what to raise for an error on a worker."""
        if isinstance(reason, MemoryError):
            return OSError(
                f"the Dask worker {worker} is out of memory ({reason}); give it more, or take more shards and more "
                f"workers, and {AGAIN}"
            )
        return reason

    def _settle(self) -> dict[str, list[int]]:
        """See to it that every shard is held by a worker that is there; return the shards of each."""
        for _ in range(MOST_DEATHS):
            there = self._workers.there()
            homes = placed(self._home, len(self), there)
            if all(self._take(worker, homes, there) for worker in there):
                break
            self._workers.look()
        else:
            raise OSError(self._dying())
        shards: dict[str, list[int]] = {}
        for shard in range(len(self)):
            shards.setdefault(self._home[shard], []).append(shard)
        return shards

    def _take(self, worker: str, homes: Sequence[str], there: Mapping[str, int]) -> bool:
        """Let a worker read the shards that are to be there and are not; return whether it has lived to be asked."""
        new = [shard for shard in range(len(self)) if homes[shard] == worker != self._home.get(shard)]
        if not new:
            return True
        lacking = self._lacking_room(worker, new)
        if lacking and any(self._home.get(shard) not in there for shard in new):
            raise OSError(lacking)
        for shard in new if not lacking else ():
            held = self._held_by(worker, shard)
            if held is None:
                return False
            self._held[shard], self._home[shard] = held, worker
        return True

    def _lacking_room(self, worker: str, shards: Sequence[int]) -> str:
        """Return what to say if a worker has no room for shards, else nothing."""
        free, limit = self._workers.answer(worker, room) or (-1, -1)
        needed = int(BESIDE * sum(self._sources[shard].n_bytes for shard in shards))
        if limit < 0 or needed <= free:
            return ""
        numbers = ", ".join(str(shard + 1) for shard in shards)
        return (
            f"the Dask worker {worker} has no room for shard{'s' * (len(shards) > 1)} {numbers} of {len(self)}: about "
            f"{in_gib(needed)} are needed, and of its {in_gib(limit)} it may use {in_gib(free)} more; start more "
            f"workers, or give them more memory, and {AGAIN}"
        )

    def _held_by(self, worker: str, shard: int) -> Future[Any] | None:
        """Let a worker read a shard; return None if it died while it was sent one."""
        source: Any = self._sources[shard]
        if isinstance(source, Given):
            try:
                source = self._workers.client.scatter(source, workers=[worker], hash=False)
            except Exception:  # of many kinds, as the scheduler finds the worker gone at one place or another
                if worker in self._workers.look():
                    raise
                return None
        held = self._submit(worker, hold, source)
        for step in self._steps:
            held = self._submit(worker, step_on, held, step)
        return held


def placed(home: Mapping[int, str], n_shards: int, threads: Mapping[str, int]) -> list[str]:
    """Return the worker of each shard: as before where it is there and has no more than its share.

    Parameters
    ----------
    home : mapping of int to str
        The workers that hold shards so far.
    n_shards : int
    threads : mapping of str to int
        The threads of each worker that is there, at least one.

    Examples
    --------
    >>> placed({}, 4, {"a": 1, "b": 1}), placed({0: "a", 1: "a", 2: "b", 3: "b"}, 4, {"b": 1, "c": 1})
    (['a', 'a', 'b', 'b'], ['c', 'c', 'b', 'b'])
    """
    in_all = sum(threads.values())
    left = {worker: -(-n_shards * n // in_all) for worker, n in threads.items()}
    homes = dict[int, str]()
    for shard in range(n_shards):
        worker = home.get(shard)
        if worker is not None and left.get(worker):
            homes[shard] = worker
            left[worker] -= 1
    for shard in range(n_shards):
        if shard not in homes:
            homes[shard] = next(worker for worker in threads if left[worker])
            left[homes[shard]] -= 1
    return [homes[shard] for shard in range(n_shards)]


def _messages(
    arguments: Sequence[Sequence[Any]], shards: Mapping[int, object]
) -> tuple[dict[int, Any], dict[int, dict[int, Any]]]:
    """Return the arguments that all shards have in common, by place, and those of each shard that it has alone."""
    common, own = dict[int, Any](), {shard: dict[int, Any]() for shard in shards}
    for place, values in enumerate(arguments):
        if all(value is values[0] for value in values):
            common[place] = packed(values[0])
        else:
            for shard in shards:
                own[shard][place] = packed(values[shard])
    return common, own
