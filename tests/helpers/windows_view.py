"""Windows as moerank sees it, in a process and its workers: the libraries below go on with the system they run on.

`environment` gives what a new process needs to see it from its start on. What moerank imports is then a view: without
what Windows lacks, and with what it has instead. Files that a process has open cannot be replaced or removed, names
that Windows reserves cannot be opened, folders neither, and clocks tick 64 times a second.
"""

import builtins
import errno
import fcntl
import math
import os
import select
import signal
import sys
import time
import types
from pathlib import Path

MISSING = {"fcntl", "resource", "pwd", "grp", "termios", "_posixsubprocess", "multiprocessing.resource_tracker"}
NO_SIGNALS = {"pthread_sigmask", "SIGKILL", "SIGHUP", "SIGALRM", "setitimer", "SIGUSR1", "SIGCHLD", "SIG_BLOCK"}
NO_CALLS = {"sched_getaffinity", "geteuid", "getuid", "fork", "register_at_fork", "fchmod", "mkfifo", "killpg"}
NO_CALLS |= {"O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "O_CLOEXEC", "statvfs", "pread", "pwrite", "setsid"}
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}


def environment(folder, **more):
    """Return the environment of a process that sees Windows; each leaves a file named by its number in `folder`."""
    start = "from helpers.windows_view import look\nlook()\n"
    (folder / "sitecustomize.py").write_text(start, encoding="utf-8")
    paths = [str(folder), str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SEEN_FROM_WINDOWS": str(folder), **more}


def look():
    """Let every module of moerank that is imported from here on see Windows."""
    views = {
        "os": View(
            os, NO_CALLS, name="nt", getppid=lambda: PARENT, open=_open, replace=_held(os.replace), kill=_forbidden
        ),
        "signal": View(signal, NO_SIGNALS),
        "sys": View(sys, set(), platform="win32"),
        "time": View(time, set(), monotonic=_coarse(time.monotonic), process_time=_coarse(time.process_time)),
        "msvcrt": types.SimpleNamespace(LK_NBLCK=2, LK_UNLCK=0, locking=_locking),
        "_winapi": types.SimpleNamespace(
            SYNCHRONIZE=0x100000, INFINITE=0xFFFFFFFF, OpenProcess=_open_process, WaitForSingleObject=_wait
        ),
    }
    imported = builtins.__import__

    def seen(name, globals=None, locals=None, fromlist=(), level=0):
        importer = (globals or {}).get("__name__") or ""
        if level == 0 and importer.partition(".")[0] == "moerank":
            Path(os.environ["SEEN_FROM_WINDOWS"], f"seen-{os.getpid()}").touch()
            if name in MISSING or (name == "multiprocessing" and "resource_tracker" in (fromlist or ())):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            if name in views:
                return views[name]
        return imported(name, globals, locals, fromlist, level)

    builtins.__import__ = seen
    Path.unlink, Path.open, Path.mkdir = _held(Path.unlink), _named(Path.open), _named(Path.mkdir)


PARENT = os.getppid()
"""Windows goes on naming a parent that has ended."""


class View(types.ModuleType):
    """A module without some of its names, and with others instead."""

    def __init__(self, module, without, **instead):
        super().__init__(module.__name__)
        self.__dict__.update(instead)
        self.__dict__["_seen"] = module, without

    def __getattr__(self, name):
        module, without = self.__dict__["_seen"]
        if name in without:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return getattr(module, name)


def _forbidden(*arguments):
    raise AssertionError("os.kill ends a process on Windows, whatever the signal")


def _coarse(clock):
    return lambda: math.floor(clock() * 64) / 64


def check_name(path):
    """Refuse what cannot be the name of a file or folder."""
    for part in Path(path).parts[Path(path).is_absolute() :]:
        stem = part.partition(".")[0].rstrip().lower()
        if set(part) & set('<>:"\\|?*') or (part[-1] in " ." and part not in (".", "..")) or stem in DEVICES:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
    if len(os.path.abspath(path)) >= 260:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def _named(call):
    def checked(path, *arguments, **keywords):
        check_name(path)
        return call(path, *arguments, **keywords)

    return checked


def _open(path, *arguments, **keywords):
    check_name(path)
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return os.open(path, *arguments, **keywords)


def _held(call):
    """Refuse to act on files that any process has open."""

    def checked(*arguments, **keywords):
        files = {(s.st_dev, s.st_ino) for s in map(_status, arguments) if s is not None}
        for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
            status = _status(descriptor, follow=True)
            if status is not None and (status.st_dev, status.st_ino) in files:
                raise PermissionError(errno.EACCES, "another process has the file open", str(arguments[0]))
        return call(*arguments, **keywords)

    return checked


def _status(path, follow=False):
    try:
        return os.stat(path, follow_symlinks=follow)
    except OSError:
        return None


def _locking(descriptor, mode, n_bytes):
    """Lock or unlock at the place where the file stands; a process cannot lock a byte twice, nor unlock it."""
    key = os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR)
    assert n_bytes == 1 and key[1] < 2**31
    if (key in LOCKED) == (mode == 2):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    fcntl.lockf(descriptor, (fcntl.LOCK_EX | fcntl.LOCK_NB) if mode == 2 else fcntl.LOCK_UN, 1, key[1])
    LOCKED.symmetric_difference_update({key})


LOCKED = set()


def _open_process(access, inherit, number):
    """Return a handle; Windows has none of a process that has ended and is held by nobody."""
    try:
        return os.pidfd_open(number)
    except OSError:
        raise OSError(errno.EINVAL, "The parameter is incorrect") from None


def _wait(handle, milliseconds):
    assert milliseconds == 0xFFFFFFFF
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    waiting.poll()
