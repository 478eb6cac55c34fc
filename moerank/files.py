"""Files that are never seen half written, and folders that are proven writable before the work."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from moerank.systems import replace

__all__ = ["FULL", "cannot_write", "prepare_folder", "remains_of", "replace_file", "replacing"]

FULL = (errno.ENOSPC, errno.EDQUOT)
"""What the operating system calls a full disk and a used up quota."""


def cannot_write(what: object, error: OSError) -> OSError:
    """Return the error to raise where something cannot be written: it names what, why, and the remedy."""
    room = "make room, or " if error.errno in FULL else ""
    return OSError(f"cannot write {what}: {error.strerror}; {room}choose another folder with --out")


def prepare_folder(folder: Path) -> None:
    """Make a folder for results and prove that files can be written there.

    Raises
    ------
    OSError
        If not; the message says why and what to do.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise cannot_write(f"results to {folder}", error) from None


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write that takes the place of `path` when it is complete and flushed to the disk.

    It has a name of its own beside `path`, which nobody can foresee or take, so several processes may do so at once.
    What a killed process leaves of it is among `remains_of`.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        replace(temporary, path)
    except BaseException:  # also where Ctrl-C comes here
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def replace_file(path: Path, content: bytes) -> None:
    """Write a file at one stroke.

    Raises
    ------
    OSError
        If it cannot be written; the message names the file, the reason and the remedy.
    """
    try:
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        raise cannot_write(path, error) from None


def remains_of(path: Path) -> list[Path]:
    """Return what processes that were killed while they wrote `path` have left beside it."""
    return sorted(path.parent.glob(f".{_literal(path.name)}.{'[0-9a-f]' * 16}.tmp"))


def _literal(name: str) -> str:
    """Return a pattern that matches this name alone."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)
