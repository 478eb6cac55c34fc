"""Who is told how far the reading of a file has come: readers say it, and whoever waits may listen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

__all__ = ["Listener", "reading_progress", "report_reading"]

Listener = Callable[[Path, float], None]
"""``listener(path, share)``: the share of a file that has been read, from 0 to 1; the last call says 1."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def reading_progress(listener: Listener) -> Iterator[None]:
    """Tell `listener` how far files have been read, inside this ``with`` and in this thread.

    Examples
    --------
    >>> with reading_progress(lambda path, share: print(f"{path.name}: {share:.0%}")):
    ...     report_reading(Path("train.txt"), 0.25)
    train.txt: 25%
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_reading(path: Path, share: float) -> None:
    """Say that a share of a file, from 0 to 1, has been read; takes no time if nobody listens."""
    listener = _listener.get()
    if listener is not None:
        listener(path, share)
