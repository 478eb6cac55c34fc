"""What differs between operating systems: locks, signals, processes, folders and names of files."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import BinaryIO, TypeVar

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "command_line",
    "file_name",
    "is_own",
    "is_private",
    "leave_interrupts_to",
    "lock",
    "n_processors",
    "open_regular",
    "remove",
    "replace",
    "sync_folder",
    "unlock",
    "without_interrupts",
]

PATIENCE = 10.0
"""Seconds for which a file that another process holds is tried again, where the system lets a reader hold it."""

POLL = 0.05
"""Seconds between two attempts, and between two looks at a lock that is waited for."""

T = TypeVar("T")

KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}
"""What may stand where a file should; anything else is a device."""

DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³")}
"""Names that are devices on Windows, in every folder and with any ending."""

PLACES = 2**31 - 1
"""How many bytes of a file Windows' C library can lock. Two places that fall together only wait for each other."""


def lock(descriptor: int, place: int, *, wait: bool = False) -> bool:
    """Lock one byte of an open file, which may lie beyond its end; False if another process holds it.

    The operating system lets go of the lock when the process ends, however it ends.

    Parameters
    ----------
    descriptor : int
        Of a file opened for reading and writing.
    place : int
        The byte.
    wait : bool, default False
        Wait until no other process holds it.

    Raises
    ------
    OSError
        If the file system has no locks.
    """
    while True:
        try:
            if fcntl is not None:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, place)
            else:
                _windows_lock(descriptor, place, "LK_NBLCK")
            return True
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
        if not wait:
            return False
        sleep(POLL)


def unlock(descriptor: int, place: int) -> None:
    """Let go of a byte that may be locked."""
    if fcntl is not None:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, place)
        return
    with suppress(PermissionError):  # it was not locked, which is no error elsewhere
        _windows_lock(descriptor, place, "LK_UNLCK")


def _windows_lock(descriptor: int, place: int, mode: str) -> None:
    """Lock or unlock a byte by Windows' C library, which does so at the present place of the file."""
    import msvcrt

    os.lseek(descriptor, place % PLACES, os.SEEK_SET)
    msvcrt.locking(descriptor, getattr(msvcrt, mode), 1)  # type: ignore[attr-defined]


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from processes that are started here; a terminal sends it to them too, this one decides.

    Where signals cannot be blocked, `leave_interrupts_to` does so once they have started.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it is started with the first process, and would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_interrupts_to(parent: int) -> None:
    """Let the process `parent` decide what Ctrl-C does, and end this one when that does, even if it was killed."""
    if not hasattr(signal, "pthread_sigmask") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        _wait_for_end(parent)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _wait_for_end(parent: int) -> None:
    """Return when the parent of this process has ended."""
    if sys.platform == "win32":  # where a process keeps the number of a parent that has ended
        import _winapi

        with suppress(OSError):  # it has ended already
            handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent)
            _winapi.WaitForSingleObject(handle, _winapi.INFINITE)
        return
    while os.getppid() == parent:
        sleep(1)


def n_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def replace(source: Path, target: Path) -> None:
    """Let a file take the place of another in its folder, so that it stays there after a power cut."""
    _patiently(lambda: os.replace(source, target))
    sync_folder(target.parent)


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    _patiently(lambda: path.unlink(missing_ok=True))


def _patiently(action: Callable[[], T]) -> T:
    """Act on a file; Windows refuses that while another process reads it, or puts another in its place."""
    end = monotonic() + (PATIENCE if fcntl is None else 0.0)
    while True:
        try:
            return action()
        except PermissionError:
            if monotonic() >= end:
                raise
        sleep(POLL)


def sync_folder(folder: Path) -> None:
    """Write the names of a folder's files to the disk, where the system can; else it does so by itself."""
    with suppress(OSError):  # Windows opens no folder, and some file systems of networks sync none
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def open_regular(path: Path, *, through_links: bool = False) -> BinaryIO:
    """Open a file to read its bytes, unless it is a pipe that would wait for a writer, a device, or a folder.

    Parameters
    ----------
    path : Path
    through_links : bool, default False
        Follow a symbolic link instead of refusing it.

    Raises
    ------
    OSError
        If it cannot be opened, or is no regular file; the message names what it is.
    """
    names = ("O_NONBLOCK", "O_BINARY", "O_CLOEXEC") + (() if through_links else ("O_NOFOLLOW",))
    flags = os.O_RDONLY | sum(getattr(os, name, 0) for name in names)
    if fcntl is None and path.is_dir():  # which would be refused as a file that another process holds
        raise OSError(f"{path} is {KINDS[stat.S_IFDIR]}, not a file")
    descriptor = _patiently(lambda: os.open(path, flags))
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(f"{path} is {KINDS.get(stat.S_IFMT(mode), 'a device')}, not a file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def is_own(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to the user of this process.

    Windows has no such number of a user: there the folders below the user's own are closed to others by themselves.
    """
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def is_private(folder: Path) -> bool:
    """Whether a folder is one, no link, belongs to the user of this process, and nobody else may write in it."""
    status = folder.lstat()
    closed = not hasattr(os, "geteuid") or not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(status.st_mode) and is_own(status) and closed


def file_name(text: str) -> str:
    """Return a text as the name of a file or folder: as it is, but for what Windows refuses or takes for a device."""
    if fcntl is not None:
        return text
    name = "".join("_" if sign in '<>:"/\\|?*' or sign < " " else sign for sign in text).rstrip(" .")
    stem, dot, ending = name.partition(".")
    return f"{stem.rstrip()}_{dot}{ending}" if stem.rstrip().lower() in DEVICES else name


def command_line(words: Sequence[str]) -> str:
    """Return a command as it is typed: quoted for a POSIX shell, or as a program on Windows takes it apart."""
    return shlex.join(words) if fcntl is not None else subprocess.list2cmdline(words)
