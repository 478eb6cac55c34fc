"""What runs the cells of a study: this process, processes of this machine, or a Dask cluster."""

from __future__ import annotations

import os
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from threadpoolctl import threadpool_limits

from moerank.data.dask import DaskCluster, connect, gone
from moerank.files import FULL
from moerank.studies.grid import Cell
from moerank.studies.run_fold import run_fold
from moerank.studies.solver import Solver
from moerank.studies.store import Store
from moerank.systems import leave_interrupts_to, without_interrupts

if TYPE_CHECKING:
    from joblib.externals.loky import ProcessPoolExecutor


__all__ = ["Executor", "Outcome", "check_can_be_sent", "find_executor", "run_cells"]

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
"""What pins every library that a worker loads to one thread."""


Ended: TypeAlias = tuple[str | None, dict[str, Any] | None]
"""The text of a result, or why there is none."""


@dataclass(frozen=True)
class Outcome:
    """What became of a cell.

    Attributes
    ----------
    cell : Cell
    result : str, optional
        The text of its result.
    failure : dict, optional
        Without a result, why it failed: "error" and "traceback".
    death : str, optional
        With neither, how the process died that ran the cell.
    """

    cell: Cell
    result: str | None = None
    failure: dict[str, Any] | None = None
    death: str = ""


class Executor(Protocol):
    """Runs cells. A context; leaving it drops what is still under way."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def room(self) -> int:
        """Return how many more cells may be started."""

    def start(self, cell: Cell) -> None:
        """Start a cell."""

    def wait(self, seconds: float) -> list[Outcome]:
        """Return what became of cells that are done; wait so long, about, for the first of them."""


def find_executor(
    workers: int = 1, dask: str | None = None, data: str | Path | None = None, *, shards: bool = False
) -> Executor:
    """Return where cells run: on the workers of a Dask scheduler, in this process, or in several.

    Where data are in `shards`, a cell takes all workers of a Dask scheduler, and the next one begins after it.

    Raises
    ------
    OSError
        If there is no Dask scheduler at the address, or none of its workers, or no Dask here.
    """
    if dask is not None and shards:
        return _Here(data, DaskCluster(dask))
    if dask is not None:
        return _Cluster(dask, data)
    return _Here(data) if workers == 1 else _Processes(workers, data)


def check_can_be_sent(solvers: Iterable[Solver]) -> None:
    """Refuse by name a solver that cannot be sent to another process.

    Raises
    ------
    ValueError
        If it holds a lock, an open file, or the like.
    """
    from joblib.externals.loky.backend.reduction import dumps  # needs more of the system than one process does

    for solver in solvers:
        try:
            dumps(solver)
        except Exception as error:  # whatever an object of the user's raises
            reason = " ".join(str(error).split())
            raise ValueError(
                f"the solver {solver.label} cannot be sent to another process ({reason}); take workers=1"
            ) from None


def run_cell(cell: Cell, data: str | Path | None, cluster: DaskCluster | None = None) -> Outcome:
    """Run one cell in one thread. Whatever goes wrong is its outcome, so that it stops no other.

    Raises
    ------
    OSError
        If the disk is full: that is no fault of the cell, and the next one would fare no better.
    """
    try:
        with threadpool_limits(1, user_api="openmp"):  # run_fold sees to linear algebra
            result = run_fold(
                cell.problem,
                cell.fold,
                cell.solver,
                cell.seed,
                random_state=cell.random_state,
                data=data,
                baselines=False,
                cluster=cluster,
            )
        return Outcome(cell, result.to_json())
    except Exception as error:
        if _is_interrupt(error):
            raise KeyboardInterrupt from None
        if isinstance(error, OSError) and error.errno in FULL:
            raise OSError(
                f"{cell.label} cannot write {error.filename or 'its temporary files'}: {error.strerror}; make room, "
                "and run the same command again"
            ) from None
        failure = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        return Outcome(cell, failure=failure)


def _run_elsewhere(cell: Cell, data: str | Path | None) -> Ended:
    """Run one cell, and send back what became of it, but not the cell: data may be with it."""
    outcome = run_cell(cell, data)
    return outcome.result, outcome.failure


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: where it comes in a compiled kernel, a SystemError comes out."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


class _Here:
    """The process itself: one cell after another, perhaps with the shards of its data on a Dask cluster."""

    def __init__(self, data: str | Path | None, cluster: DaskCluster | None = None) -> None:
        self._data, self._cluster = data, cluster
        self._next: list[Cell] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._cluster is not None:
            self._cluster.close()

    def room(self) -> int:
        return 1 - len(self._next)

    def start(self, cell: Cell) -> None:
        self._next.append(cell)

    def wait(self, seconds: float) -> list[Outcome]:
        return [run_cell(self._next.pop(), self._data, self._cluster)] if self._next else []


class _Processes:
    """Processes of this machine, each a pool of its own: where one dies, it is known which cell it ran."""

    def __init__(self, n_processes: int, data: str | Path | None) -> None:
        self._n_processes, self._data = n_processes, data
        self._pools: list[ProcessPoolExecutor] = []
        self._running: dict[Future[Ended], tuple[Cell, ProcessPoolExecutor]] = {}
        self._warnings = warnings.catch_warnings()

    def __enter__(self) -> Self:
        self._warnings.__enter__()
        # A process that has come to hold much memory is replaced between two cells, as it should be.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        return self

    def __exit__(self, *exception: object) -> None:
        for pool in self._pools:
            pool.shutdown(kill_workers=True)
        self._warnings.__exit__(None, None, None)

    def room(self) -> int:
        return self._n_processes - len(self._running)

    def start(self, cell: Cell) -> None:
        from joblib.externals.loky import ProcessPoolExecutor  # needs more of the system than one process does

        busy = [pool for _, pool in self._running.values()]
        pool = next((pool for pool in self._pools if pool not in busy), None)
        if pool is None:
            pool = ProcessPoolExecutor(1, initializer=leave_interrupts_to, initargs=(os.getpid(),), env=ONE_THREAD)
            self._pools.append(pool)
        with without_interrupts():
            self._running[pool.submit(_run_elsewhere, cell, self._data)] = cell, pool

    def wait(self, seconds: float) -> list[Outcome]:
        outcomes = []
        for future in wait(self._running, seconds, FIRST_COMPLETED).done:
            cell, pool = self._running.pop(future)
            try:
                outcomes.append(Outcome(cell, *future.result()))
            except BrokenExecutor as error:
                self._pools.remove(pool)
                pool.shutdown()
                outcomes.append(Outcome(cell, death=str(error)))
        return outcomes


class _Cluster:
    """The workers of a Dask scheduler; each thread of a worker takes a cell."""

    def __init__(self, address: str, data: str | Path | None) -> None:
        self._address, self._data = address, data
        self._client = connect(address)
        self._running: dict[Any, Cell] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._client.close()

    def room(self) -> int:
        try:
            return max(1, sum(self._client.nthreads().values())) - len(self._running)
        except OSError:
            raise self._gone() from None

    def start(self, cell: Cell) -> None:
        self._running[self._client.submit(_run_elsewhere, cell, self._data, pure=False)] = cell

    def wait(self, seconds: float) -> list[Outcome]:
        from distributed import KilledWorker
        from distributed import wait as wait_for

        if not self._running:
            return []
        with suppress(TimeoutError, CancelledError), self._client.as_current():
            wait_for(list(self._running), timeout=seconds, return_when="FIRST_COMPLETED")
        outcomes = []
        for future in [future for future in self._running if future.done()]:
            cell = self._running.pop(future)
            try:
                outcomes.append(Outcome(cell, *future.result()))
            except KilledWorker as error:
                failure = {"error": f"the worker died again and again: {error}", "traceback": ""}
                outcomes.append(Outcome(cell, failure=failure))
            except CancelledError:
                raise self._gone() from None
            except (ImportError, AttributeError) as error:
                raise OSError(
                    f"the Dask workers at {self._address} cannot run a cell ({error}); they need the same moerank"
                ) from None
        return outcomes

    def _gone(self) -> OSError:
        return gone(self._address, "run the same command again: what is finished stays")


POLL = 0.3
"""Seconds between two looks at what other processes have done."""

MOST_DEATHS = 3
"""Times that a cell may take its process with it before it counts as failed."""


def run_cells(
    store: Store,
    cells: list[Cell],
    executor: Callable[[], Executor],
    done: Callable[[Cell, bool], object] = lambda cell, succeeded: None,
    started: Callable[[Cell], object] = lambda cell: None,
) -> None:
    """Run all cells that have neither a result nor a failure, and write both as they come.

    Several processes may do so in one folder: each takes cells that no other has claimed, and stays until none is
    left, so that it takes over what another leaves behind.

    Parameters
    ----------
    store : Store
    cells : list of Cell
    executor : callable
        Returns what runs the cells; called if there are any to run.
    done : callable
        Called as ``done(cell, succeeded)`` for every cell that this or another process has done.
    started : callable
        Called as ``started(cell)`` for every cell that this process begins.

    Raises
    ------
    OSError
        If something cannot be written. The cells under way are dropped, what is finished stays.
    """
    left = dict.fromkeys(cells)
    under_way: set[Cell] = set()
    deaths: Counter[Cell] = Counter()

    def strike_off(cell: Cell, succeeded: bool) -> None:
        del left[cell]
        done(cell, succeeded)

    def look() -> float:
        """Strike off what is done, whoever did it; return when to look again."""
        finished, failed = store.done()
        for cell in [cell for cell in left if cell.key in finished or cell.key in failed]:
            strike_off(cell, cell.key in finished)
        return monotonic() + POLL

    def write(outcome: Outcome) -> None:
        cell = outcome.cell
        failure = outcome.failure
        if outcome.result is None and failure is None:
            deaths[cell] += 1
            if deaths[cell] < MOST_DEATHS:
                store.release(cell)
                return
            reason = f"its process died {MOST_DEATHS} times: {outcome.death}"
            failure = {"error": reason, "traceback": ""}
        if outcome.result is not None:
            store.finish(cell, outcome.result)
        else:
            store.fail(cell, failure or {})
        strike_off(cell, outcome.result is not None)

    next_look = look()
    if not left:
        return
    with executor() as runs:
        try:
            while left:
                room = runs.room()
                for cell in left:
                    if room == 0:
                        break
                    if cell not in under_way and store.claim(cell):
                        under_way.add(cell)
                        runs.start(cell)
                        started(cell)
                        room -= 1
                if not under_way:
                    sleep(POLL)
                for outcome in runs.wait(POLL):
                    under_way.discard(outcome.cell)
                    write(outcome)
                if monotonic() >= next_look:
                    next_look = look()
        finally:
            for cell in under_way:
                store.release(cell)
