"""Files that are never seen half written, and read without trust; folders that are proven writable before the work."""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from moerank.systems import open_regular, replace

__all__ = [
    "FULL",
    "cannot_write",
    "prepare_folder",
    "read_json",
    "read_text",
    "remains_of",
    "remove_old_remains",
    "replace_file",
    "replacing",
]

FULL = (errno.ENOSPC, errno.EDQUOT)
"""What the operating system calls a full disk and a used up quota."""

LONGEST = 60
"""Characters that a file of a run or a study has in its name at most, while it is written."""

OLD = 3600.0
"""Seconds after which nobody is writing a temporary file any more."""


def cannot_write(what: object, error: OSError) -> OSError:
    """Return the error to raise where something cannot be written: it names what, why, and the remedy."""
    room = "make room, or " if error.errno in FULL else ""
    return OSError(f"cannot write {what}: {error.strerror}; {room}choose another folder with --out")


def prepare_folder(folder: Path) -> None:
    """Make a folder for results and prove that files can be written there, of names as long as they will be.

    Windows allows 260 characters for a file with all its folders, and a result must not fail for that when it is there.

    Raises
    ------
    OSError
        If not; the message says why and what to do.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix="x" * (LONGEST - 8)):  # it adds eight
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


def remove_old_remains(path: Path) -> None:
    """Remove what processes that were killed left of `path` more than an hour ago, where no lock tells who lives.

    What is younger may be in work in another process; what cannot be removed stays.
    """
    for left in remains_of(path):
        with suppress(OSError):
            if time.time() - left.lstat().st_mtime > OLD:
                left.unlink()


def read_text(path: Path, limit: int) -> str:
    """Return the text of a regular file; what may be there instead is refused without waiting for it.

    A mark of byte order in front, as editors on Windows put it there, is no part of the text.

    Parameters
    ----------
    path : Path
        A link is followed.
    limit : int
        Most bytes.

    Raises
    ------
    OSError
        If the file cannot be read, or is a FIFO, a socket, a device or a folder.
    ValueError
        If it is larger, or no UTF-8. Both messages name the file.
    """
    with open_regular(path, through_links=True) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{path}: larger than {limit // 2**20} MiB, which no such file is")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a text in UTF-8: {error.reason} at byte {error.start}") from None


def read_json(text: str) -> Any:
    """Return the values of a JSON text.

    Raises
    ------
    ValueError
        If it is none, or one with NaN or infinite numbers, with a key given twice, or nested too deeply.

    Examples
    --------
    >>> read_json('{"seeds": 3, "seeds": 4}')
    Traceback (most recent call last):
        ...
    ValueError: the key 'seeds' is given twice
    """
    try:
        values = json.loads(text, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_each_key_once)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if "\\ud" in text.lower():  # half a character, which nothing could write or show again
        json.dumps(values, ensure_ascii=False).encode()
    return values


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits[:20]} is no number: it is too large")
    return value


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice!r} is given twice")
    return values


def _literal(name: str) -> str:
    """Return a pattern that matches this name alone."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)
