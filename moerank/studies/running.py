"""Running the cells of a study: taking those that are open, and writing what becomes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import monotonic, sleep

from moerank.studies.cell import Cell
from moerank.studies.executors import Executor, Outcome
from moerank.studies.store import Store

__all__ = ["run_cells"]

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
