"""Journals of searches: append-only files of all evaluated batches, which run no code when they are read.

The first line is JSON: format, versions of the writers, and the configuration of the search with digests of its data.
Each further line is a batch of individuals: JSON ``[seconds, digests, values]`` and a check sum. The seconds are those
of the search so far, without interruptions; the digests (`row_digests`) name the individuals; the values are their F, G
and H. The check sum is blake2b over the check sum of the line before and this line, so that no record can be lost,
moved or taken from another journal without notice. Check sums are no secret: a deliberate change is found when a
resumed search measures its archive again, see `search`.
"""

from __future__ import annotations

import json
import os
import platform
import reprlib
import time
from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import version
from io import BufferedReader, FileIO
from math import inf
from pathlib import Path
from typing import NoReturn

import numpy as np

from moerank.arrays import Matrix
from moerank.files import cannot_write
from moerank.version import VERSION

NAME = "moerank journal"
"""Name of the file format."""

FORMAT = 3
"""Version of the file format; older formats are refused."""

LONGEST_HEADER, LONGEST_RECORD = 2**20, 2**28
"""Largest number of bytes of a line."""


@dataclass(frozen=True)
class Record:
    """One batch of individuals.

    Attributes
    ----------
    elapsed : float
        Seconds of the search up to the evaluation.
    digests : list of bytes, length n
    values : ndarray, shape (n, width)
        F, G and H side by side.
    """

    elapsed: float
    digests: list[bytes]
    values: Matrix


class Journal:
    """The file of the evaluated individuals of a search.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist.
    configuration : dict
        Settings that determine the run (problem, data, solver, parameters), as JSON values. A journal of another
        configuration is refused.
    every : float, default 2.0
        Seconds between two writes to the disk. Each record is given to the operating system at once, so that a killed
        process loses no evaluation, and a power cut loses at most these seconds.

    Attributes
    ----------
    n_records : int
        Records read and written so far.
    resumed : bool
        Whether any record was read.
    repeating : bool
        Whether the search is not yet where it was interrupted.

    Examples
    --------
    >>> import tempfile
    >>> from pymoo.algorithms.moo.nsga2 import NSGA2
    >>> from pymoo.problems import get_problem
    >>> from moerank.evolution import search
    >>> problem = get_problem("zdt1", n_var=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for n_gen in (3, 5):  # the second search goes on where the first one ended
    ...         journal = Journal(Path(folder, "zdt1.journal"), {"seed": 1})
    ...         result = search(problem, NSGA2(pop_size=20), n_gen, seed=1, journal=journal)
    ...         print(f"{journal.n_records} records, resumed: {journal.resumed}")
    3 records, resumed: False
    5 records, resumed: True
    """

    def __init__(self, path: str | Path, configuration: dict[str, object], *, every: float = 2.0) -> None:
        self.path = Path(path)
        # Through JSON and back: a tuple becomes a list in the file.
        self.configuration = json.loads(json.dumps(configuration))
        self.every = every
        self.n_records = 0
        self.resumed = self.repeating = False
        self._lines: BufferedReader | None = None

    def exists(self) -> bool:
        """Whether the file exists."""
        return self.path.exists()

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)

    def open(self, about: dict[str, object], width: int) -> None:
        """Open or begin the file of a search of `width` values per individual; `about` joins the configuration.

        Raises a ValueError if the file is no journal, or a journal of other versions or of another configuration.
        """
        if self.exists() and not self.path.is_file():
            raise ValueError(f"{self.path} is not a journal of moerank but something else than a file; move it away")
        here = {"format": NAME, "versions": _versions(), "configuration": about | self.configuration}
        header = json.dumps(here, sort_keys=True).encode() + b"\n"
        self._file = FileIO(self.path, "a+")
        self._file.seek(0)
        self._lines = BufferedReader(self._file)
        self._width = width
        self.n_records, self._end, self._elapsed, self._last_sync = 0, 0, 0.0, -inf
        self.resumed, self.repeating = False, self._begins_with(header)
        if self.repeating:
            self._accept(header, _sum(header))
        else:
            self._file.truncate(0)
            self._write(header, _sum(header))

    def read(self, asked: int | None = None) -> Record | None:
        """Return the next record, or None at the end; a torn last record is cut off.

        Raises a ValueError if the record is damaged, or has another number of individuals than `asked`.
        """
        if not self.repeating or self._lines is None:
            return None
        line = self._lines.readline(LONGEST_RECORD)
        if not line.endswith(b"\n") and len(line) < LONGEST_RECORD:
            self._file.truncate(self._end)
            self.repeating = False
            return None
        body, _, check_sum = line.rpartition(b" ")
        if check_sum != _sum(self._sum, body):
            self._refuse("its bytes were changed")
        try:
            elapsed, digests, values = json.loads(body)
            F = np.array(values, np.float64).reshape(len(digests), self._width)
            record = Record(float(elapsed), [bytes.fromhex(digest) for digest in digests], F)
        except (ValueError, TypeError, OverflowError, RecursionError):
            self._refuse("it does not hold seconds, digests and values")
        if asked is not None and len(digests) != asked:
            self.differs(f"it holds {len(digests)} individuals, and {asked} are asked for", self.n_records + 1)
        if np.isnan(F).any():
            self._refuse("it holds values that are not numbers")
        if not self._elapsed <= record.elapsed < inf:
            self._refuse(f"its time is {record.elapsed} s after {self._elapsed} s")
        self._accept(line, check_sum)
        self._elapsed = record.elapsed
        self.n_records += 1
        self.resumed = True
        return record

    def append(self, record: Record) -> None:
        """Write a record at the end.

        Raises a ValueError for NaN and for a file that another process changed, and an OSError that names file, reason
        and remedy if the file cannot be written.
        """
        if (undefined := np.isnan(record.values).any(axis=1)).any():
            i = int(undefined.argmax())
            raise ValueError(
                f"journal: the values of individual {i} are {record.values[i]}; let the problem return a finite "
                "penalty in place of NaN"
            )
        digests = [digest.hex() for digest in record.digests]
        body = json.dumps([record.elapsed, digests, record.values.tolist()]).encode()
        if os.fstat(self._file.fileno()).st_size != self._end:
            raise ValueError(f"journal {self.path} was changed by another process; let only one run write to it")
        check_sum = _sum(self._sum, body)
        self._write(body + b" " + check_sum, check_sum)
        self.n_records += 1

    def differs(self, how: str, number: int | None = None) -> NoReturn:
        """Refuse the journal because the search differs from a record, by default the last one read."""
        raise ValueError(
            f"record {number or self.n_records} of journal {self.path} belongs to another search: {how}; resume it "
            "with the data, the problem and the machine it was written with, or remove it to begin anew"
        )

    def close(self) -> None:
        """Force the written records to the disk, and close the file."""
        if self._lines is not None:
            try:
                self._sync()
            finally:
                self._lines.close()
                self._lines = None

    def _accept(self, line: bytes, check_sum: bytes) -> None:
        self._end += len(line)
        self._sum = check_sum

    def _write(self, line: bytes, check_sum: bytes) -> None:
        rest = line
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._accept(line, check_sum)
        if time.monotonic() - self._last_sync >= self.every:
            self._sync()

    def _sync(self) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._last_sync = time.monotonic()

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(
            f"record {self.n_records + 1} of journal {self.path} is damaged: {why}; cut the file off at byte "
            f"{self._end} to go on from what is before, or remove it to begin anew"
        )

    def _begins_with(self, header: bytes) -> bool:
        """Whether the file has this header; False if it was not written to its end; refuse another header."""
        assert self._lines is not None
        line = self._lines.readline(LONGEST_HEADER)
        if line == header:
            return True
        if len(line) <= len(header) and header.startswith(line.rstrip(b"\0")):
            return False
        try:
            here, there = json.loads(header), json.loads(line)
            if there["format"] != NAME:
                raise ValueError
            versions, configuration = (_differences(there[key], here[key]) for key in ("versions", "configuration"))
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


def _sum(*pieces: bytes) -> bytes:
    """Return the check sum as text with a newline."""
    return blake2b(b"".join(pieces), digest_size=16).hexdigest().encode() + b"\n"


def _versions() -> dict[str, object]:
    return {
        "journal format": FORMAT,
        "moerank": VERSION,
        "pymoo": version("pymoo"),
        "numpy": np.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
    }


def _differences(there: dict[str, object], here: dict[str, object]) -> str:
    missing = "missing"
    return ", ".join(
        f"{key if key in here else reprlib.repr(key)} is {_shown(there.get(key, missing))} there and "
        f"{_shown(here.get(key, missing))} here"
        for key in sorted(there.keys() | here.keys())
        if there.get(key, missing) != here.get(key, missing)
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
