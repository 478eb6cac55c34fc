"""Write files atomically, read files of unknown origin safely, and check folders before the work starts."""

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

FULL = (errno.ENOSPC, errno.EDQUOT)  # error numbers of a full disk and of an exhausted quota

MAX_NAME_LENGTH = 60  # maximum length of the temporary name of a file of a run or a study


def cannot_write(target: object, error: OSError) -> OSError:
    """Return the error for something that cannot be written, with the reason and the remedy."""
    room = "make room, or " if error.errno in FULL else ""
    return OSError(
        f"cannot write {target}: {error.strerror}; {room}choose another folder with --out"
    )


@contextmanager
def writing(target: object) -> Iterator[None]:
    """Turn an OSError into one that names the file or folder, the reason and the remedy."""
    try:
        yield
    except OSError as error:
        raise cannot_write(target, error) from None


def last_change(path: Path) -> float:
    """Return the time at which a file, or a link that leads to it, was last written, moved or replaced."""
    links = [entry for entry in (path, *path.parents) if entry.is_symlink()]
    states = [path.stat(), *(link.lstat() for link in links)]
    return max(max(state.st_mtime, state.st_ctime) for state in states)


def prepare_folder(folder: Path) -> None:
    """Make a folder for results, and check that files with names as long as theirs can be written there."""
    with writing(f"results to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        prefix = "x" * (MAX_NAME_LENGTH - 8)  # tempfile adds eight characters
        tempfile.NamedTemporaryFile(dir=folder, prefix=prefix).close()


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write, which replaces `path` once it is complete and flushed to the disk.

    Until then it has a random name next to `path`, so that several processes may write at once.
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
    except BaseException:  # also on Ctrl-C
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def replace_file(path: Path, content: bytes) -> None:
    """Write a file atomically; an OSError names the file, the reason and the remedy."""
    with writing(path), replacing(path) as file:
        file.write(content)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read its bytes; refuse folders, devices and pipes, which wait for a writer."""
    unblocked = getattr(os, "O_NONBLOCK", 0)  # Windows has no such flag
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | unblocked))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"{path} is a pipe or a device, not a file")
    return file


def escape_formula(value: Value) -> Value | str:
    """Put ' in front of a text that a spreadsheet takes for a formula, and return all other values unchanged.

    Examples
    --------
    >>> [escape_formula(value) for value in ("=A1", "a-b", -0.5)]
    ["'=A1", 'a-b', -0.5]
    """
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t")):
        return f"'{value}"
    return value


def is_private(folder: Path) -> bool:
    """Return whether a path is a folder, not a link, that the user or root owns and nobody else may write to.

    Windows has no owners and modes, so any folder passes there.
    """
    status = folder.lstat()
    if not hasattr(os, "geteuid"):
        return stat.S_ISDIR(status.st_mode)
    is_own = status.st_uid in (0, os.geteuid())  # root may write everywhere
    is_shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(status.st_mode) and is_own and not is_shared


def read_text(path: Path, limit: int = 2**24) -> str:
    """Return the UTF-8 text of a regular file of at most `limit` bytes, without a byte order mark.

    A file that is larger or not UTF-8 raises a ValueError, one that cannot be read an OSError; both name the file.
    """
    with open_regular(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{path}: larger than {limit // 2**20} MiB, the limit for such a file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None


Json: TypeAlias = dict[str, Any]  # an object of JSON
AnyPath: TypeAlias = str | os.PathLike[str]


def read_toml(path: Path) -> Json:
    """Return the values of a TOML file; a ValueError names the file."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a TOML file: {error}") from None


def read_json(text: str, constant: Callable[[str], object] | None = None) -> Any:
    """Return the value of a JSON text; refuse infinite numbers, keys given twice and thousands of brackets.

    NaN and Infinity, which are not JSON, are refused as well, unless `constant` turns them into values.
    """
    try:
        values = json.loads(
            text,
            parse_constant=constant or _finite,
            parse_float=_finite,
            object_pairs_hook=_keys_once,
        )
    except RecursionError as error:
        raise ValueError(error) from None
    if "\\ud" in text.lower():  # half a character, which cannot be encoded
        json.dumps(values, ensure_ascii=False).encode()
    return values


def _finite(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError(f"{digits[:20]} is not a finite number")
    return value


def _keys_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {key!r} is given twice")
        values[key] = value
    return values
