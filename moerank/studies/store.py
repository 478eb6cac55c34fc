"""The folder of a study: one file for each finished cell, and claims that die with the process that holds them."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from moerank.files import Json, cannot_write, prepare_folder, read_json, read_text, remains_of, replace_file
from moerank.studies.grid import Work
from moerank.studies.result import FORMAT, check_format
from moerank.studies.result_files import MOST_BYTES
from moerank.version import VERSION

STUDY = "study.json"
CLAIMS = ".claims"
STARTS = "starts.log"
KEY = "[0-9a-f]" * 24
"""A pattern of the keys of cells."""

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
"""Error numbers of file systems that have no locks."""


class Store:
    """The files of a study.

    ``study.json`` lists the requests, ``cells/KEY.json`` is the result of a finished cell, ``failures/KEY.json`` the
    message and traceback of a failed one, ``starts.log`` has a line for every start of a cell. A process claims a cell
    by locking the file ``.claims/KEY``. The operating system releases the lock when the process ends, however it ends,
    so no claim goes stale. A file that cannot be written is an OSError whose message names the file and the remedy. A
    store that does not `write` makes no folder.
    """

    def __init__(self, folder: str | Path, *, write: bool = True) -> None:
        self.folder = Path(folder)
        self._held: dict[str, FileLock] = {}
        if write:
            for part in ("", "cells", "failures", CLAIMS):
                prepare_folder(self.folder / part)
            self._remove_remains()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for name in list(self._held):
            self._unlock(name)

    def read_grids(self) -> list[Json]:
        """Return what was asked for in the folder, request by request; nothing for a new folder."""
        path = self.folder / STUDY
        try:
            text = read_text(path, MOST_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return []
        try:
            return _requests(read_json(text))
        except ValueError as error:
            raise ValueError(f"{path}: not a study of this version of moerank ({error})") from None

    def add_grid(self, grid: Json, check: Callable[[list[Json]], None]) -> None:
        """Write down one more request, unless it is there already; `check` may refuse what is there."""
        with self._waiting(STUDY):  # two processes may start together
            grids = self.read_grids()
            check(grids)
            if grid not in grids:
                request = {"format": FORMAT, "moerank": VERSION, "grids": [*grids, grid]}
                text = json.dumps(request, indent=1, ensure_ascii=False)
                replace_file(self.folder / STUDY, (text + "\n").encode())

    def done(self) -> tuple[set[str], set[str]]:
        """Return the keys of the cells that are finished, and of those that failed: two listings, no file is read."""
        finished, failed = (
            {name.removesuffix(".json") for name in os.listdir(self.folder / part) if name.endswith(".json")}
            if (self.folder / part).is_dir()
            else set()
            for part in ("cells", "failures")
        )
        return finished, failed - finished

    def claim(self, cell: Work) -> bool:
        """Claim a cell that nobody has done; False if it is done, or if another process has claimed it."""
        if not self._lock(cell.key):
            return False
        try:
            if self._result(cell).is_file() or self._failure(cell).is_file():  # by another process, since we looked
                self.release(cell)
                return False
            self._log(f"{cell.key} {os.getpid()} {cell.label}")
        except OSError:
            self.release(cell)
            raise
        return True

    def release(self, cell: Work) -> None:
        """Let go of a claim."""
        self._unlock(cell.key)

    def _log(self, line: str) -> None:
        """Add a line to the log of starts, behind a half line that a full disk may have left there."""
        path = self.folder / STARTS
        try:
            with path.open("ab+", buffering=0) as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(0, end - 1))
                behind = b"\n" if log.read(1) not in (b"", b"\n") else b""
                text = behind + line.encode() + b"\n"
                if log.write(text) < len(text):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise cannot_write(path, error) from None

    def _lock(self, name: str, *, wait: bool = False) -> bool:
        """Lock a file of `.claims`; False if this or another process holds it."""
        if name in self._held:
            return False
        path = self.folder / CLAIMS / name
        lock = FileLock(path, blocking=wait, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            return False
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise cannot_write(path, error) from None
            raise OSError(
                f"cannot lock {path}: {error.strerror}; the file system has no locks, which share the work of a study: "
                "choose a folder on another with --out"
            ) from None
        self._held[name] = lock
        return True

    def _unlock(self, name: str) -> None:
        """Remove a file of `.claims`, and then its lock: a process that waits for it makes a new file."""
        if (lock := self._held.pop(name, None)) is not None:
            (self.folder / CLAIMS / name).unlink(missing_ok=True)
            lock.release()

    @contextmanager
    def _waiting(self, name: str) -> Iterator[None]:
        """Hold a lock that another process may hold for a moment."""
        self._lock(name, wait=True)
        try:
            yield
        finally:
            self._unlock(name)

    def _remove_remains(self) -> None:
        """Remove files that killed processes have left; a file that another process still writes is locked."""
        files = [(STUDY, path) for path in remains_of(self.folder / STUDY)]
        files += [(path.name[1:25], path) for path in self.folder.glob(f"*/.{KEY}.json.*.tmp")]
        files += [(path.name, path) for path in self.folder.glob(f"{CLAIMS}/{KEY}")]
        for name, path in files:
            if self._lock(name):
                path.unlink(missing_ok=True)
                self._unlock(name)

    def finish(self, cell: Work, result: str) -> None:
        """Write the result of a claimed cell and let go of it."""
        replace_file(self._result(cell), result.encode())
        self._failure(cell).unlink(missing_ok=True)
        self.release(cell)

    def adopt(self, cell: Work, other: Store) -> None:
        """Copy what another study knows of a cell that nobody has finished here: its result, else why it failed."""
        result = other._result(cell).is_file()
        mine, theirs = (store._result(cell) if result else store._failure(cell) for store in (self, other))
        with self._waiting(cell.key):  # another process may run it just now
            if not self._result(cell).is_file() and (result or not self._failure(cell).is_file()):
                replace_file(mine, read_text(theirs, MOST_BYTES).encode())
                if result:
                    self._failure(cell).unlink(missing_ok=True)

    def fail(self, cell: Work, failure: Json) -> None:
        """Write why a claimed cell failed and let go of it."""
        text = json.dumps({"cell": cell.label, **failure}, indent=1, ensure_ascii=False) + "\n"
        replace_file(self._failure(cell), text.encode())
        self.release(cell)

    def forget_failure(self, cell: Work) -> None:
        """Make a cell that failed one that was never tried."""
        self._failure(cell).unlink(missing_ok=True)

    def read_failure(self, cell: Work) -> Json:
        """Return why a cell failed."""
        path = self._failure(cell)
        text = read_text(path, MOST_BYTES)
        try:
            failure = read_json(text)
            if not isinstance(failure, dict):
                raise ValueError("it is no table of keys and values")
            for key in ("cell", "error", "traceback"):
                if not isinstance(failure.get(key), str):
                    raise ValueError(f"{key} must be a text")
        except ValueError as error:
            raise ValueError(f"{path}: not a failure of this version of moerank ({error}); remove the file") from None
        return failure

    def read(self, cell: Work) -> Any:
        """Return the result of a finished cell."""
        path = self._result(cell)
        text = read_text(path, MOST_BYTES)
        try:
            return cell.read(text)
        except ValueError as error:
            raise ValueError(f"{path}: {error}; remove the file to run its cell again") from None

    def _result(self, cell: Work) -> Path:
        return self.folder / "cells" / f"{cell.key}.json"

    def _failure(self, cell: Work) -> Path:
        return self.folder / "failures" / f"{cell.key}.json"


def _requests(values: object) -> list[Json]:
    """Return the grids of a study.json, as far as they are tables."""
    if not isinstance(values, dict) or "format" not in values:
        raise ValueError("it has no format")
    check_format(values["format"], values.get("moerank"))
    if strange := values.keys() - {"format", "moerank", "grids"}:
        raise ValueError(f"unknown key {min(strange)!r}")
    grids = values.get("grids")
    if not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
        raise ValueError("grids must be a list of tables")
    return grids
