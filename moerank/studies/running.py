"""Running cells: one after another, in processes of this machine, or on a Dask cluster; the results are the same."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from time import sleep
from typing import Any

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from moerank.studies.cell import Cell
from moerank.studies.run_one import run_fold
from moerank.studies.store import Store

__all__ = ["run_cells"]

Outcome = tuple[Cell, str | None, dict[str, Any] | None]
"""A cell, and the text of its result or else why it failed."""

POLL = 0.3
"""Seconds between two looks at cells that another process works on."""

MOST_DEATHS = 3
"""Times that a cell may take its process with it before it counts as failed."""


def run_cells(
    store: Store,
    cells: list[Cell],
    *,
    workers: int = 1,
    dask: str | None = None,
    data: str | Path | None = None,
    done: Callable[[Cell, bool], object] = lambda cell, succeeded: None,
) -> None:
    """Run all cells that have neither a result nor a failure, and write both as they come.

    Several processes may do so in one folder: each takes cells that no other has claimed, and stays until none is
    left, so that it takes over what another leaves behind.

    Parameters
    ----------
    store : Store
    cells : list of Cell
    workers : int, default 1
        Processes of this machine, one thread each.
    dask : str, optional
        Address of a Dask scheduler, whose workers run the cells instead. They need the package and the data.
    data : path, optional
        Where LETOR folders are.
    done : callable
        Called as ``done(cell, succeeded)`` for every cell that this or another process has done.
    """
    deaths: Counter[str] = Counter()
    left = dict.fromkeys(cells)

    def look() -> None:
        """Strike off the cells that are done, whoever did them."""
        for cell in [cell for cell in left if _is_done(store, cell)]:
            del left[cell]
            done(cell, store.is_finished(cell))

    look()
    while left:
        under_way: dict[str, Cell] = {}
        claimed = (cell for cell in list(left) if not _is_done(store, cell) and store.claim(cell))
        try:
            for cell, result, failure in _outcomes(_noting(claimed, under_way), workers, dask, data):
                del under_way[cell.key]
                if result is not None:
                    store.finish(cell, result)
                else:
                    store.fail(cell, failure or {})
                look()
        except TerminatedWorkerError as error:
            for cell in under_way.values():
                deaths[cell.key] += 1
                if deaths[cell.key] == MOST_DEATHS:
                    reason = f"the process died {MOST_DEATHS} times while the cell was under way: {error}"
                    store.fail(cell, {"error": reason, "traceback": ""})
        finally:
            for cell in under_way.values():
                store.release(cell)
        before = len(left)
        look()
        if len(left) == before:
            sleep(POLL)


def run_cell(cell: Cell, data: str | Path | None) -> Outcome:
    """Run one cell in one thread. Whatever goes wrong is its outcome, so that it stops no other."""
    try:
        result = run_fold(
            cell.setting, cell.fold, solver=cell.solver.name, seed=cell.random_state, data=data, baselines=False
        )
        return cell, result.to_json(), None
    except Exception as error:
        return cell, None, {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}


def _outcomes(cells: Iterator[Cell], workers: int, dask: str | None, data: str | Path | None) -> Iterator[Outcome]:
    """Run cells as they are taken, in any order; `cells` is asked for the next one only when there is room."""
    if dask is not None:
        yield from _on_dask(cells, dask, data)
    elif workers == 1:
        yield from (run_cell(cell, data) for cell in cells)
    else:
        pool = Parallel(workers, return_as="generator_unordered", pre_dispatch=workers, batch_size=1)
        yield from pool(delayed(run_cell)(cell, data) for cell in cells)


def _on_dask(cells: Iterator[Cell], address: str, data: str | Path | None) -> Iterator[Outcome]:
    from distributed import Client, KilledWorker, as_completed

    with Client(address, set_as_default=False) as client:
        submitted: dict[str, Cell] = {}

        def submit(n_cells: int) -> list[Any]:
            futures = []
            for cell in islice(cells, n_cells):
                future = client.submit(run_cell, cell, data, pure=False)
                submitted[future.key] = cell
                futures.append(future)
            return futures

        running = as_completed(submit(max(1, sum(client.nthreads().values()))), with_results=False)
        for future in running:
            cell = submitted.pop(future.key)
            try:
                yield future.result()
            except KilledWorker as error:
                yield cell, None, {"error": f"the worker died again and again: {error}", "traceback": ""}
            room = max(1, sum(client.nthreads().values())) - len(submitted)
            running.update(submit(room))


def _noting(cells: Iterator[Cell], under_way: dict[str, Cell]) -> Iterator[Cell]:
    for cell in cells:
        under_way[cell.key] = cell
        yield cell


def _is_done(store: Store, cell: Cell) -> bool:
    return store.is_finished(cell) or store.is_failed(cell)
