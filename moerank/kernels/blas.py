"""Linear algebra on one thread: reproducible, and on small matrices faster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local
from typing import TYPE_CHECKING

from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from threadpoolctl import LibController


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Return a context in which products by a linear algebra library run on one thread.

    With more, the last bits of a product depend on how many threads there are, and on a busy machine a product of a
    millisecond takes two hundred.

    Most libraries have one limit for the whole process. So contexts are counted, over all threads: the first to be
    entered sets the limit, and the last to be left puts back what was there before.
    """
    with _LIMITS.lock:
        _LIMITS.enter()
    try:
        yield
    finally:
        with _LIMITS.lock:
            _LIMITS.leave()


class _Own(local):
    """The contexts that a thread is in, and the earlier limits of the libraries that have one for each thread."""

    n_inside = 0

    def __init__(self) -> None:
        self.before: dict[str, tuple[LibController, int]] = {}


class _Limits:
    """The earlier limits, and the number of contexts that hold them down. To be used under its lock."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._n_inside = 0
        self._before: dict[str, tuple[LibController, int]] = {}
        self._own = _Own()
        self._libraries: list[LibController] = []
        self._n_modules = 0

    def enter(self) -> None:
        """Set every library to one thread; look for new ones, which takes milliseconds, if a module was imported."""
        if len(sys.modules) != self._n_modules:
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._n_modules = len(sys.modules)
        for library in self._libraries:
            before = self._own.before if _is_per_thread(library) else self._before
            before.setdefault(library.filepath, (library, library.num_threads))
            _set_threads(library, 1)
        self._n_inside += 1
        self._own.n_inside += 1

    def leave(self) -> None:
        """Put back the limits that no context holds down any more."""
        self._n_inside -= 1
        self._own.n_inside -= 1
        for n_inside, before in ((self._own.n_inside, self._own.before), (self._n_inside, self._before)):
            while before and n_inside == 0:
                _set_threads(*before.popitem()[1])

    def forget_other_threads(self) -> None:
        """Begin a forked process, which has only the thread that forked it."""
        self.lock = Lock()
        self._n_inside = self._own.n_inside


_LIMITS = _Limits()
os.register_at_fork(after_in_child=_LIMITS.forget_other_threads)


def _is_per_thread(library: LibController) -> bool:
    """Whether the limit of a library holds only in the thread that sets it."""
    return library.internal_api == "mkl" or getattr(library, "threading_layer", None) == "openmp"


def _set_threads(library: LibController, n_threads: int) -> None:
    """Set a limit from any thread; threadpoolctl 3.8 ignores all but the one that set it first."""
    if library.num_threads == n_threads:
        return
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(n_threads)
    release(force=True)
