"""Files of data: their formats and names, their text in pieces of whole lines, and how far reading has come.

`READERS` has a row for each format. A new format is a file with its functions and a row here, or an entry point of an
installed package in the group ``moerank.readers``.
"""

from __future__ import annotations

import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from gzip import GzipFile
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from moerank.arrays import Integers
from moerank.files import open_regular
from moerank.solvers import plugins

if TYPE_CHECKING:
    from moerank.data.read.table import Columns


@dataclass(frozen=True)
class Reader:
    """A format of files.

    Attributes
    ----------
    read : callable or str
        Reads a file; "module:function" is imported at first use. For a table, ``read(path, columns)`` returns the
        columns of these names in their order, as a pyarrow Table, as record batches, or as any object with Arrow's
        ``__arrow_c_stream__``. For numbered features it is `load_letor`.
    columns_of : callable or str
        ``columns_of(path, needed)`` returns the names of all columns of a table; `needed` are known to be among them.
        By default they are those of ``read(path, None)``.
    compressions : tuple of str
        Endings that may follow the ending of the format.
    tabular : bool
        Whether the columns have names, so that the user says which are label and query.
    columnar : bool
        Whether `read` takes ``rows=(first, last)`` and reads only the columns and rows that are asked for.
    textual : bool
        Whether `read` takes the names of the columns of texts as its third argument; the others hold numbers.
    roles : callable or str
        ``roles(path)`` returns the columns that are ``label``, ``query`` and ``features``, if the file tells them.
    explain : callable or str
        ``explain(path, columns, dtype, missing=…)`` raises a ValueError that names the line of the first wrong value.
    """

    read: Callable[..., Any] | str
    columns_of: Callable[[Path, Sequence[str]], Sequence[str]] | str = ""
    compressions: tuple[str, ...] = ()
    tabular: bool = True
    columnar: bool = False
    textual: bool = False
    roles: Callable[[Path], Mapping[str, Any]] | str = ""
    explain: Callable[..., None] | str = ""

    def roles_in(self, path: Path) -> Mapping[str, Any]:
        """Return the columns by their roles, as far as a file tells them."""
        return cast("Mapping[str, Any]", _imported(self.roles)(path)) if self.roles else {}

    def names(self, path: Path, needed: Sequence[str] = ()) -> list[str]:
        """Return the names of the columns of a file."""
        if self.columns_of:
            return list(_imported(self.columns_of)(path, needed))
        return list(pa.RecordBatchReader.from_stream(_imported(self.read)(path, None)).schema.names)

    def batches(
        self, path: Path, columns: Sequence[str], texts: Sequence[str], rows: tuple[int, int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns block by block; `texts` are the columns that hold no numbers."""
        options: dict[str, object] = {"rows": rows} if self.columnar else {}
        if self.textual:
            options["texts"] = texts
        found = _imported(self.read)(path, columns, **options)
        if hasattr(found, "__arrow_c_stream__"):
            found = pa.RecordBatchReader.from_stream(found)
        return cast("Iterator[pa.RecordBatch]", iter(found))

    def refuse(self, path: Path, columns: Columns, dtype: DTypeLike, *, missing: bool) -> None:
        """Raise a ValueError that names the line of the first wrong value, if the format knows of lines."""
        if self.explain:
            _imported(self.explain)(path, columns, dtype, missing=missing)


def _imported(function: Callable[..., Any] | str) -> Callable[..., Any]:
    return cast("Callable[..., Any]", resolve_name(function)) if isinstance(function, str) else function


_PARQUET = Reader(
    "moerank.data.read.parquet:read_parquet",
    "moerank.data.read.parquet:parquet_names",
    columnar=True,
    roles="moerank.data.read.parquet:parquet_roles",
)
_CSV = Reader(
    "moerank.data.read.csv:read_csv",
    "moerank.data.read.csv:csv_names",
    compressions=(".gz",),
    textual=True,
    explain="moerank.data.read.csv:refuse_csv",
)
_LETOR = Reader("moerank.data.read.letor:load_letor", compressions=(".gz", ".xz"), tabular=False)

READERS = {
    ".parquet": _PARQUET,
    ".pq": _PARQUET,
    ".csv": _CSV,
    ".tsv": replace(_CSV, compressions=()),
    ".txt": _LETOR,
}
"""The readers by the endings of their files, in the order in which the files of a folder are looked for."""


def _readers() -> Iterator[tuple[str, Reader]]:
    """Yield all readers by their endings, those of installed packages last."""
    yield from READERS.items()
    for name, found in plugins("moerank.readers").items():
        yield f".{name.removeprefix('.')}", found if isinstance(found, Reader) else Reader(found)


def reader_of(path: Path) -> Reader | None:
    """Return the reader of a file by its ending, or that of Parquet by its first bytes; None for other files."""
    name = path.name.lower()
    for ending, reader in _readers():
        if name.endswith(tuple(ending + compression for compression in ("", *reader.compressions))):
            return reader
    if path.is_file():
        with open_regular(path) as file:
            if file.read(4) == b"PAR1":
                return _PARQUET
    return None


def table_endings() -> Iterator[str]:
    """Yield the endings of tables in the order in which they are looked for."""
    for ending, reader in _readers():
        if reader.tabular:
            yield from (ending + compression for compression in ("", *reader.compressions))


_SPELLINGS = {
    "training": ("train.txt", "trainingset.txt"),
    "validation": ("vali.txt", "validationset.txt"),
    "test": ("test.txt", "testset.txt"),
}
_ENDINGS = {  # also as in Yahoo's set1.train.txt
    "training": (".train", ".train.txt"),
    "validation": (".vali", ".valid", ".vali.txt", ".valid.txt"),
    "test": (".test", ".test.txt"),
}
_DRAWN = ". load_fold(…, validation=0.2), or split = {validation = 0.2} in a problem file, draws it from training"


def part_paths(folder: Path, *, drawn: bool = False) -> list[Path]:
    """Return training, validation and test file of a fold, see `load_fold`; the second may lack if it is `drawn`."""
    check_folder(folder, "load_fold reads the folder of one fold, such as MQ2008/Fold1")
    files = sorted((entry for entry in folder.iterdir() if entry.is_file()), key=lambda entry: entry.name)
    paths = []
    for part, spellings in _SPELLINGS.items():
        spelt = [name + end for name in spellings for end in ("", *_LETOR.compressions)]
        endings = tuple(name + end for name in _ENDINGS[part] for end in ("", *_LETOR.compressions))
        found = [file for name in spelt for file in files if file.name.lower() == name]
        if found:
            paths.append(next((file for file in found if file.name == found[0].name.lower()), found[0]))
            continue
        found = [file for file in files if file.name.lower().endswith(endings)]
        if len(found) > 1:
            listed = ", ".join(file.name for file in found)
            raise FileNotFoundError(f"{folder}: {listed} may each be the {part} part; name the one that is {spelt[0]}")
        if not found and not (drawn and part == "validation"):
            raise FileNotFoundError(
                f"{folder}: no {part} part; looked for {' and '.join(spellings)} (also .gz and .xz, and in capital "
                f"letters) and for one file *{_ENDINGS[part][0]}, and found {names_in(folder)}"
                f"{_DRAWN if part == 'validation' else ''}"
            )
        paths += found
    return paths


def check_folder(folder: Path, advice: str) -> None:
    """Raise a FileNotFoundError with the advice if the path is no folder."""
    if not folder.is_dir():
        reason = "is a file, not a folder" if folder.exists() else "does not exist"
        raise FileNotFoundError(f"{folder} {reason}; {advice}")


def names_in(folder: Path) -> str:
    """Return the names of the first ten entries of a folder, for a message."""
    present = sorted(entry.name for entry in folder.iterdir())
    return ", ".join(present[:10]) + (", …" if len(present) > 10 else "") if present else "nothing"


_LARGEST_QUERY_FILE = 2**28
"""Bytes, at most: more lines than any table has documents."""


def find_query_file(path: Path) -> Path | None:
    """Return the file with the counts of `path`, see `load_letor`; None if there is none."""
    plain = path.with_suffix("") if path.suffix.lower() in _LETOR.compressions else path
    # For another ending only the whole name counts, as x.train and x.test would share the others.
    stems = [plain.name, plain.stem] if plain.suffix.lower() == ".txt" else [plain.name]
    candidates = [path.with_name(stem + ending) for stem in stems for ending in (".query", ".group")]
    return next((candidate for candidate in candidates if candidate != path and candidate.is_file()), None)


def read_query_file(path: Path, beside: Path, n_documents: int) -> Integers:
    """Return the documents of each query in a file of counts, which must add up to those of the file `beside`."""
    with path.open("rb") as file:
        content = file.read(_LARGEST_QUERY_FILE + 1)
    if len(content) > _LARGEST_QUERY_FILE:
        limit = _LARGEST_QUERY_FILE // 2**20
        raise ValueError(f"{path}: larger than {limit} MiB; expected one count of documents per line")
    lines = content.rstrip().splitlines()
    counts = np.zeros(len(lines), np.int64)
    for number, line in enumerate(lines, start=1):
        count = line.strip(b" \t")
        if not re.fullmatch(rb"[0-9]{1,9}", count) or not int(count):
            shown = line[:30].decode("utf-8", "backslashreplace")
            raise ValueError(f"{path}, line {number}: {shown!r} is not the number of documents of a query, from 1 on")
        counts[number - 1] = int(count)
    if counts.sum() != n_documents:
        raise ValueError(
            f"{path}: the {len(counts):,} queries have {counts.sum():,} documents, but {beside} has {n_documents:,}; "
            "give the number of documents of each query in order"
        )
    return counts


Listener = Callable[[Path, float], None]
"""``listener(path, share)``: the share of a file that has been read, from 0 to 1; the last call says 1."""

_listener: ContextVar[Listener] = ContextVar("listener", default=lambda path, share: None)


@contextmanager
def reading_progress(listener: Listener) -> Iterator[None]:
    """Tell `listener` how far files have been read, inside this ``with`` and in this thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def part_of_reading(begin: float, end: float) -> AbstractContextManager[None]:
    """Take the shares that are reported inside this ``with`` for shares of the part from `begin` to `end`."""
    listener = _listener.get()
    return reading_progress(lambda path, share: listener(path, begin + share * (end - begin)))


def report_reading(path: Path, share: float) -> None:
    """Say that a share of a file, from 0 to 1, has been read; takes no time if nobody listens."""
    _listener.get()(path, share)


CHUNK = 2**22
"""Bytes that are read at once: few enough for the caches, enough for the interpreter not to matter."""

LONGEST_LINE = 2**26
"""Most bytes of a line; a longer one is no text, and must not fill the memory."""

DRAIN = 2**30
"""Bytes of an archive that are unpacked after a line was refused, to see whether damage is to blame."""

PIECE = 2**18
"""Bytes of an .xz file that are unpacked at once."""

LF, CR = 10, 13


class TextChunks:
    """The text of a file (plain, ``.gz`` or ``.xz``) as pieces of about `size` bytes that end with a line.

    `share` is how much of the file has been read, from 0 to 1; 0 where its size is not known. A plain file may be read
    up to the byte `end`.
    """

    def __init__(self, path: Path, file: BinaryIO, size: int = CHUNK, end: int | None = None) -> None:
        self._path, self._file, self._size, self._end = path, file, size, end
        self._n_bytes = os.fstat(file.fileno()).st_size
        self._suffix = path.suffix.lower()
        self._stream: Any = file
        if self._suffix == ".gz":
            self._stream = GzipFile(fileobj=file, mode="rb")
        elif self._suffix == ".xz":
            self._stream = _XzStream(file)
        self.share = 0.0

    def __iter__(self) -> Iterator[tuple[NDArray[np.uint8], int]]:
        """Yield an array of bytes and the number of them that are whole lines; it is used again for the next piece.

        What follows these bytes is no line feed after a carriage return, and there is at least one such byte. The last
        line is given a line end if it has none. A line longer than `LONGEST_LINE` is an OverflowError.
        """
        buffer = bytearray(self._size + 2)
        kept = 0
        while True:
            n_read = self._read(memoryview(buffer)[kept : len(buffer) - 2])
            filled = kept + n_read
            if n_read == 0:
                if filled:
                    ended = buffer[filled - 1] == CR
                    buffer[filled], buffer[filled + 1] = (0 if ended else LF), 0
                    yield np.frombuffer(buffer, np.uint8), filled + (not ended)
                return
            whole = _whole_lines(buffer, kept, filled)
            if whole:
                yield np.frombuffer(buffer, np.uint8), whole
                kept = filled - whole
                buffer[:kept] = buffer[whole:filled]
                continue
            kept = filled
            if kept > LONGEST_LINE:
                raise OverflowError
            if kept == len(buffer) - 2:
                buffer = buffer + bytes(len(buffer))

    def check_rest(self) -> None:
        """Raise the ValueError of an archive that is damaged further on, if it is not longer than DRAIN."""
        if self._suffix not in _LETOR.compressions:
            return
        buffer = memoryview(bytearray(2**20))
        for _ in range(DRAIN // len(buffer)):
            if not self._read(buffer):
                return

    def _read(self, buffer: memoryview) -> int:
        if self._end is not None:
            buffer = buffer[: self._end - self._file.tell()]
        try:
            n_read: int = self._stream.readinto(buffer) or 0
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            if self._suffix not in _LETOR.compressions or getattr(error, "errno", None) is not None:
                raise
            raise ValueError(
                f"{self._path}: the {self._suffix} file is truncated or damaged ({error}); fetch or compress it again"
            ) from None
        if self._n_bytes:
            self.share = min(self._file.tell() / self._n_bytes, 1.0)
        return n_read


def _whole_lines(buffer: bytearray, begin: int, end: int) -> int:
    """Return how many bytes up to `end` are whole lines; no line ends before `begin`."""
    first = max(begin - 1, 0)
    place = buffer.rfind(b"\n", first, end)
    return max(place, buffer.rfind(b"\r", max(place, first), end - 1)) + 1  # a CR at the end may be half a line end


class _XzStream:
    """Decompresses every stream of an .xz file; `lzma.LZMAFile` would ignore all that follows a damaged one."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)

    def readinto(self, buffer: memoryview) -> int:
        content = b""
        while not content:
            stored = b""
            if self._decompressor.eof:  # zeros may follow a stream
                stored = self._decompressor.unused_data.lstrip(b"\0")
                while not stored and (piece := self._file.read(PIECE)):
                    stored = piece.lstrip(b"\0")
                if not stored:
                    return 0
                self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
            elif self._decompressor.needs_input and not (stored := self._file.read(PIECE)):
                raise EOFError("the stream does not end")
            content = self._decompressor.decompress(stored, len(buffer))
        buffer[: len(content)] = content
        return len(content)
