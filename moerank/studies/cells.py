"""The cells of a study: their files and claims in its folder, and the workers that run them, here or elsewhere."""

import os
import signal
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from filelock import FileLock, Timeout
from threadpoolctl import threadpool_limits

from moerank.checks import cap_workers, check_at_least
from moerank.files import FULL, Json, cannot_write, prepare_folder, replace_file, writing
from moerank.identity import digest
from moerank.kernels.compiled import end_with
from moerank.mofsrank.dask_slices import connect, gone
from moerank.runs.result import Stored
from moerank.runs.sources import DataFolder
from moerank.solvers import allow_code, code_is_allowed

CLAIMS = ".claims"
STARTS = "starts.log"
REMEDY = "; remove the file to run its cell again"
# Seconds between two checks for cells that other processes have finished.
POLL = 0.3

# Environment variables that limit every library of a worker process to one thread.
ONE_THREAD = {
    f"{library}_THREADS": "1"
    for library in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM", "NUMBA_NUM")
}


class Work(ABC):
    """A cell of a `Study` or a `SearchStudy`: a worker runs it, and the folder stores its outcome."""

    outcome: ClassVar[type[Stored]]  # the content of its file

    @property
    @abstractmethod
    def label(self) -> str:
        """The name of the cell in messages."""

    @abstractmethod
    def identity(self) -> Any:
        """Return the configuration that identifies this cell, as plain JSON values."""

    @cached_property
    def key(self) -> str:
        """The name of the cell's file: a digest of its identity."""
        return digest(self.identity())

    @abstractmethod
    def run(self, data: DataFolder) -> Stored:
        """Run the cell."""

    def read(self, path: Path) -> Any:
        """Return the content of the cell's file."""
        return self.outcome.read_file(path, REMEDY)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Work) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


WorkT = TypeVar("WorkT", bound=Work)


class Failure(Stored):
    """Why a cell failed."""

    cell: str
    error: str
    traceback: str


class Store:
    """The files of a study.

    ``study.json`` lists the requests, ``cells/KEY.json`` is the result of a finished cell, ``failures/KEY.json`` has
    the message and traceback of a failed one, and ``starts.log`` has a line for every start of a cell. A process claims
    a cell by locking the file ``.claims/KEY``. The operating system releases the lock when the process ends, however it
    ends, so no claim goes stale. If a file cannot be written, an OSError names the file and the remedy. Use ``with`` to
    write to a store; reading from one creates no folder.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._locks: dict[str, FileLock] = {}

    def __enter__(self) -> Self:
        for part in ("", "cells", "failures", CLAIMS):
            prepare_folder(self.folder / part)
        return self

    def __exit__(self, *exception: object) -> None:
        for name in list(self._locks):
            self.release(name)

    @contextmanager
    def alone(self, name: str) -> Iterator[Path]:
        """Yield the path of a file in the folder, locked so that no other process writes it meanwhile."""
        self._lock(name, wait=True)
        try:
            yield self.folder / name
        finally:
            self.release(name)

    def done(self) -> tuple[set[str], set[str]]:
        """Return the keys of the finished and of the failed cells from two listings, without reading a file."""
        finished, failed = self._keys("cells"), self._keys("failures")
        return finished, failed - finished

    def _keys(self, part: str) -> set[str]:
        """Return the keys of the files in one of the folders."""
        return {path.stem for path in (self.folder / part).glob("*.json")}

    def claim(self, cell: Work) -> bool:
        """Claim a cell; return False if it is done already, or if another process has claimed it."""
        if not self._lock(cell.key):
            return False
        # Another process may have finished it since the last check.
        if any(self._path(cell.key, part).is_file() for part in ("cells", "failures")):
            self.release(cell.key)
            return False
        path = self.folder / STARTS
        with writing(path), path.open("a", encoding="utf-8") as log:
            log.write(f"{cell.key} {os.getpid()} {cell.label}\n")
        return True

    def finish(self, cell: Work, result: str) -> None:
        """Write the result of a claimed cell and release the claim."""
        replace_file(self._path(cell.key), result.encode())
        self.forget_failure(cell)
        self.release(cell.key)

    def fail(self, cell: Work, error: str, traceback: str = "") -> None:
        """Write why a claimed cell failed and release the claim."""
        failure = Failure(cell=cell.label, error=error, traceback=traceback)
        failure.write(self._path(cell.key, "failures"))
        self.release(cell.key)

    def forget_failure(self, cell: Work) -> None:
        """Remove the failure of a cell, so that it counts as never tried."""
        self._path(cell.key, "failures").unlink(missing_ok=True)

    def results(self, cells: Iterable[WorkT]) -> dict[WorkT, Any]:
        """Return the results of those cells that are finished."""
        finished, _ = self.done()
        return {cell: cell.read(self._path(cell.key)) for cell in cells if cell.key in finished}

    def failures(self, cells: Iterable[WorkT]) -> dict[WorkT, Json]:
        """Return the failures of those cells that failed."""
        _, failed = self.done()
        return {
            cell: Failure.read_file(self._path(cell.key, "failures"), REMEDY).model_dump()
            for cell in cells
            if cell.key in failed
        }

    def _path(self, key: str, part: str = "cells") -> Path:
        return self.folder / part / f"{key}.json"

    def _lock(self, name: str, *, wait: bool = False) -> bool:
        """Lock a file in `.claims`; return False if this or another process holds the lock."""
        path = self.folder / CLAIMS / name
        lock = FileLock(path, blocking=wait, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            return False
        except OSError as error:
            raise cannot_write(path, error) from None  # some file systems have no locks
        self._locks[name] = lock
        return True

    def release(self, name: str) -> None:
        """Release a claim: remove its file first and then the lock, because a waiting process makes a new file."""
        if lock := self._locks.pop(name, None):
            # Windows removes no open file, but the lock does so when it is released.
            with suppress(OSError):
                (self.folder / CLAIMS / name).unlink()
            lock.release()


class Outcome(NamedTuple):
    """The outcome of a cell: its result or its failure, and its warnings."""

    result: str | None = None  # the text of its file
    failure: tuple[str, str] = ("", "")  # error and traceback
    warnings: tuple[Warning | str, ...] = ()


def run_cell(cell: Work, data: DataFolder, code_allowed: bool) -> Outcome:
    """Run one cell in one thread. An exception becomes its outcome, so that it does not stop other cells.

    A full disk raises an OSError instead, because the next cell fails as well if the disk is full.
    """
    result, failure = None, ("", "")
    with allow_code(code_allowed), warnings.catch_warnings(record=True) as caught:
        try:
            # run_fold limits the threads of linear algebra.
            with threadpool_limits(1, user_api="openmp"):
                result = cell.run(data).to_json()
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FULL:
                raise
            failure = (f"{type(error).__name__}: {error}", traceback.format_exc())
    return Outcome(result, failure, tuple(warning.message for warning in caught))


class Crew(NamedTuple):
    """Where cells run: how many fit at once, how to submit a call, and how to get the outcome of one that ended."""

    capacity: Callable[[], int]
    submit: Callable[..., Future[Outcome]]
    outcome: Callable[[Future[Outcome]], Outcome] = Future.result


def _call_here(function: Callable[..., Outcome], *arguments: object) -> Future[Outcome]:
    """Call a function in this process."""
    future: Future[Outcome] = Future()
    future.set_result(function(*arguments))
    return future


@contextmanager
def processes(n_processes: int) -> Iterator[Crew]:
    """Run cells in processes of this machine. Each has its own pool: if one dies, we know which cell it ran."""
    from loky import ProcessPoolExecutor

    idle: list[ProcessPoolExecutor] = []
    busy = {}

    def submit(function: Callable[..., Outcome], *arguments: object) -> Future[Outcome]:
        try:
            if idle:
                pool = idle.pop()
            else:
                pool = ProcessPoolExecutor(
                    1, initializer=end_with, initargs=(os.getpid(),), env=ONE_THREAD
                )
            with _without_interrupts():
                future = pool.submit(function, *arguments)
        except OSError as error:
            reason = error.strerror or error
            raise OSError(f"cannot start a process: {reason}; use 1 worker") from None
        busy[future] = pool
        return future

    def outcome(future: Future[Outcome]) -> Outcome:
        pool, error = busy.pop(future), future.exception()
        if isinstance(error, BrokenExecutor):
            pool.shutdown()
            return Outcome(failure=(f"its process died: {error}", ""))
        idle.append(pool)
        return future.result()

    with warnings.catch_warnings():
        # Between two cells, loky replaces a process that uses much memory, and warns about it.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        try:
            yield Crew(lambda: n_processes, submit, outcome)
        finally:
            for pool in (*idle, *busy.values()):
                pool.shutdown(kill_workers=True)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block Ctrl-C in processes that start here: the terminal sends it to them as well, but their parent handles it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows has none
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # if it started with the first process, it would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def dask_cluster(address: str) -> Iterator[Crew]:
    """Run cells on the workers of a Dask scheduler, one cell per thread of a worker."""
    client = connect(address)
    executor = client.get_executor(pure=False)
    remedy = "run the same command again; finished cells are saved"

    def capacity() -> int:
        try:
            return max(1, sum(client.nthreads().values()))
        except OSError:
            raise gone(address, remedy) from None

    def outcome(future: Future[Outcome]) -> Outcome:
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            return Outcome(failure=(f"its worker died several times: {error}", ""))
        except CancelledError:
            raise gone(address, remedy) from None

    with client:
        yield Crew(capacity, executor.submit, outcome)


def run_cells(
    store: Store,
    cells: list[WorkT],
    *,
    workers: int,
    dask: str | None,
    data: DataFolder = None,
    retry_failed: bool,
    done: Callable[[WorkT, bool], object],
) -> None:
    """Run all cells that have neither a result nor a failure, and write each outcome when it arrives.

    Several processes may work in one folder. Each takes cells that no other has claimed, and stays until none is left,
    so that it takes over the cells of a process that was killed. Workers start only if there are cells to run.
    ``done(cell, succeeded)`` is called for every cell that this or another process finishes. If a file cannot be
    written, the running cells are dropped and the finished ones stay.
    """
    check_at_least(1, workers=workers)
    for cell in cells if retry_failed else ():
        store.forget_failure(cell)
    remaining = {cell.key: cell for cell in cells}
    _drop_done(store, remaining, done)
    if not remaining:
        return
    running: dict[Future[Outcome], WorkT] = {}
    next_look = monotonic() + POLL
    with _crew(workers, dask) as crew:
        while remaining:
            idle = remaining.keys() - {cell.key for cell in running.values()}
            claimed = (cell for key, cell in remaining.items() if key in idle and store.claim(cell))
            n_free = max(0, crew.capacity() - len(running))  # workers may have died
            for cell in islice(claimed, n_free):
                running[crew.submit(run_cell, cell, data, code_is_allowed())] = cell
            if not running:
                sleep(POLL)
            for future in wait(running, POLL, FIRST_COMPLETED).done:
                outcome, cell = crew.outcome(future), running.pop(future)
                for warning in outcome.warnings:
                    warnings.warn(warning, stacklevel=2)
                if outcome.result is not None:
                    store.finish(cell, outcome.result)
                else:
                    store.fail(cell, *outcome.failure)
                done(remaining.pop(cell.key), outcome.result is not None)
            if monotonic() >= next_look:
                _drop_done(store, remaining, done)
                next_look = monotonic() + POLL


def _crew(workers: int, dask: str | None) -> AbstractContextManager[Crew]:
    """Return the workers that run cells."""
    if dask is not None:
        return dask_cluster(dask)
    if workers > 1:
        return processes(cap_workers(workers))
    return nullcontext(Crew(lambda: 1, _call_here))


def _drop_done(
    store: Store, remaining: dict[str, WorkT], done: Callable[[WorkT, bool], object]
) -> None:
    """Remove the cells that any process has finished from `remaining`."""
    finished, failed = store.done()
    for key in [key for key in remaining if key in finished or key in failed]:
        done(remaining.pop(key), key in finished)
