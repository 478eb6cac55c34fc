"""The workers of a Dask scheduler that hold shards: who is there, who fits, and what they say of their memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from moerank.cluster import connection
from moerank.cluster.worker import Environment, environment

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["AGAIN", "POLL", "Workers"]

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
        self.client: Client = connection.connect(address)
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
            raise connection.gone(self.address, AGAIN) from None

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
