"""What runs on a worker of a Dask cluster: it holds shards, and works on them.

A shard lives as long as the client holds the future of it, and so do the Gram matrices and orders that are remembered
with it. What of it may travel, or go to disk where memory is short, is where it came from, never its documents.
"""

from __future__ import annotations

import hashlib
import platform
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.data.shares import Run, add_up
from moerank.kernels.blas import one_blas_thread
from moerank.version import VERSION

__all__ = ["Environment", "Held", "Packed", "Source", "environment", "hold", "packed", "room", "step_on", "work"]

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
