"""Files that are never seen half written, and read without trust; folders that are proven writable before the work."""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar

Value = TypeVar("Value")

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk and of a used up quota."""

LONGEST_NAME = 60
"""Characters in the name of a file of a run or a study while it is written, at most."""


def cannot_write(what: object, error: OSError) -> OSError:
    """Return the error to raise where something cannot be written: it names what, why, and the remedy."""
    room = "make room, or " if error.errno in FULL else ""
    return OSError(f"cannot write {what}: {error.strerror}; {room}choose another folder with --out")


def prepare_folder(folder: Path) -> None:
    """Make a folder for results and prove that files can be written there, of names as long as they will be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix="x" * (LONGEST_NAME - 8)):  # it adds eight
            pass
    except OSError as error:
        raise cannot_write(f"results to {folder}", error) from None


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write that replaces `path` when it is complete and flushed to the disk.

    The file has a random name next to `path` until then, so several processes may write at once.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        with suppress(OSError):  # some network file systems cannot sync a folder
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)  # so that the new name survives a power cut
            finally:
                os.close(folder)
    except BaseException:  # also where Ctrl-C comes here
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def replace_file(path: Path, content: bytes) -> None:
    """Write a file at one stroke; an OSError names the file that cannot be written, the reason and the remedy."""
    try:
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        raise cannot_write(path, error) from None


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read its bytes; refuse a pipe, which would wait for a writer, a device and a folder."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"{path} is a pipe or a device, not a file")
    return file


def harmless(value: Value) -> Value | str:
    """Return a text that a spreadsheet would take for a formula with ' in front, and all other values as they are.

    Examples
    --------
    >>> [harmless(value) for value in ("=A1", "a-b", -0.5)]
    ["'=A1", 'a-b', -0.5]
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t")) else value


def is_private(folder: Path) -> bool:
    """Whether a path is a folder and no link that belongs to the user or to root, and nobody else may write in it."""
    status = folder.lstat()
    owned = status.st_uid in (0, os.geteuid())  # root may write everywhere
    return stat.S_ISDIR(status.st_mode) and owned and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def read_text(path: Path, limit: int) -> str:
    """Return the text in UTF-8 of a regular file of at most `limit` bytes, without a byte order mark.

    A file that is larger or no UTF-8 is a ValueError, one that cannot be read an OSError; both name the file.
    """
    with open_regular(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{path}: larger than {limit // 2**20} MiB, which no such file is")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a text in UTF-8: {error.reason} at byte {error.start}") from None


Json: TypeAlias = dict[str, Any]
"""An object of JSON."""


def read_toml(path: Path, limit: int) -> Json:
    """Return the values of a TOML file of at most `limit` bytes; a ValueError names the file."""
    text = read_text(path, limit)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"{path}: not a TOML file: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path}: not a TOML file: {error}") from None


def read_json(text: str, constant: Callable[[str], object] | None = None) -> Any:
    """Return the values of a JSON text; refuse infinite numbers, a key given twice, and one nested too deeply.

    NaN and Infinity, which are no JSON, are refused, too, unless `constant` makes values of them.
    """
    try:
        values = json.loads(
            text, parse_constant=constant or _finite, parse_float=_finite, object_pairs_hook=_each_key_once
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if "\\ud" in text.lower():  # half a character, which nothing could write or show again
        json.dumps(values, ensure_ascii=False).encode()
    return values


def _finite(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError(f"{digits[:20]} is not a finite number")
    return value


def _each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values: dict[str, object] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {key!r} is given twice")
        values[key] = value
    return values
