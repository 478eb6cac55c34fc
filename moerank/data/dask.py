"""Training data in shards on the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import logging
import platform
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from moerank.data.blocks import Run, add_up, runs_of
from moerank.data.ranking_data import RankingData
from moerank.data.shards import ShardedData, Step, parts_of
from moerank.kernels.blas import one_blas_thread
from moerank.version import VERSION

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")

CONNECT = 5
"""Seconds that a scheduler has to answer, and to show a worker."""

POLL = 0.5
"""Seconds between two looks at the workers during a call."""

LOOK = 5.0
"""Seconds after which a call looks for new workers before it begins."""

WAIT = 30.0
"""Seconds that a scheduler without workers has to get one."""

PAUSE = 20.0
"""Seconds that a worker may be paused for want of memory."""

MOST_DEATHS = 5
"""Attempts at one call, each of which ended with the death of a worker."""

RESUME = "run the same command again with --resume: what was evaluated is in the journal"


class DaskCluster:
    """The workers of a Dask scheduler, on which training data lie in shards.

    Estimators that train on such data send weights and masks to the workers and get sums; the documents stay where
    they are. The same shards give the same bits on any number of workers, and in one process without Dask
    (`cut_into_shards`).

    Parameters
    ----------
    scheduler : str or distributed.Client
        The address of a scheduler, or a client that is connected to one and stays open.

    Raises
    ------
    OSError
        If nothing answers at the address, there is no worker, or a worker has another processor or other versions than
        this process: sums would have other bits.

    Notes
    -----
    Dask's messages are pickles: everyone who reaches the scheduler can run code on the workers and here. Use a private
    network or Dask's TLS.

    Examples
    --------
    >>> with DaskCluster("tcp://10.0.0.1:8786") as cluster:  # doctest: +SKIP
    ...     solver = MOFSRank(random_state=0).fit(cluster.scatter(train, 8))
    """

    def __init__(self, scheduler: str | Client) -> None:
        self._closes = isinstance(scheduler, str)
        self.client = connect(scheduler) if isinstance(scheduler, str) else scheduler
        self.address = scheduler if isinstance(scheduler, str) else str(self.client.scheduler_info()["address"])
        self._fits: dict[str, bool] = {}
        self._paused: dict[str, float] = {}
        try:
            self.look(refuse=True)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Release all shards and calls; a client that was given stays open, and frees them with their data sets."""
        if self._closes:
            with suppress(Exception):  # the scheduler may be gone
                self.client.close()

    def scatter(self, data: RankingData, n_shards: int) -> ShardedData:
        """Send a data set to the workers in shards, cut as `cut_into_shards` does.

        This process keeps it, too, and sends a shard again if its worker dies.

        Raises
        ------
        OSError
            If a worker has no room for its shards.
        ValueError
            For fewer queries than shards.
        """
        parts = parts_of(data, n_shards)
        return ShardedData(DaskShards(self, parts, [part.n_bytes for part in parts]), data.name)

    def look(self, *, refuse: bool = False) -> dict[str, int]:
        """Return the number of threads of each worker with the same versions as this process, by address.

        Other workers are ignored, or refused with an OSError if `refuse` is true.
        """
        threads = self.asked(self.client.nthreads)
        here, new = environment(), sorted(set(threads) - set(self._fits))
        found = self.asked(lambda: self.client.run(environment, workers=new, on_error="return")) if new else {}
        for worker, there in found.items():
            if isinstance(there, ImportError | AttributeError):
                raise OSError(f"the Dask worker {worker} cannot take part ({there}); it needs the same moerank")
            if isinstance(there, Exception):  # it has gone again
                continue
            self._fits[worker] = there == here
            if refuse and there != here:
                name = next(name for name in here if there.get(name) != here[name])
                raise OSError(
                    f"the Dask worker {worker} has another {name} ({there.get(name)}) than this process "
                    f"({here[name]}), so that sums would have other bits; take workers that are alike, and start the "
                    "run where it is like them"
                )
        self._threads = {worker: n for worker, n in sorted(threads.items()) if self._fits.get(worker)}
        self._seen = monotonic()
        return self._threads

    def there(self) -> dict[str, int]:
        """Return the result of `look`, at most a few seconds old; wait for a worker if there is none."""
        if monotonic() - self._seen > LOOK:
            self.look()
        begin = monotonic()
        while not self._threads:
            if monotonic() - begin > WAIT:
                raise OSError(
                    f"the Dask scheduler at {self.address} has had no worker for {WAIT:.0f} s; start some, and {RESUME}"
                )
            threading.Event().wait(POLL)
            self.look()
        return self._threads

    def refuse_paused(self) -> None:
        """Raise an OSError for a worker that has been paused for long because its memory is full."""
        info = self.asked(lambda: self.client.scheduler_info(n_workers=-1))["workers"]
        paused = {worker for worker, entry in info.items() if entry.get("status") == "paused"}
        self._paused = {worker: self._paused.get(worker, monotonic()) for worker in paused & set(self._threads)}
        for worker, begin in self._paused.items():
            if monotonic() - begin > PAUSE:
                raise OSError(
                    f"the Dask worker {worker} is out of memory: it uses nearly all of its "
                    f"{_in_gib(info[worker]['memory_limit'])} and has stopped; give it more, or take more workers, and "
                    f"{RESUME}"
                )

    def asked(self, question: Callable[[], T]) -> T:
        """Return the answer of the scheduler; raise an OSError if the scheduler is gone."""
        try:
            if self.client.status != "running":  # the answer would be half a minute of silence
                raise OSError
            return question()
        except (OSError, CancelledError, asyncio.CancelledError):
            raise gone(self.address, RESUME) from None

    def submit(self, worker: str, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Let a worker call a function; no other worker takes the call over."""
        return self.asked(lambda: self.client.submit(function, *arguments, workers=[worker], pure=False))


class _WorkerDiedError(Exception):
    pass


class DaskShards:
    """Shards on the workers of a cluster, with the methods of `LocalShards`.

    Every shard has a home worker: Dask would move calls, and copies of the shards with them, to workers that are idle.
    If a worker dies, its shards are read on others and the call begins again. Dask would not do so by itself: a task
    whose home is gone waits for it, even if others may take it, when all workers were gone for a moment.
    """

    def __init__(
        self,
        cluster: DaskCluster,
        sources: Sequence[Callable[[], RankingData] | RankingData],
        n_bytes: Sequence[int],
        steps: Sequence[Step] = (),
    ) -> None:
        self._cluster, self._sources, self._n_bytes, self._steps = cluster, sources, n_bytes, tuple(steps)
        self._home: dict[int, str] = {}
        self._held: dict[int, Future[RankingData]] = {}
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._sources)

    @property
    def where(self) -> str:
        """The numbers of shards and workers, in words."""
        n = len(set(self._home.values()))
        return f"{len(self)} shard{'s' * (len(self) != 1)} on {n} worker{'s' * (n != 1)}"

    def map(self, function: Callable[..., T], arguments: Sequence[Sequence[object]]) -> list[T]:
        """Let each worker work on its shards; see `LocalShards`."""
        found = self._run(function, arguments, lambda shards: [(shard, shard + 1) for shard in shards])
        return [found[shard, shard + 1] for shard in range(len(self))]

    def total(self, function: Callable[..., T], arguments: Sequence[Sequence[object]]) -> T:
        """Let each worker add up neighbouring shards as far as the order of the sum allows, and add up the rest."""
        found = self._run(function, arguments, lambda shards: runs_of(shards, len(self)))
        return add_up((0, len(self)), lambda shard: found[shard, shard + 1], found)

    def changed(self, step: Step) -> DaskShards:
        """Return the shards that a step makes of these, on the same workers."""
        shards = DaskShards(self._cluster, self._sources, self._n_bytes, (*self._steps, step))
        with self._lock:
            shards._home = dict(self._home)
            for shard, held in self._held.items():
                shards._held[shard] = self._cluster.submit(self._home[shard], _step_on, held, step)
        return shards

    def _run(
        self, function: Callable[..., T], arguments: Sequence[Sequence[object]], split: Callable[[list[int]], list[Run]]
    ) -> dict[Run, T]:
        """Return the sums over the runs into which `split` takes the shards of each task apart."""
        arguments = [_once(_packed, values) for values in arguments]
        for _ in range(MOST_DEATHS):
            tasks: dict[Future[Any], str] = {}
            runs: list[Run] = []
            try:
                with self._lock:
                    for worker, part in self._settled():
                        own = [[values[shard] for shard in part] for values in arguments]
                        held = {shard: self._held[shard] for shard in part}
                        task = self._cluster.submit(worker, _work, held, split(part), function, own)
                        tasks[task] = worker
                        runs += split(part)
                found = self._gathered(tasks)
            except _WorkerDiedError:
                with self._lock:  # the data of a worker that came back at the same address are lost, too
                    self._home = {
                        s: w for s, w in self._home.items() if self._held[s].status in ("finished", "pending")
                    }
            else:
                return dict(zip(runs, (value for values in found for value in values), strict=True))
        raise OSError(
            f"Dask workers have died {MOST_DEATHS} times over the same of {self.where}, most likely for want of "
            f"memory; give them more, or take more shards and more workers, and {RESUME}"
        )

    def _gathered(self, tasks: Mapping[Future[Any], str]) -> list[Any]:
        """Return the values of all tasks."""
        client: Any = self._cluster.client
        values = client.gather(list(tasks), asynchronous=True)
        gathering = asyncio.run_coroutine_threadsafe(values, client.loop.asyncio_loop)
        try:
            while not concurrent.futures.wait([gathering], POLL).done:
                self._cluster.refuse_paused()
                if not set(tasks.values()) <= set(self._cluster.look()):
                    raise _WorkerDiedError
            return cast("list[Any]", gathering.result())
        except BaseException as error:
            gathering.cancel()
            failed = next((worker for task, worker in tasks.items() if task.status == "error"), None)
            with suppress(Exception):
                client.cancel(list(tasks), force=True)
            raise self._in_words(error, failed) from None

    def _in_words(self, error: BaseException, worker: str | None) -> BaseException:
        """Return the exception to raise for one that came from a worker, or from Dask itself."""
        from distributed import KilledWorker

        if isinstance(error, KilledWorker | CancelledError | asyncio.CancelledError):
            self._cluster.look()  # which raises if the scheduler is gone
            return _WorkerDiedError()
        if isinstance(error, MemoryError) and worker is not None:
            return OSError(
                f"the Dask worker {worker} is out of memory ({error}); give it more, or take more shards and more "
                f"workers, and {RESUME}"
            )
        return error

    def _settled(self) -> list[tuple[str, list[int]]]:
        """Let workers read the shards that they lack; return parts of the shards, one for each thread of a worker."""
        there = self._cluster.there()
        homes = placed(self._home, len(self), there)
        for worker in there:
            new = [shard for shard in range(len(self)) if homes[shard] == worker != self._home.get(shard)]
            lacking = self._lacking_room(worker, new) if new else ""
            if lacking and any(self._home.get(shard) not in there for shard in new):
                raise OSError(lacking)
            for shard in new if not lacking else ():
                self._held[shard], self._home[shard] = self._read(worker, shard), worker
        parts = []
        for worker, n_threads in there.items():
            own = [shard for shard in range(len(self)) if self._home[shard] == worker]
            parts += [(worker, part.tolist()) for part in np.array_split(own, n_threads) if len(part)]
        return parts

    def _lacking_room(self, worker: str, shards: Sequence[int]) -> str:
        """Return the message for a worker that has no room for shards, "" for one that has."""
        found = self._cluster.asked(lambda: self._cluster.client.run(_room, workers=[worker], on_error="ignore"))
        free, limit = found.get(worker) or (0, 0)
        needed = int(1.25 * sum(self._n_bytes[shard] for shard in shards))  # with everything remembered for them
        if not limit or needed <= free:
            return ""
        numbers = ", ".join(str(shard + 1) for shard in shards)
        return (
            f"the Dask worker {worker} has no room for shard{'s' * (len(shards) > 1)} {numbers} of {len(self)}: about "
            f"{_in_gib(needed)} are needed, and of its {_in_gib(limit)} it may use {_in_gib(free)} more; start more "
            f"workers, or give them more memory, and {RESUME}"
        )

    def _read(self, worker: str, shard: int) -> Future[RankingData]:
        """Let a worker read a shard, or send it there."""
        source = self._sources[shard]
        if isinstance(source, RankingData):
            try:
                held = self._cluster.client.scatter(source, workers=[worker], hash=False)
            except Exception:  # of many kinds, as the scheduler finds the worker gone at one place or another
                if worker in self._cluster.look():
                    raise
                raise _WorkerDiedError from None
        else:
            held = self._cluster.submit(worker, _step_on, None, source)
        for step in self._steps:
            held = self._cluster.submit(worker, _step_on, held, step)
        return held


def placed(home: Mapping[int, str], n_shards: int, threads: Mapping[str, int]) -> list[str]:
    """Return the worker of each shard: its home, unless that is gone or has more than its share by the threads."""
    left = {worker: -(-n_shards * n // sum(threads.values())) for worker, n in threads.items()}
    homes = dict[int, str]()
    for shard, worker in sorted(home.items()):
        if left.get(worker):
            homes[shard] = worker
            left[worker] -= 1
    for shard in range(n_shards):
        if shard not in homes:
            homes[shard] = next(worker for worker in threads if left[worker])
            left[homes[shard]] -= 1
    return [homes[shard] for shard in range(n_shards)]


def connect(address: str) -> Client:
    """Return a client of the scheduler at an address; an OSError if it has no worker or does not answer."""
    try:
        from distributed import Client
        from distributed.comm.core import connect as reach
    except ImportError:
        raise OSError("--dask needs the package distributed: pip install 'moerank[distributed]'") from None

    async def handshake() -> None:
        comm = await reach(address, timeout=CONNECT)
        await comm.close()

    try:  # a client that does not get this far takes half a minute to give up
        asyncio.run(handshake())
    except Exception as error:  # whatever answers there
        reason = str(error) or type(error).__name__
        raise OSError(f"no Dask scheduler answers at {address} ({reason}); give --dask its address") from None
    client = Client(address, set_as_default=False, timeout=CONNECT)
    try:
        client.wait_for_workers(1, timeout=CONNECT)
    except TimeoutError:
        client.close()
        raise OSError(f"the Dask scheduler at {address} has no worker; start one: dask worker {address}") from None
    return client


def gone(address: str, remedy: str) -> OSError:
    """Return the exception to raise where a scheduler is gone, with the remedy once it is back."""
    for name in ("distributed", "distributed.client"):  # they say the same in pages of traceback
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return OSError(f"the Dask scheduler at {address} is gone; start it, and {remedy}")


def environment() -> dict[str, str]:
    """Return the versions and the processor of this process, on which code and the last bits of sums depend."""
    import numba
    from llvmlite import binding

    features = ",".join(sorted(name for name, there in binding.get_host_cpu_features().items() if there))
    kind = f"{binding.get_host_cpu_name()} {hashlib.blake2b(features.encode(), digest_size=3).hexdigest()}"
    return {
        "moerank": VERSION,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "processor": f"{platform.machine()} {kind}",
    }


def _step_on(shard: RankingData | None, step: Callable[..., RankingData]) -> RankingData:
    """Apply a step to a shard on its worker, or call a source without one."""
    with one_blas_thread():
        return step() if shard is None else step(shard)


def _work(
    shards: Mapping[int, RankingData], runs: Iterable[Run], function: Callable[..., T], arguments: list[list[object]]
) -> list[T]:
    """Return the sum of `function` over the shards of each run; each argument has a value for each shard by number."""
    own = dict(zip(sorted(shards), zip(*(_once(_unpacked, values) for values in arguments), strict=True), strict=False))
    with one_blas_thread():
        return [add_up(run, lambda shard: function(shards[shard], *own.get(shard, ()))) for run in runs]


class _Packed(NamedTuple):
    """An array of bool on its way, eight values in a byte."""

    bits: NDArray[np.uint8]
    shape: tuple[int, ...]


def _packed(value: object) -> object:
    if isinstance(value, np.ndarray) and value.dtype == np.bool_:
        return _Packed(np.packbits(value), value.shape)
    return value


def _unpacked(value: object) -> object:
    if isinstance(value, _Packed):
        count = int(np.prod(value.shape))
        return np.unpackbits(value.bits, count=count).view(np.bool_).reshape(value.shape)
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return value.copy()  # else kernels would be compiled again for arrays that came in a message
    return value


def _once(convert: Callable[[object], object], values: Sequence[object]) -> list[object]:
    """Convert values, each object once: pickles hold an object once, however often it occurs."""
    made = {key: convert(value) for key, value in {id(value): value for value in values}.items()}
    return [made[id(value)] for value in values]


def _room(dask_worker: Any) -> tuple[int, int]:
    """Return how many bytes a worker may still take, and its limit; both 0 if it has none."""
    memory = dask_worker.memory_manager
    if not memory.memory_limit:
        return 0, 0
    most = memory.memory_limit * (memory.memory_pause_fraction or 0.95)
    return max(int(most) - dask_worker.monitor.get_process_memory(), 0), int(memory.memory_limit)


def _in_gib(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:.3g} GiB"
