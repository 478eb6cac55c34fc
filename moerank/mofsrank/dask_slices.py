"""Slices of a batch on the workers of a Dask scheduler, and the connection to it."""

from __future__ import annotations

import asyncio
import logging
import platform
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from moerank.arrays import Array, Matrix
from moerank.identity import digest
from moerank.kernels.threads import one_blas_thread
from moerank.version import VERSION

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT = 5  # seconds for a scheduler to answer, and for its first worker
SECONDS_FOR_A_WORKER = 30  # before a search without workers ends
MAX_TRIES = 10  # how often a batch is sent, as workers may die


class Slices:
    """Measures the batches of a stage on the workers of a Dask scheduler, one slice per thread.

    Each worker gets the stage with its data once. No value depends on its batch, so the objectives are the same to the
    bit for any number of workers. If a worker dies, others measure its slice. A worker with another version or
    processor is refused, with its address.
    """

    def __init__(self, client: Client, stage: Any) -> None:
        scheduler: Any = client.scheduler
        self._client = client
        self._address = scheduler.address
        self._stage = stage
        self._name = uuid4().hex
        self._stage_there: Future[list[Any]] | None = None

    def measure(self, X: Array) -> Matrix:
        """Return the objectives (n, n_objectives) of non-empty individuals.

        Raises an OSError if the scheduler is gone, or its workers are gone for half a minute or unlike this process.
        """
        packed = np.packbits(X, axis=1) if X.dtype == bool else X
        for _ in range(MAX_TRIES):
            workers = [
                worker for worker, threads in self._threads().items() for _ in range(threads)
            ]
            F = self._sliced(np.array_split(packed, min(len(X), len(workers))), workers)
            if F is not None:
                return F
        raise OSError(
            f"the Dask workers at {self._address} died again and again; give them more memory"
        )

    def _threads(self) -> dict[str, int]:
        """Return the number of threads of each worker; wait for one if there is none."""
        try:
            if not self._client.nthreads():
                self._client.wait_for_workers(1, timeout=SECONDS_FOR_A_WORKER)
            return self._client.nthreads()
        except TimeoutError:
            raise OSError(
                f"the Dask scheduler at {self._address} has no worker any more; "
                f"start one: dask worker {self._address}, and resume the search"
            ) from None
        except (OSError, CancelledError):
            raise gone(self._address, "resume the search") from None

    def _sliced(self, parts: list[Array], workers: list[str]) -> Matrix | None:
        """Return the objectives of all slices, each by its worker if that lives, or None if the stage was lost."""
        from distributed import KilledWorker, wait

        futures: list[Future[Matrix]] = []
        task = partial(_measure, name=self._name, expected=environment())
        try:
            if self._stage_there is None:  # one worker gets it; the others fetch it from there
                [self._stage_there] = self._client.scatter([_packed(self._stage)], hash=False)
            futures = [
                self._client.submit(
                    task,
                    self._stage_there,
                    part,
                    workers=worker,
                    allow_other_workers=True,
                    pure=False,
                )
                for part, worker in zip(parts, workers, strict=False)
            ]
            while any(future.status == "pending" for future in futures):
                try:
                    with self._client.as_current():
                        wait(futures, timeout=1)
                except TimeoutError:
                    self._threads()
            return np.concatenate([future.result() for future in futures])
        except (KilledWorker, CancelledError):
            self._stage_there = None
            return None
        except (ImportError, AttributeError) as error:
            raise OSError(
                f"the Dask workers at {self._address} cannot measure ({error}); "
                "install there the same moerank, and each module of yours that the search uses"
            ) from None
        finally:
            for future in futures:
                future.release()


# The stage that this worker measures, by the name of its search.
_STAGES: dict[str, Any] = {}


def _packed(stage: Any) -> list[Any]:
    """Return a pickled stage and its arrays: Dask tries without end to send the stage to workers that lack a module."""
    from distributed.protocol.pickle import dumps

    arrays: list[Any] = []
    pickled = dumps(stage, buffer_callback=lambda buffer: arrays.append(np.asarray(buffer.raw())))
    return [pickled, *arrays]


def _measure(packed: list[Any], rows: Array, name: str, expected: str) -> Matrix:
    """Measure a slice on a worker."""
    from distributed import get_worker
    from distributed.protocol.pickle import loads

    if environment() != expected:
        raise OSError(
            f"the Dask worker at {get_worker().address} has {environment()}, but this process has "
            f"{expected}; results depend on these, so stop this worker"
        )
    # A worker short of memory writes the stage to its disk and reads it again, without what was computed from the data.
    if name not in _STAGES:
        _STAGES.clear()
    stage = _STAGES.get(name) or _STAGES.setdefault(name, loads(packed[0], buffers=packed[1:]))
    if rows.dtype == np.uint8:
        rows = np.unpackbits(rows, axis=1, count=stage.n_var).view(bool)
    with one_blas_thread():
        return stage.measure(rows)


def connect(address: str) -> Client:
    """Return a client of the scheduler at an address; an OSError if it has no worker or does not answer."""
    try:
        from distributed import Client
        from distributed.comm.core import connect as reach
    except ImportError:
        raise OSError(
            "--dask needs the package distributed: pip install 'moerank[distributed]'"
        ) from None

    try:  # a client that does not get this far takes minutes to give up
        asyncio.run(reach(address, timeout=CONNECT)).abort()
    except Exception as error:  # any server may answer
        reason = str(error) or type(error).__name__
        raise OSError(
            f"no Dask scheduler answers at {address} ({reason}); give --dask its address"
        ) from None
    client = Client(address, set_as_default=False, timeout=CONNECT)
    try:
        client.wait_for_workers(1, timeout=CONNECT)
    except TimeoutError:
        client.close()
        raise OSError(
            f"the Dask scheduler at {address} has no worker; start one: dask worker {address}"
        ) from None
    return client


def gone(address: str, remedy: str) -> OSError:
    """Return the error to raise when the scheduler is gone, with a remedy."""
    for name in (
        "distributed",
        "distributed.client",
    ):  # these loggers repeat the error with tracebacks
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return OSError(f"the Dask scheduler at {address} is gone; start it, and {remedy}")


def environment() -> str:
    """Return the versions and the processor of this process, on which code and the last bits of sums depend."""
    import numba
    from llvmlite import binding

    software = f"moerank {VERSION}, Python {platform.python_version()}, numpy {np.__version__}"
    kind = f"{binding.get_host_cpu_name()} {digest(binding.get_host_cpu_features())[:6]}"
    return f"{software}, numba {numba.__version__}, processor {platform.machine()} {kind}"
