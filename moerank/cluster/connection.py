"""The connection to a Dask scheduler: made, or refused in a sentence."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["connect", "gone"]

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
