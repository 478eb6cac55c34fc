"""A Dask scheduler: the connection to it, and what its workers must share with this process."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import platform
from typing import TYPE_CHECKING

import numpy as np

from moerank.version import VERSION

if TYPE_CHECKING:
    from distributed import Client

CONNECT = 5
"""Seconds that a scheduler has to answer, and to show a worker."""


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
