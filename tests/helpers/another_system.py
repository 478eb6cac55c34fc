"""A system that lacks what Windows lacks, simulated: to be called first thing in a process of its own."""

import errno
import os
import signal
import sys
import types

MISSING = ("fcntl", "resource", "pwd", "grp", "termios", "_posixsubprocess", "multiprocessing.resource_tracker")
SIGNALS = ("pthread_sigmask", "SIGKILL", "SIGHUP", "SIGALRM", "setitimer")
CALLS = ("sched_getaffinity", "getppid", "geteuid", "getuid", "fork", "register_at_fork", "fchmod", "mkfifo")
FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY")


def simulate():
    """Take away what Windows lacks, put a `msvcrt` in its place, and return the locks that are held by it.

    The libraries that are used believe in the system they run on, so they are imported before.
    """
    import joblib.externals.loky  # noqa: F401
    import lightgbm  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import numba  # noqa: F401
    import pandas  # noqa: F401
    import platformdirs  # noqa: F401
    import pymoo.optimize  # noqa: F401
    import rich.progress  # noqa: F401
    import scipy.optimize  # noqa: F401
    import sklearn.pipeline  # noqa: F401
    import typer  # noqa: F401

    for name in MISSING:
        sys.modules[name] = None
        parent, _, child = name.rpartition(".")
        if parent and hasattr(sys.modules.get(parent), child):
            delattr(sys.modules[parent], child)
    for module, names in ((signal, SIGNALS), (os, CALLS + FLAGS)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    held = {}
    sys.modules["msvcrt"] = _msvcrt(held)
    return held


def _msvcrt(held):
    """A module like Windows': locks of bytes at the place where a file stands, refused where they are held."""
    module = types.ModuleType("msvcrt")
    module.LK_NBLCK, module.LK_UNLCK, module.LK_LOCK = 2, 0, 1

    def locking(descriptor, mode, n_bytes):
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        status = os.fstat(descriptor)
        key = status.st_dev, status.st_ino, place
        assert n_bytes == 1 and 0 <= place < 2**31
        if mode == module.LK_UNLCK:
            if held.pop(key, None) is None:
                raise PermissionError(errno.EACCES, "Permission denied")
        elif key in held:
            raise PermissionError(errno.EACCES, "Permission denied")
        else:
            held[key] = descriptor

    module.locking = locking
    return module
