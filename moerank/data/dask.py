"""The connection to a Dask scheduler: made, or refused in a sentence."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import platform
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.data.blocks import Run, add_up, runs_of
from moerank.data.shards import ShardedData, Step, parts_of
from moerank.kernels.blas import one_blas_thread
from moerank.version import VERSION

if TYPE_CHECKING:
    from distributed import Client, Future


__all__ = [
    "connect",
    "gone",
    "Environment",
    "Held",
    "Packed",
    "Source",
    "environment",
    "hold",
    "packed",
    "room",
    "step_on",
    "work",
    "AGAIN",
    "POLL",
    "Workers",
    "DaskShards",
    "Given",
    "placed",
    "DaskCluster",
]

CONNECT = 5
"""Seconds that a Dask scheduler has to answer, and to show a worker."""


def connect(address: str) -> Client:
    """Return a client of the scheduler at an address, which has a worker at least.

    Raises
    ------
    OSError
        If there is no Dask scheduler, or none of its workers, or no Dask here.
    """
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
    except Exception as error:  # whatever it is that answers there
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
    """Return what to raise where a scheduler is gone, with what is to be done once it is back."""
    for name in ("distributed", "distributed.client"):  # they say the same in pages of traceback
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return OSError(f"the Dask scheduler at {address} is gone; start it, and {remedy}")


RESERVE = 0.95
"""Share of its memory that a worker may use where Dask does not say when it pauses."""


class Source(Protocol):
    """Where a shard comes from: asked for it on the worker that is to hold it, perhaps a second time on another."""

    @property
    def n_bytes(self) -> int:
        """About how much memory the shard takes."""

    def __call__(self) -> RankingData:
        """Return the shard."""


class Environment(NamedTuple):
    """What decides the last bits of a sum, and whether a function sent to a worker is the one that is meant."""

    moerank: str
    python: str
    numpy: str
    numba: str
    processor: str


@cache
def environment() -> Environment:
    """Return that of this process."""
    import numba
    from llvmlite import binding

    features = ",".join(sorted(name for name, there in binding.get_host_cpu_features().items() if there))
    kind = f"{binding.get_host_cpu_name()} {hashlib.blake2b(features.encode(), digest_size=3).hexdigest()}"
    return Environment(
        VERSION, platform.python_version(), np.__version__, numba.__version__, f"{platform.machine()} {kind}"
    )


class Held:
    """A shard on a worker; pickled it is no more than its source, and read again where it is needed.

    Parameters
    ----------
    source : Source
    steps : sequence of callables
        What makes of the shard that is read the one that is meant, one after the other.
    """

    def __init__(self, source: Source, steps: Sequence[Callable[[RankingData], RankingData]] = ()) -> None:
        self._source, self._steps = source, tuple(steps)
        self._data: RankingData | None = None
        self._lock = threading.Lock()

    @property
    def data(self) -> RankingData:
        """The documents, read if they are not here."""
        with self._lock:
            if self._data is None:
                data = self._source()
                for step in self._steps:
                    data = step(data)
                self._data = data
            return self._data

    def after(self, step: Callable[[RankingData], RankingData]) -> Held:
        """Return the shard that a step makes of this one, with what is remembered there."""
        held = Held(self._source, (*self._steps, step))
        held._data = step(self.data)
        return held

    def __getstate__(self) -> dict[str, Any]:
        return {"_source": self._source, "_steps": self._steps, "_data": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


def hold(source: Source) -> Held:
    """Read a shard."""
    held = Held(source)
    with one_blas_thread():
        _ = held.data
    return held


def step_on(held: Held, step: Callable[[RankingData], RankingData]) -> Held:
    """Return the shard that a step makes of one that is held here."""
    with one_blas_thread():
        return held.after(step)


def room() -> tuple[int, int]:
    """Return how many bytes this worker may still take, and its limit; −1 twice if it has none."""
    import psutil
    from distributed import get_worker

    memory = get_worker().memory_manager
    if not memory.memory_limit:
        return -1, -1
    most = memory.memory_limit * (memory.memory_pause_fraction or RESERVE)
    return max(int(most) - psutil.Process().memory_info().rss, 0), int(memory.memory_limit)


class Packed(NamedTuple):
    """An array of bool as it travels: eight of its values in a byte."""

    bits: NDArray[np.uint8]
    shape: tuple[int, ...]


def packed(value: Any) -> Any:
    """Return what travels of an argument."""
    if isinstance(value, np.ndarray) and value.dtype == np.bool_:
        return Packed(np.packbits(value), value.shape)
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, Packed):
        count = int(np.prod(value.shape))
        return np.unpackbits(value.bits, count=count).view(np.bool_).reshape(value.shape)
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return value.copy()  # else kernels would be compiled again for arrays that came in a message
    return value


def work(
    held: dict[int, Held],
    runs: Sequence[Run],
    function: Callable[..., Any],
    common: dict[int, Any],
    own: dict[int, dict[int, Any]],
) -> list[Any]:
    """Return the sum of what a function returns over each run of shards.

    Parameters
    ----------
    held : dict of int to Held
        The shards, by number.
    runs : sequence of (int, int)
        What is added up; one shard alone is a run, too.
    function : callable
    common : dict of int to object
        The arguments that are the same for all shards, by place.
    own : dict of int to dict
        The others: of each shard, its arguments by place.
    """
    shared = {place: _unpacked(value) for place, value in common.items()}

    def part(shard: int) -> Any:
        arguments = shared | {place: _unpacked(value) for place, value in own.get(shard, {}).items()}
        return function(held[shard].data, *(arguments[place] for place in sorted(arguments)))

    with one_blas_thread():
        return [add_up(run, part) for run in runs]


T = TypeVar("T")

POLL = 0.5
"""Seconds after which a call that is not done looks whether its workers are still there."""

LOOK = 5.0
"""Seconds after which workers that have come are looked for between two calls."""

WAIT = 30.0
"""Seconds that a cluster without any worker has to get one again, and a worker to say what it is."""

PAUSE = 20.0
"""Seconds that a worker may take nothing new for want of memory."""

AGAIN = "run the same command again with --resume: what was evaluated is in the journal"


class Workers:
    """The workers of the scheduler at an address that are like this process, so that sums have the same bits.

    Raises
    ------
    OSError
        If nothing answers there, there is no worker, or one of another kind.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.client: Client = connect(address)
        self._fits: dict[str, bool] = {}
        self._threads: dict[str, int] = {}
        self._paused: dict[str, float] = {}
        try:
            for worker in self.look(refuse=True):
                assert self._fits[worker]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of everything that workers hold for this process."""
        with suppress(Exception):  # the scheduler may be gone
            self.client.close()

    def look(self, *, refuse: bool = False) -> dict[str, int]:
        """Return the threads of each worker that is there and fits, by its address.

        Parameters
        ----------
        refuse : bool, default False
            Raise an OSError for one that does not fit, instead of leaving it alone.
        """
        threads = self.asked(self.client.nthreads)
        for worker in sorted(set(threads) - set(self._fits)):
            there = self._environment_of(worker)
            if there is None:  # it is gone again
                continue
            self._fits[worker] = there == environment()
            if refuse and not self._fits[worker]:
                raise OSError(_difference(worker, there))
        self._threads = {worker: n for worker, n in sorted(threads.items()) if self._fits.get(worker)}
        self._seen = monotonic()
        return self._threads

    def there(self) -> dict[str, int]:
        """Return the same as it was some seconds ago at most; wait for a worker if there is none."""
        if monotonic() - self._seen > LOOK:
            self.look()
        begin = monotonic()
        while not self._threads:
            if monotonic() - begin > WAIT:
                raise OSError(
                    f"the Dask scheduler at {self.address} has had no worker for {WAIT:.0f} s; start some, and {AGAIN}"
                )
            threading.Event().wait(POLL)
            self.look()
        return self._threads

    def refuse_paused(self) -> None:
        """Raise an OSError for a worker that has taken nothing new for long, as its memory is full."""
        info = self.asked(lambda: self.client.scheduler_info(n_workers=-1))["workers"]
        paused = {worker for worker, entry in info.items() if entry.get("status") == "paused"}
        self._paused = {worker: self._paused.get(worker, monotonic()) for worker in paused & set(self._threads)}
        for worker, begin in self._paused.items():
            if monotonic() - begin > PAUSE:
                raise OSError(
                    f"the Dask worker {worker} is out of memory: it uses nearly all of its "
                    f"{in_gib(info[worker]['memory_limit'])} and has stopped; give it more, or take more workers, and "
                    f"{AGAIN}"
                )

    def asked(self, question: Callable[[], T]) -> T:
        """Return what the scheduler answers; raise an OSError that says so if it is gone."""
        try:
            if self.client.status != "running":  # the answer would be half a minute of silence
                raise OSError
            return question()
        except (OSError, CancelledError, asyncio.CancelledError):
            raise gone(self.address, AGAIN) from None

    def _environment_of(self, worker: str) -> Environment | None:
        try:
            return self.answer(worker, environment)
        except (ImportError, AttributeError) as error:
            raise OSError(f"the Dask worker {worker} cannot take part ({error}); it needs the same moerank") from None

    def answer(self, worker: str, question: Callable[[], T]) -> T | None:
        """Return what a worker answers; None if it is gone before it does, or busy for long."""
        asked = self.asked(lambda: self.client.submit(question, workers=[worker], pure=False))
        end = monotonic() + WAIT
        while monotonic() < end:
            try:
                found: T = asked.result(timeout=POLL)
            except (TimeoutError, CancelledError):
                if worker not in self.asked(self.client.nthreads):
                    return None
            else:
                return found
        return None


def in_gib(n_bytes: float) -> str:
    """Return a number of bytes as messages have it."""
    return f"{n_bytes / 2**30:.3g} GiB"


def _difference(worker: str, there: Environment) -> str:
    here = environment()
    what = next(name for name in Environment._fields if getattr(here, name) != getattr(there, name))
    return (
        f"the Dask worker {worker} has another {what} ({getattr(there, what)}) than this process "
        f"({getattr(here, what)}), so that sums would have other bits; take workers that are alike, and start the run "
        "where it is like them"
    )


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


class DaskCluster:
    """The workers of a Dask scheduler, on which training data lie in shards.

    What trains on such data sends weights and masks to the workers, and gets sums; the documents stay where they are.
    The same shards give the same bits on any number of workers, and in one process without Dask (`cut_into_shards`).

    Parameters
    ----------
    address : str
        Of the scheduler.

    Raises
    ------
    OSError
        If nothing answers there, there is no worker, or a worker has another processor or other versions than this
        process: sums would have other bits.

    Notes
    -----
    Dask's messages are pickles: whoever reaches the scheduler can run code on the workers and here. Use a network that
    others do not reach, or Dask's TLS.

    Examples
    --------
    >>> with DaskCluster("tcp://10.0.0.1:8786") as cluster:  # doctest: +SKIP
    ...     solver = MOFSRank(random_state=0).fit(cluster.scatter(train, 8))
    """

    def __init__(self, address: str) -> None:
        self._workers = Workers(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all shards, and of what is under way."""
        self._workers.close()

    def scatter(self, data: RankingData, n_shards: int) -> ShardedData:
        """Send a data set to the workers in shards, cut as `cut_into_shards` does.

        It stays here as well, and is sent again where a worker is lost.

        Raises
        ------
        OSError
            If a worker has no room for its shards.
        ValueError
            For fewer queries than shards.
        """
        return self.hold([Given(part) for part in parts_of(data, n_shards)], data.name)

    def hold(self, sources: Sequence[Source], name: str) -> ShardedData:
        """Let the workers read shards, each a share of them.

        Parameters
        ----------
        sources : sequence of callables
            Each is sent to the worker that is to read its shard, and returns it there; see `Source`.
        name : str
            How messages call the data.

        Raises
        ------
        OSError
            If a worker has no room for its shards.
        ValueError, OSError
            What a source raises.
        """
        return ShardedData(self.shards(sources), name)

    def shards(self, sources: Sequence[Source]) -> DaskShards:
        """Return the shards that `hold` makes a data set of, before anything is known of what they hold."""
        return DaskShards(self._workers, sources)
