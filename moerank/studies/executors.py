"""Executors of the cells of a study: this process, processes of this machine, or a Dask cluster."""

from __future__ import annotations

import os
import signal
import traceback
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from threadpoolctl import threadpool_limits

from moerank.checks import check_at_least, most_workers
from moerank.files import FULL, Json
from moerank.kernels.ahead import end_with
from moerank.mofsrank.dask_slices import connect, gone
from moerank.solvers import allow_code, code_is_allowed
from moerank.studies.grid import Work
from moerank.studies.store import Store

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)
"""Environment that pins every library of a worker to one thread."""


class Outcome(NamedTuple):
    """The outcome of a cell: its result, or its failure, or the reason why its process died."""

    result: str | None = None  # its text
    failure: Json | None = None  # "error" and "traceback"
    death: str = ""
    warned: tuple[str, ...] = ()  # the texts of warnings of another process


class Executor:
    """Runs cells in this process, one after another, or elsewhere. Leaving its context drops those that still run."""

    def __init__(self, data: str | Path | None) -> None:
        self._data = data
        self._running: dict[Future[Outcome], Work] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def room(self) -> int:
        """Return how many more cells may be started."""
        return 1 - len(self._running)

    def start(self, cell: Work) -> None:
        """Start a cell."""
        self._running[Future()] = cell

    def wait(self, seconds: float) -> list[tuple[Work, Outcome]]:
        """Return finished cells with their outcomes; wait about so many seconds for the first."""
        cells, self._running = self._running.values(), {}
        return [(cell, run_cell(cell, self._data)) for cell in cells]


def find_executor(workers: int = 1, dask: str | None = None, data: str | Path | None = None) -> Executor:
    """Return an executor: the workers of a Dask scheduler, this process, or several processes."""
    check_at_least(1, workers=workers)
    if dask is not None:
        return _Cluster(dask, data)
    return Executor(data) if workers == 1 else _Processes(most_workers(workers), data)


def check_can_be_sent(objects: Mapping[str, object]) -> None:
    """Refuse by its name a solver, or a search, that cannot be sent to another process, as one with a lock."""
    from loky.backend.reduction import dumps

    for name, sent in objects.items():
        try:
            dumps(sent)
        except Exception as error:  # whatever an object of the user's raises
            reason = " ".join(str(error).split())
            raise ValueError(f"{name} cannot be sent to another process ({reason}); take workers=1") from None


def run_cell(cell: Work, data: str | Path | None) -> Outcome:
    """Run one cell in one thread. Whatever goes wrong is its outcome, so that it stops no other.

    A full disk is an OSError: that is no fault of the cell, and the next one would fare no better.
    """
    try:
        with threadpool_limits(1, user_api="openmp"):  # run_fold sees to linear algebra
            return Outcome(cell.run(data).to_json())
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise OSError(
                f"{cell.label} cannot write {error.filename or 'its temporary files'}: {error.strerror}; make room, "
                "and run the same command again"
            ) from None
        failure = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        return Outcome(failure=failure)


def _run_elsewhere(cell: Work, data: str | Path | None, code_allowed: bool) -> Outcome:
    """Run one cell in another process, and keep the texts of its warnings."""
    with allow_code(code_allowed), warnings.catch_warnings(record=True) as caught:
        outcome = run_cell(cell, data)
    return outcome._replace(warned=tuple(str(warning.message) for warning in caught))


class _Elsewhere(Executor):
    """Runs cells as futures."""

    def wait(self, seconds: float) -> list[tuple[Work, Outcome]]:
        done = wait(self._running, seconds, FIRST_COMPLETED).done
        return [(self._running.pop(future), self._outcome(future)) for future in done]

    @abstractmethod
    def _outcome(self, future: Future[Outcome]) -> Outcome:
        """Return the outcome of a cell that has ended."""


class _Processes(_Elsewhere):
    """Processes of this machine, each a pool of its own, so that the cell of a process that dies is known."""

    def __init__(self, n_processes: int, data: str | Path | None) -> None:
        super().__init__(data)
        self._n_processes = n_processes
        self._pools: list[ProcessPoolExecutor] = []
        self._busy: dict[Future[Outcome], ProcessPoolExecutor] = {}
        self._warnings = warnings.catch_warnings()

    def __enter__(self) -> Self:
        self._warnings.__enter__()
        # loky replaces a process that holds much memory between two cells, and warns.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        return self

    def __exit__(self, *exception: object) -> None:
        for pool in self._pools:
            pool.shutdown(kill_workers=True)
        self._warnings.__exit__(None, None, None)

    def room(self) -> int:
        return self._n_processes - len(self._running)

    def start(self, cell: Work) -> None:
        from loky import ProcessPoolExecutor

        pool = next((pool for pool in self._pools if pool not in self._busy.values()), None)
        if pool is None:
            pool = ProcessPoolExecutor(1, initializer=end_with, initargs=(os.getpid(),), env=ONE_THREAD)
            self._pools.append(pool)
        with without_interrupts():
            future = pool.submit(_run_elsewhere, cell, self._data, code_is_allowed())
        self._running[future], self._busy[future] = cell, pool

    def _outcome(self, future: Future[Outcome]) -> Outcome:
        pool = self._busy.pop(future)
        try:
            return future.result()
        except BrokenExecutor as error:
            self._pools.remove(pool)
            pool.shutdown()
            return Outcome(death=str(error))


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Block Ctrl-C in processes that are started here: a terminal sends it to them, too, but their parent decides."""
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it starts with the first process, and would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Cluster(_Elsewhere):
    """The workers of a Dask scheduler; each thread of a worker takes a cell."""

    def __init__(self, address: str, data: str | Path | None) -> None:
        super().__init__(data)
        self._address, self._client = address, connect(address)
        self._workers = self._client.get_executor(pure=False)

    def __exit__(self, *exception: object) -> None:
        self._client.close()

    def room(self) -> int:
        try:
            return max(1, sum(self._client.nthreads().values())) - len(self._running)
        except OSError:
            raise self._gone() from None

    def start(self, cell: Work) -> None:
        self._running[self._workers.submit(_run_elsewhere, cell, self._data, code_is_allowed())] = cell

    def _outcome(self, future: Future[Outcome]) -> Outcome:
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            failure = {"error": f"the worker died again and again: {error}", "traceback": ""}
            return Outcome(failure=failure)
        except CancelledError:
            raise self._gone() from None
        except (ImportError, AttributeError) as error:
            raise OSError(
                f"the Dask workers at {self._address} cannot run a cell ({error}); they need the same moerank"
            ) from None

    def _gone(self) -> OSError:
        return gone(self._address, "run the same command again: what is finished stays")


POLL = 0.3
"""Seconds between two looks at the cells of other processes."""

MOST_DEATHS = 3
"""A cell whose process died so often counts as failed."""


WorkT = TypeVar("WorkT", bound=Work)


def run_cells(
    store: Store,
    cells: list[WorkT],
    executor: Callable[[], Executor],
    done: Callable[[WorkT, bool], object] = lambda cell, succeeded: None,
    started: Callable[[WorkT], object] = lambda cell: None,
) -> None:
    """Run all cells that have neither a result nor a failure, and write the outcomes as they come.

    Several processes may do so in one folder. Each takes cells that no other has claimed, and stays until none is left,
    so that it takes over the cells of a process that was killed. The `executor` is made only if there are cells to run.
    ``done(cell, succeeded)`` is called for every cell that this or another process finished, ``started(cell)`` for
    every cell that this process begins. If a file cannot be written, cells that still run are dropped, and finished
    ones stay.
    """
    left = {cell.key: cell for cell in cells}
    under_way: dict[str, WorkT] = {}
    deaths: Counter[str] = Counter()

    def look() -> float:
        """Strike off cells that any process has done; return when to look again."""
        finished, failed = store.done()
        for key in [key for key in left if key in finished or key in failed]:
            done(left.pop(key), key in finished)
        return monotonic() + POLL

    def write(cell: Work, outcome: Outcome) -> None:
        for text in outcome.warned:
            warnings.warn(text, stacklevel=2)
        if outcome.result is not None:
            store.finish(cell, outcome.result)
        elif outcome.failure is not None:
            store.fail(cell, outcome.failure)
        else:
            deaths[cell.key] += 1
            if deaths[cell.key] < MOST_DEATHS:
                store.release(cell)
                return
            reason = f"its process died {MOST_DEATHS} times: {outcome.death}"
            store.fail(cell, {"error": reason, "traceback": ""})
        done(left.pop(cell.key), outcome.result is not None)

    next_look = look()
    if not left:
        return
    with executor() as runs:
        try:
            while left:
                claimed = (cell for key, cell in left.items() if key not in under_way and store.claim(cell))
                for cell in islice(claimed, max(0, runs.room())):  # negative where workers have died
                    under_way[cell.key] = cell
                    runs.start(cell)
                    started(cell)
                if not under_way:
                    sleep(POLL)
                for ended, outcome in runs.wait(POLL):
                    under_way.pop(ended.key, None)
                    write(ended, outcome)
                if monotonic() >= next_look:
                    next_look = look()
        finally:
            for cell in under_way.values():
                store.release(cell)
