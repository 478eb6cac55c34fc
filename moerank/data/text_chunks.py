"""A text file in pieces of whole lines, plain or compressed: at no time is more of it in memory than one piece."""

from __future__ import annotations

import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import GzipFile
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHUNK", "LONGEST_LINE", "TextChunks"]

CHUNK = 2**24
"""Bytes that are read at once: few enough for the caches, enough for the interpreter not to matter."""

LONGEST_LINE = 2**26
"""Bytes of a line: what goes on without a line end is no text, and must not fill the memory."""

DRAIN = 2**30
"""Bytes of an archive that are unpacked after a line was refused, to see whether damage is to blame."""

PIECE = 2**18
"""Bytes of an .xz file that are unpacked at once."""

LF, CR = 10, 13


class _Stream(Protocol):
    def readinto(self, buffer: memoryview, /) -> int | None: ...


class TextChunks:
    """The text of a file as pieces that end with a line.

    Parameters
    ----------
    path : Path
        Plain, ``.gz`` or ``.xz``, in letters of any size.
    file : binary file
        The file, opened without a buffer.
    size : int
        Bytes to read at once, at least 1.

    Attributes
    ----------
    share : float
        How much of the file has been read, from 0 to 1; 0 where its size is not known.
    """

    def __init__(self, path: Path, file: BinaryIO, size: int = CHUNK) -> None:
        self._path, self._file, self._size = path, file, size
        self._n_bytes = os.fstat(file.fileno()).st_size
        self._suffix = path.suffix.lower()
        self._stream: _Stream = cast(_Stream, file)
        if self._suffix == ".gz":
            self._stream = GzipFile(fileobj=file, mode="rb")
        elif self._suffix == ".xz":
            self._stream = _XzStream(file)
        self.share = 0.0

    def __iter__(self) -> Iterator[tuple[NDArray[np.uint8], int]]:
        """Yield an array of bytes and the number of them that are whole lines; it is used again for the next piece.

        What follows these bytes is no line feed after a carriage return, and there is at least one such byte. The
        last line is given a line end if it has none.

        Raises
        ------
        ValueError
            For an archive that is truncated or damaged.
        OverflowError
            If a line is longer than LONGEST_LINE.
        """
        buffer = np.empty(self._size + 2, np.uint8)
        kept = 0
        while True:
            n_read = self._read(buffer[kept : len(buffer) - 2].data)
            filled = kept + n_read
            if n_read == 0:
                if filled:
                    ended = buffer[filled - 1] == CR
                    buffer[filled], buffer[filled + 1] = (0 if ended else LF), 0
                    yield buffer, filled + (not ended)
                return
            whole = _whole_lines(buffer, kept, filled)
            if whole:
                yield buffer, whole
                kept = filled - whole
                buffer[:kept] = buffer[whole:filled].copy()
                continue
            kept = filled
            if kept > LONGEST_LINE:
                raise OverflowError
            if kept == len(buffer) - 2:
                larger = np.empty(2 * len(buffer), np.uint8)
                larger[:kept] = buffer[:kept]
                buffer = larger

    def check_rest(self) -> None:
        """Raise the ValueError of an archive that is damaged further on, if it is not longer than DRAIN."""
        if self._suffix not in (".gz", ".xz"):
            return
        buffer = memoryview(bytearray(2**20))
        for _ in range(DRAIN // len(buffer)):
            if not self._read(buffer):
                return

    def _read(self, buffer: memoryview) -> int:
        with self._damage_in_words():
            n_read = self._stream.readinto(buffer) or 0
        if self._n_bytes:
            self.share = min(self._file.tell() / self._n_bytes, 1.0)
        return n_read

    @contextmanager
    def _damage_in_words(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            if self._suffix not in (".gz", ".xz") or getattr(error, "errno", None) is not None:
                raise
            raise ValueError(
                f"{self._path}: the {self._suffix} file is truncated or damaged ({error}); fetch or compress it again"
            ) from None


def _whole_lines(buffer: NDArray[np.uint8], begin: int, end: int) -> int:
    """Return how many of the bytes up to `end` are whole lines; those before `begin` hold no line end.

    A carriage return at the very end may be half a line end.
    """
    step = 2**16
    for last in range(end, begin, -step):
        tail = buffer[max(begin - 1, 0, last - step) : last].tobytes()
        if last == end and tail.endswith(b"\r"):
            tail = tail[:-1]
        place = max(tail.rfind(b"\n"), tail.rfind(b"\r"))
        if place >= 0:
            return max(begin - 1, 0, last - step) + place + 1
    return 0


class _XzStream:
    """Decompresses every stream of an .xz file; `lzma.LZMAFile` would ignore all that follows a damaged one."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)

    def readinto(self, buffer: memoryview) -> int:
        while True:
            stored = b""
            if self._decompressor.eof:
                stored = self._next_stream()
                if not stored:
                    return 0
                self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
            elif self._decompressor.needs_input:
                stored = self._file.read(PIECE)
                if not stored:
                    raise EOFError("the stream does not end")
            content = self._decompressor.decompress(stored, len(buffer))
            if content:
                buffer[: len(content)] = content
                return len(content)

    def _next_stream(self) -> bytes:
        """Return the begin of what follows a stream and zeros; nothing at the end of the file."""
        stored = self._decompressor.unused_data.lstrip(b"\0")
        while not stored:
            piece = self._file.read(PIECE)
            if not piece:
                break
            stored = piece.lstrip(b"\0")
        return stored
