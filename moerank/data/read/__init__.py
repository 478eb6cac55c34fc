"""Shared parts of the readers: opening files, lines of text, and the documents that were read."""

import gzip
import mmap
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike

from moerank.arrays import Array, Floats, Integers, Vector
from moerank.data.inputs import RULES, empty_table, row_blocks
from moerank.data.preparation import MissingRule
from moerank.data.ranking_data import RankingData
from moerank.files import open_regular
from moerank.kernels.letor_text import POWERS

# An integer up to 9.007e15, which is about 2^53, beyond which double precision loses digits, or a decimal.
NUMERAL = (
    r"[+-]?(?:0*(?:[0-8]?[0-9]{1,15}|900[0-6][0-9]{12})|[0-9]+[eE][+-]?[0-9]+"
    r"|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)

CELLS_AT_A_TIME = 2**22  # values of a table that are read together

# Lines of a file and rows of a table, with the number of the line on which they end.
Lines: TypeAlias = Iterator[tuple[int, str]]
Rows: TypeAlias = Iterator[tuple[int, list[str]]]

MISSING_REMEDY = (
    f"say what missing values become, by missing= in Python or in [data] of a problem file: {RULES}"
)


@dataclass(frozen=True, eq=False)
class Documents:
    """The documents of a file, as `RankingData` takes them; NaN is a missing value."""

    X: Array
    y: Integers
    qid: Array
    feature_names: tuple[str, ...] | None = None
    documents: Array | None = None
    query_weights: Vector | None = None
    document_weights: Vector | None = None

    def as_data(
        self, name: str, missing: MissingRule | None, missing_values: Sequence[float]
    ) -> RankingData:
        """Return the documents as ranking data without a copy of the features, unless missing values are replaced."""
        self.X.setflags(write=False)
        return RankingData(**vars(self), name=name, missing=missing, missing_values=missing_values)


class WrongRowError(ValueError):
    """A row of a table that cannot be used, counted from 0, and the reason."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row, self.reason = row, reason


Precision = type[np.float64] | type[np.float32]


def as_precision(dtype: DTypeLike) -> Precision:
    """Return the precision of features as one of the two types allowed, or raise a ValueError."""
    for precision in (np.float64, np.float32):
        if np.dtype(dtype) == precision:
            return precision
    raise ValueError(f"dtype must be float32 or float64, not {np.dtype(dtype)}")


def in_single_if_exact(parts: list[Documents]) -> list[Documents]:
    """Return documents with features in single precision if it tells all values of each feature apart, else as given.

    It tells multiples of 10⁻ᵈ up to 2²³ · 10⁻ᵈ apart, because its numbers lie no further apart than 10⁻ᵈ there.
    """
    if not all(_are_apart_in_single(part.X) for part in parts):
        return parts
    return [replace(part, X=part.X.astype(np.float32)) for part in parts]


def _are_apart_in_single(X: Floats) -> bool:
    blocks = [X[rows] for rows in row_blocks(len(X))]
    largest = np.fmax.reduce([np.fmax.reduce(abs(block)) for block in blocks])
    with np.errstate(divide="ignore"):
        places = np.floor(np.log10(2.0**23 / largest))
    if (places < 0).any():
        return False
    scale = POWERS[np.fmin(places, len(POWERS) - 1).astype(int)]
    return all(
        ((np.rint(block * scale) / scale == block) | np.isnan(block)).all() for block in blocks
    )


def zeros(n_rows: int, width: int, dtype: DTypeLike) -> Floats:
    """Return a table of zeros whose memory goes back to the system as soon as it is freed."""
    memory = mmap.mmap(-1, max(1, n_rows * width * np.dtype(dtype).itemsize))
    return np.frombuffer(memory, dtype, n_rows * width).reshape(n_rows, width)


def joined(pieces: list[Floats], width: int, dtype: DTypeLike) -> Floats:
    """Return a table of the rows of all pieces, with zeros for columns that a piece lacks; `pieces` becomes empty.

    Each piece is freed when it has been copied, so that the peak of memory is the table and some pieces.
    """
    end = sum(map(len, pieces))
    X = empty_table(end, width, dtype)
    while pieces:
        piece = pieces.pop()
        rows = slice(end - len(piece), end)
        X[rows, : piece.shape[1]] = piece[:, :width]
        X[rows, piece.shape[1] :] = 0.0
        end = rows.start
    return X


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its bytes, unpacked if it ends in ``.gz``; damage is a ValueError with the path."""
    with open_regular(path) as raw:
        if path.suffix.lower() != ".gz":
            yield raw
            return
        try:
            with gzip.GzipFile(fileobj=raw) as file:
                yield cast("BinaryIO", file)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(
                f"{path}: the .gz file is truncated or damaged ({error}); fetch it again"
            ) from None


# How compressed files begin.
ARCHIVE = re.compile(rb"PK\x03\x04|BZh[1-9]1AY|\xfd7zXZ|7z\xbc\xaf|\x1f\x8b")


def without_mark(path: Path, text: bytes) -> bytes:
    """Return the first bytes of a text without the byte order mark of UTF-8; refuse what is no such text."""
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{path} is UTF-16 text; save it as UTF-8")
    if ARCHIVE.match(text):
        raise ValueError(f"{path} is an archive or a compressed file; unpack it")
    return text.removeprefix(b"\xef\xbb\xbf")


def text_lines(path: Path) -> Lines:
    """Yield the numbered lines of a UTF-8 text, plain or ``.gz``; any other content is a ValueError."""
    number = 0
    with opened(path) as file:
        for line in file:
            line = line if number else without_mark(path, line)
            try:
                text = line.decode()
            except UnicodeDecodeError:
                raise ValueError(
                    f"{path}, line {number + 1}: not UTF-8 text; save the file in this encoding"
                ) from None
            if "\0" in text:
                raise ValueError(
                    f"{path}, line {number + 1}: a zero byte; save the file as UTF-8 text"
                )
            for part in StringIO(text, newline="") if "\r" in text else (text,):
                number += 1
                yield number, part


def shortened(text: str | bytes, length: int = 30) -> str:
    """Return the beginning of a text for a message."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return text if len(text) <= length else text[: length - 1] + "…"


def quoted(text: str | bytes) -> str:
    """Return the beginning of a text in quotes, for a message."""
    return repr(shortened(text))


def names_in(folder: Path) -> str:
    """Return the names of the first ten entries of a folder, for a message."""
    names = sorted(entry.name for entry in folder.iterdir())
    if len(names) > 10:
        names[10:] = ["…"]
    return ", ".join(names) or "nothing"


def check_folder(folder: Path, advice: str) -> None:
    """Raise a FileNotFoundError with the advice if the path is not a folder."""
    if not folder.is_dir():
        reason = "is a file, not a folder" if folder.exists() else "does not exist"
        raise FileNotFoundError(f"{folder} {reason}; {advice}")
