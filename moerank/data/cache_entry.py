"""A file of arrays that opens at the speed of memory, and only if nothing in it has changed.

Large arrays are mapped: they stay in the file, whose pages the processes that read it share. Such a file is never
written to again, only replaced or removed, which leaves what is mapped as it is.
"""

from __future__ import annotations

import json
import os
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.check_sum import LANES, fold_words, start_lanes
from moerank.systems import open_regular

__all__ = ["Arrays", "DamagedEntryError", "read_arrays", "write_arrays"]

Arrays = dict[str, NDArray[Any]]

_MAGIC = b"moerank arrays 1"
_ALIGNED = 8 * LANES
"""Arrays begin at multiples of so many bytes; check sums take as many at a time."""
_PIECE = 2**21
"""Bytes that are read at once, and summed while they are in the processor's cache."""
MAPPED = 2**26
"""Bytes of an array from which on it is mapped, where a file that is mapped can be removed."""
_SUM = 32
_LARGEST_HEADER = 2**20


class DamagedEntryError(ValueError):
    """A file that is not as it was written."""


def write_arrays(file: BinaryIO, name: str, arrays: Arrays) -> None:
    """Write arrays of numbers or texts, C-contiguous, under the name that the file will have."""
    entries = [
        {"name": key, "type": array.dtype.str, "shape": array.shape, "sum": _array_sum(array)}
        for key, array in arrays.items()
    ]
    header = json.dumps(entries).encode()
    file.write(_MAGIC + len(header).to_bytes(8, "little") + _header_sum(name, header) + header)
    n_written = len(_MAGIC) + 8 + _SUM + len(header)
    for array in arrays.values():
        file.write(bytes(-n_written % _ALIGNED))
        file.write(_bytes_of(array))
        n_written += -n_written % _ALIGNED + array.nbytes


def read_arrays(path: Path) -> Arrays:
    """Return the arrays that were written under the name of this file; large ones can only be read.

    Raises
    ------
    DamagedEntryError
        If anything in it has changed, or it was written under another name.
    OSError
        If it cannot be read, or is no regular file.
    """
    with open_regular(path) as buffered:
        file = buffered.raw  # type: ignore[attr-defined]  # a buffer would copy everything once more
        begin = file.read(len(_MAGIC) + 8 + _SUM) or b""
        length = int.from_bytes(begin[len(_MAGIC) : len(_MAGIC) + 8], "little")
        if not begin.startswith(_MAGIC) or length > _LARGEST_HEADER:
            raise DamagedEntryError
        header = file.read(length) or b""
        if begin[-_SUM:] != _header_sum(path.name, header):
            raise DamagedEntryError
        entries = json.loads(header)
        place = file.tell()
        n_bytes = file.seek(0, 2)
        arrays: Arrays = {}
        for entry in entries:
            place += -place % _ALIGNED
            file.seek(place)
            kind, shape = np.dtype(entry["type"]), entry["shape"]
            if kind.kind not in "biufU" or min(shape, default=0) < 0 or place + kind.itemsize * prod(shape) > n_bytes:
                raise DamagedEntryError  # somebody else's: memory filled with what are no numbers would be believed
            if kind.itemsize * prod(shape) >= MAPPED and os.name == "posix":
                array: NDArray[Any] = np.memmap(file, kind, "r", place, tuple(shape))
                found = _array_sum(array)
            else:
                array = np.empty(shape, kind)
                found = _array_sum(array, file)
            if found != entry["sum"]:
                raise DamagedEntryError
            arrays[entry["name"]] = array
            place += array.nbytes
        if place != n_bytes:
            raise DamagedEntryError
    return arrays


def _array_sum(array: NDArray[Any], file: BinaryIO | None = None) -> str:
    """Return the check sum of an array, which is filled from a file first if there is one, piece by piece."""
    content = _bytes_of(array)
    lanes = start_lanes()
    for begin in range(0, len(content), _PIECE):
        piece = np.frombuffer(content[begin : begin + _PIECE], np.uint8)
        if file is not None and not _fill(content[begin : begin + _PIECE], file):
            raise DamagedEntryError
        whole = len(piece) - len(piece) % _ALIGNED
        fold_words(lanes, piece[:whole].view(np.uint64))
        if whole < len(piece):
            last = np.zeros(_ALIGNED, np.uint8)
            last[: len(piece) - whole] = piece[whole:]
            fold_words(lanes, last.view(np.uint64))
    return blake2b(lanes.tobytes(), digest_size=16).hexdigest()


def _fill(buffer: memoryview, file: BinaryIO) -> bool:
    """Fill a buffer from a file; False if there is not enough."""
    filled = 0
    while filled < len(buffer):
        n_read = file.readinto(buffer[filled:])  # type: ignore[attr-defined]
        if not n_read:
            return False
        filled += n_read
    return True


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _header_sum(name: str, header: bytes) -> bytes:
    digest = blake2b(name.encode() + b"\n", digest_size=_SUM)
    digest.update(header)
    return digest.digest()
