"""Linear algebra on one thread: reproducible, and on small matrices faster."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """Find the loaded libraries once: the search through them takes milliseconds."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which products by a linear algebra library run on one thread.

    With more, the last bits of a product depend on how many threads there are, and on a busy machine a product of a
    millisecond takes two hundred.
    """
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits
