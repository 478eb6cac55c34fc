"""The folder of a study: one file a finished cell, and claims that die with the process that holds them."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from moerank.files import cannot_write, prepare_folder, remains_of, replace_file
from moerank.runs.result import FORMAT, RunResult, check_format
from moerank.studies.cell import Cell
from moerank.systems import lock, remove, unlock
from moerank.version import VERSION

__all__ = ["Failure", "Store"]

Failure = dict[str, Any]

STUDY = "study.json"
CLAIMS = ".claims"
STARTS = "starts.log"
REQUESTS = 1 << 60
"""The byte of `.claims` that stands for study.json, beyond those of the cells."""


class Store:
    """The files of a study.

    ``study.json`` says what was asked for, ``cells/KEY.json`` is the result of a finished cell, ``failures/KEY.json``
    the message and traceback of one that failed, ``starts.log`` a line for every start of a cell. A cell is claimed
    by locking the byte of ``.claims`` that its key stands for: the operating system lets go of it when the process
    ends, however it ends, so nothing stale remains.

    Whatever cannot be written is an OSError whose message names the file and the remedy.

    Parameters
    ----------
    folder : path
    write : bool, default True
        Make the folder and prove that it can be written; False only reads.

    Raises
    ------
    OSError
        If the folder cannot be written, or its file system has no locks.
    """

    def __init__(self, folder: str | Path, *, write: bool = True) -> None:
        self.folder = Path(folder)
        self._held: set[str] = set()
        if write:
            for part in (self.folder, self.folder / "cells", self.folder / "failures"):
                prepare_folder(part)
            # Closing any descriptor of the file lets go of all claims of the process: this is the only one.
            try:
                self._claims = os.open(self.folder / CLAIMS, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise cannot_write(self.folder / CLAIMS, error) from None
            self._remove_remains()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._claims)

    def read_grids(self) -> list[dict[str, Any]]:
        """Return what was asked for in the folder, request by request; nothing for a new folder.

        Raises
        ------
        ValueError
            If study.json is not one of this version.
        """
        path = self.folder / STUDY
        if not path.is_file():
            return []
        try:
            request = json.loads(path.read_text(encoding="utf-8"))
            check_format(request["format"], request.get("moerank"))
            grids: list[dict[str, Any]] = request["grids"]
            return grids
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: not a study of this version of moerank ({error})") from None

    def add_grid(self, grid: dict[str, Any], check: Callable[[list[dict[str, Any]]], None]) -> None:
        """Write down one more request, unless it is there already; `check` may refuse what is there."""
        self._lock(REQUESTS, wait=True)  # two processes may start together
        try:
            grids = self.read_grids()
            check(grids)
            if grid not in grids:
                request = {"format": FORMAT, "moerank": VERSION, "grids": [*grids, grid]}
                text = json.dumps(request, indent=1, ensure_ascii=False)
                replace_file(self.folder / STUDY, (text + "\n").encode())
        finally:
            self._unlock(REQUESTS)

    def done(self) -> tuple[set[str], set[str]]:
        """Return the keys of the cells that are finished, and of those that failed: two listings, no file is read."""
        finished, failed = (
            {name.removesuffix(".json") for name in os.listdir(self.folder / part) if name.endswith(".json")}
            if (self.folder / part).is_dir()
            else set()
            for part in ("cells", "failures")
        )
        return finished, failed - finished

    def is_finished(self, cell: Cell) -> bool:
        """Whether the cell has a result."""
        return self._result(cell).is_file()

    def is_failed(self, cell: Cell) -> bool:
        """Whether the cell failed when it was last tried."""
        return self._failure(cell).is_file()

    def claim(self, cell: Cell) -> bool:
        """Claim a cell that nobody has done; False if it is done, or if another process has claimed it."""
        if cell.key in self._held or not self._lock(_place(cell.key)):
            return False
        self._held.add(cell.key)
        try:
            if self.is_finished(cell) or self.is_failed(cell):  # by another process, since we looked
                self.release(cell)
                return False
            self._log(f"{cell.key} {os.getpid()} {cell.label}")
        except OSError:
            self.release(cell)
            raise
        return True

    def release(self, cell: Cell) -> None:
        """Let go of a claim."""
        self._held.discard(cell.key)
        self._unlock(_place(cell.key))

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

    def _lock(self, place: int, *, wait: bool = False) -> bool:
        try:
            return lock(self._claims, place, wait=wait)
        except OSError as error:
            raise OSError(
                f"cannot lock {self.folder / CLAIMS}: {error.strerror}; the file system has no locks, which share the "
                "work of a study: choose a folder on another with --out"
            ) from None

    def _unlock(self, place: int) -> None:
        unlock(self._claims, place)

    def _remove_remains(self) -> None:
        """Remove what a process left that was killed while it wrote; what another writes just now is locked."""
        for path in remains_of(self.folder / STUDY):
            self._remove(path, REQUESTS)
        key = "[0-9a-f]" * 24
        for path in self.folder.glob(f"*/.{key}.json.*.tmp"):
            self._remove(path, _place(path.name[1:]))

    def _remove(self, path: Path, place: int) -> None:
        """Remove a file unless somebody holds the lock of what it belongs to."""
        if self._lock(place):
            remove(path)
            self._unlock(place)

    def finish(self, cell: Cell, result: str) -> None:
        """Write the result of a claimed cell and let go of it."""
        replace_file(self._result(cell), result.encode())
        remove(self._failure(cell))
        self.release(cell)

    def fail(self, cell: Cell, failure: Failure) -> None:
        """Write why a claimed cell failed and let go of it."""
        text = json.dumps({"cell": cell.label, **failure}, indent=1, ensure_ascii=False) + "\n"
        replace_file(self._failure(cell), text.encode())
        self.release(cell)

    def forget_failure(self, cell: Cell) -> None:
        """Make a cell that failed one that was never tried."""
        remove(self._failure(cell))

    def read_failure(self, cell: Cell) -> Failure:
        """Return why a cell failed."""
        failure: Failure = json.loads(self._failure(cell).read_text(encoding="utf-8"))
        return failure

    def read(self, cell: Cell) -> RunResult:
        """Return the result of a finished cell.

        Raises
        ------
        ValueError
            If the file is not a result of this version.
        """
        path = self._result(cell)
        try:
            return RunResult.from_json(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path}: {error}; remove the file to run its cell again") from None

    def _result(self, cell: Cell) -> Path:
        return self.folder / "cells" / f"{cell.key}.json"

    def _failure(self, cell: Cell) -> Path:
        return self.folder / "failures" / f"{cell.key}.json"


def _place(key: str) -> int:
    """Return the byte of `.claims` that stands for a cell; locks may lie beyond the end of a file."""
    return int(key[:12], 16)
