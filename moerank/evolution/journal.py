"""Journals of a search: what was evaluated, in an append-only file that is read without running anything in it.

A journal begins with one line of JSON: the format, the versions that wrote it, the search (sizes of the problem,
algorithm, seed) and the configuration of the run, which holds digests of its data. Then comes one record for each
batch of individuals that the algorithm asked for and was told about, all numbers little-endian:

======================  ==========================================================================================
8 bytes, integer        n, how many individuals
8 bytes, float          seconds of the search so far, interruptions not counted
8 bytes                 check sum of these two
n × 16 bytes            digests of the individuals (`row_digests`)
n × width × 8 bytes     their F and, where the problem has constraints, G and H, as floats
16 bytes                check sum of the record
======================  ==========================================================================================

The check sums are blake2b over the check sum of the record before (at first: of the header) and the bytes they stand
for, so a record cannot be lost, moved or taken from another journal without notice. They are no secret: that nobody
altered a journal on purpose is found out by measuring again, see `search`.
"""

from __future__ import annotations

import json
import os
import platform
import struct
import time
from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import version
from io import FileIO
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from moerank.files import cannot_write
from moerank.systems import remove
from moerank.version import VERSION

__all__ = ["Journal", "Record"]

FORMAT = 1
"""Number of the file format; raised whenever an older file cannot be read any more."""

LONGEST_HEADER = 2**20
"""Bytes of a foreign header that are looked at to tell what differs."""

LARGEST_RECORD = 10_000_000
"""Individuals of a record beyond which it is refused before it is read."""

LONGEST_GAP = 2**26
"""Bytes that a power cut is believed to leave unwritten."""

_HEAD = struct.Struct("<Qd")
_HEAD_SUM, _DIGEST, _SUM = 8, 16, 16


@dataclass(frozen=True)
class Record:
    """One batch of individuals.

    Attributes
    ----------
    elapsed : float
        Seconds of the search until its objectives were known.
    digests : list of bytes, length n
    values : ndarray, shape (n, width)
        F, G and H side by side.
    """

    elapsed: float
    digests: list[bytes]
    values: NDArray[np.float64]


class Journal:
    """The file that a search writes down what it evaluates in.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist.
    configuration : dict
        What determines the run (problem, data, solver, parameters), as JSON values. A journal of another
        configuration is refused.
    every : float, default 2.0
        Seconds between two moments at which the file is forced to the disk. Each record is handed to the operating
        system at once, so a killed process loses nothing that it evaluated, and a power cut at most these seconds.

    Attributes
    ----------
    n_records : int
        Records read and written so far.
    resumed : bool
        Whether any were read.

    Raises
    ------
    TypeError
        If the configuration holds other than JSON values.

    Examples
    --------
    >>> import tempfile
    >>> journal = Journal(Path(tempfile.mkdtemp()) / "run.journal", {"solver": "mofsrank", "seed": 1})
    >>> journal.exists()
    False
    """

    def __init__(self, path: str | Path, configuration: dict[str, Any], *, every: float = 2.0) -> None:
        self.path = Path(path)
        # Through JSON and back, so that a tuple here equals the list that it becomes in the file.
        self.configuration = json.loads(json.dumps(configuration))
        self.every = every
        self.n_records = 0
        self.resumed = False
        self._reading = False
        self._unsynced = False
        self._file: FileIO | None = None

    @property
    def repeating(self) -> bool:
        """Whether the last batch was read, not written: the search is not yet where it was interrupted."""
        return self._reading

    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return self.path.exists()

    def remove(self) -> None:
        """Delete the file: the run has ended."""
        remove(self.path)

    def open(self, about: dict[str, Any], width: int) -> None:
        """Open the file, or begin it where there is none.

        Parameters
        ----------
        about : dict
            What else determines the search, as JSON values; another is refused.
        width : int
            Number of values per individual.

        Raises
        ------
        ValueError
            If the file is no journal, or one of other versions or of another configuration.
        OSError
            If it cannot be read or written.
        """
        if self.exists() and not self.path.is_file():
            raise ValueError(f"{self.path} is not a journal of moerank but something else than a file; move it away")
        header = self._header(about)
        self._width = width
        self._file = FileIO(os.fspath(self.path), "r+" if self.exists() else "x+")
        self._size = os.fstat(self._file.fileno()).st_size
        self._reading = self._begins_with(header)
        if not self._reading:
            self._file.seek(0)
            self._file.truncate()
            self._write(header)
            self._sync()
        self._last_sync = time.monotonic()
        self._end = len(header)
        self._chain = _sum(header)
        self._elapsed = 0.0
        self.n_records = 0
        self.resumed = False

    def read(self, asked: int | None = None) -> Record | None:
        """Return the next record, or None where the journal ends; a record that is torn there is cut off.

        Parameters
        ----------
        asked : int, optional
            How many individuals it must hold. A record of another number is refused before it is read.

        Raises
        ------
        ValueError
            If the record is damaged, or that of another search.
        """
        if not self._reading:
            return None
        left = self._size - self._end
        head = self._take(min(left, _HEAD.size + _HEAD_SUM))
        if len(head) < _HEAD.size + _HEAD_SUM:
            return self._cut()
        numbers, head_sum = head[: _HEAD.size], head[_HEAD.size :]
        if head_sum != _sum(self._chain, numbers, size=_HEAD_SUM):
            return self._cut() if self._never_written(head_sum) else self._refuse("its bytes were changed")
        n, elapsed = _HEAD.unpack(numbers)
        if n > LARGEST_RECORD:
            self._refuse(f"it says that it holds {n:,} individuals; at most {LARGEST_RECORD:,} can be")
        if asked is not None and n != asked:
            self._belongs_elsewhere(self.n_records + 1, f"it holds {n} individuals, and {asked} are asked for")
        length = n * (_DIGEST + 8 * self._width)
        if length + _SUM > left - len(head):
            return self._cut()
        body, whole_sum = self._take(length), self._take(_SUM)
        chain = _sum(self._chain, head, body)
        if whole_sum != chain:
            return self._cut() if self._never_written(whole_sum) else self._refuse("its bytes were changed")
        values = np.frombuffer(body, "<f8", n * self._width, n * _DIGEST).reshape(n, self._width).astype(np.float64)
        if np.isnan(values).any():
            self._refuse("it holds values that are not numbers")
        if not self._elapsed <= elapsed < np.inf:
            self._refuse(f"its time is {elapsed} s after {self._elapsed} s")
        self._advance(len(head) + length + _SUM, chain, elapsed)
        self.resumed = True
        return Record(elapsed, [body[i : i + _DIGEST] for i in range(0, n * _DIGEST, _DIGEST)], values)

    def append(self, record: Record) -> None:
        """Write a record after all others.

        Raises
        ------
        ValueError
            If its values cannot be kept, or another process writes to the same file.
        OSError
            If the file cannot be written; the message names it, the reason and the remedy.
        """
        if (undefined := np.isnan(record.values).any(axis=1)).any():
            i = int(undefined.argmax())
            raise ValueError(
                f"journal: the values of individual {i} are {record.values[i]}; let the problem return a finite "
                "penalty in place of NaN"
            )
        n = len(record.digests)
        if n > LARGEST_RECORD:
            raise ValueError(f"journal: {n:,} individuals at once; at most {LARGEST_RECORD:,} can be written down")
        numbers = _HEAD.pack(n, record.elapsed)
        head = numbers + _sum(self._chain, numbers, size=_HEAD_SUM)
        body = b"".join(record.digests) + record.values.astype("<f8").tobytes()
        chain = _sum(self._chain, head, body)
        assert self._file is not None
        if os.fstat(self._file.fileno()).st_size != self._end:
            raise ValueError(f"journal {self.path} was changed by another process; let only one run write to it")
        self._write(head + body + chain)
        self._advance(len(head) + len(body) + _SUM, chain, record.elapsed)
        if time.monotonic() - self._last_sync >= self.every:
            self._sync()

    def differs(self, how: str) -> NoReturn:
        """Refuse the journal because the search does not go as the last record says."""
        self._belongs_elsewhere(self.n_records, how)

    def close(self) -> None:
        """Force to the disk what was written, and close the file."""
        if self._file is not None:
            try:
                if self._unsynced:
                    self._sync()
            finally:
                self._file.close()
                self._file = None

    def _advance(self, length: int, chain: bytes, elapsed: float) -> None:
        self.n_records += 1
        self._end += length
        self._chain = chain
        self._elapsed = elapsed

    def _cut(self) -> Record | None:
        """End the file before the record that begins here, and return that there is none."""
        assert self._file is not None
        if self._end < self._size:
            self._file.truncate(self._end)
        self._file.seek(self._end)
        self._reading = False
        return None

    def _belongs_elsewhere(self, number: int, how: str) -> NoReturn:
        raise ValueError(
            f"record {number} of journal {self.path} belongs to another search: {how}; resume it with the "
            "data, the problem and the machine it was written with, or remove it to begin anew"
        )

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(
            f"record {self.n_records + 1} of journal {self.path} is damaged: {why}; cut the file off at byte "
            f"{self._end} to go on from what is before, or remove it to begin anew"
        )

    def _never_written(self, check_sum: bytes) -> bool:
        """Whether there are zeros from here to the end, as a power cut leaves a file that had grown already."""
        assert self._file is not None
        follows = self._size - self._file.tell()
        if follows > LONGEST_GAP:
            return False
        return check_sum[-1] == 0 and self._take(follows).count(0) == follows

    def _take(self, length: int) -> bytes:
        assert self._file is not None
        return self._file.read(length) or b""

    def _write(self, content: bytes) -> None:
        assert self._file is not None
        self._unsynced = True
        try:
            while content:
                content = content[self._file.write(content) or 0 :]
        except OSError as error:
            raise cannot_write(self.path, error) from None

    def _sync(self) -> None:
        assert self._file is not None
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._last_sync = time.monotonic()
        self._unsynced = False

    def _header(self, about: dict[str, Any]) -> bytes:
        major, minor, _ = platform.python_version_tuple()
        versions = {
            "journal format": FORMAT,
            "moerank": VERSION,
            "pymoo": version("pymoo"),
            "numpy": np.__version__,
            "python": f"{major}.{minor}",
        }
        self._here = {"versions": versions, "configuration": about | self.configuration}
        return json.dumps({"format": "moerank journal"} | self._here, sort_keys=True).encode() + b"\n"

    def _begins_with(self, header: bytes) -> bool:
        """Whether the file has this header, False if only a beginning of it was written; refuse any other."""
        assert self._file is not None
        start = self._take(min(self._size, len(header)))
        if start == header:
            return True
        if self._size <= len(header) and header.startswith(start.rstrip(b"\0")):
            return False
        self._file.seek(0)
        line, _, _ = self._take(LONGEST_HEADER).partition(b"\n")
        try:
            there = json.loads(line)
            if there["format"] != "moerank journal":
                raise ValueError
            versions = _differences(there["versions"], self._here["versions"])
            configuration = _differences(there["configuration"], self._here["configuration"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ValueError(f"{self.path} is not a journal of moerank; choose another path") from None
        if versions:
            raise ValueError(
                f"journal {self.path} was written by other versions: {versions}; "
                "resume it with the versions it was written by, or remove it to begin anew"
            )
        raise ValueError(
            f"journal {self.path} belongs to another configuration: {configuration or 'its header was changed'}; "
            "resume it with the configuration it was written for, or remove it to begin anew"
        )


def _sum(*pieces: bytes, size: int = _SUM) -> bytes:
    digest = blake2b(digest_size=size)
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def _differences(there: dict[str, Any], here: dict[str, Any]) -> str:
    missing = "missing"
    return ", ".join(
        f"{key if key in here else _shown(key)} is {_shown(there.get(key, missing))} there and "
        f"{_shown(here.get(key, missing))} here"
        for key in sorted(there.keys() | here.keys())
        if there.get(key, missing) != here.get(key, missing)
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
