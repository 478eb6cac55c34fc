"""Reader of LETOR files: one document a line, ``label qid:Q 1:v … n:v #docid = …``."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from moerank.arrays import Array
from moerank.checks import check_room
from moerank.data.inputs import LaterIds
from moerank.data.missing import MissingRule, check_missing_rule
from moerank.data.ranking_data import RankingData
from moerank.data.read.cache import remembered
from moerank.data.read.columns import Precision, Table, as_precision
from moerank.data.read.files import CHUNK, TextChunks, find_query_file, read_query_file, report_reading
from moerank.data.read.letor_parser import parse_letor


def load_letor(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    missing: MissingRule | None = None,
    dtype: DTypeLike = np.float64,
    name: str | None = None,
    cache: bool = True,
) -> RankingData:
    r"""Read a LETOR or svmlight file with query ids: plain, ``.gz`` or ``.xz``.

    Features a line does not list are 0. Lines end in LF, CRLF or CR; what follows a ``#`` is a comment; blank lines
    and lines of comment alone are skipped.

    Parameters
    ----------
    path : path-like
        The file. If its lines have no query ids, a file beside it gives the number of documents of each query, one
        per line, as LightGBM has it: for ``x.txt`` it is the first of ``x.txt.query``, ``x.txt.group``, ``x.query``
        and ``x.group``.
    n_features : int, optional
        The number of columns of X; a file with a larger feature number is refused. By default the largest number in
        the file, which must not exceed `LARGEST_FEATURE`.
    missing : float or {"query-min", "query-mean", "query-worst"}, optional
        What ``NULL`` and ``NaN`` values (in letters of any size) become, see `RankingData`. By default a file that
        holds one is refused.
    dtype : {numpy.float64, numpy.float32}, default float64
        The precision of X. A value is the correctly rounded double, or that double rounded to single.
    name : str, optional
        How messages call the data set; by default its path.
    cache : bool, default True
        Keep the parsed arrays in the user's cache folder, see `moerank.data.read.cache`.

    Returns
    -------
    RankingData
        The documents in file order. Query ids are integers if all are integers of 64 bits, else texts; with a file of
        counts they are 1, 2, …. The id of a document is the first word of its comment, behind ``docid =``, if all have
        one; ids are read from the file when they are asked for.

    Raises
    ------
    ValueError
        For a line that is not a document (with the path, the line number and the text), a query whose lines are not
        contiguous, a file without documents, query ids in the lines and beside them or nowhere, a compressed file
        that is damaged, and a table that would take more memory than the limit (16 GiB, or what the environment
        variable ``MOERANK_MEMORY`` says), before that memory is taken.
    OSError
        If the file is missing, a folder, or cannot be read.

    Notes
    -----
    Time is O(bytes of the file) plus O(n_documents · n_features); memory is that of X, which lies by columns from
    64 MiB on, and some 0.1 GB. A label is an integer from 0 to 999,999,999, a query id a text of up to 100 characters
    without spaces and ``#``, a feature number starts at 1 and increases along the line. Values of over 19 digits take
    as long as in Python.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.txt")
    ...     _ = path.write_text("2 qid:7 1:0.5 3:1 #docid = a\n0 qid:7 2:0.25\n")
    ...     load_letor(path, cache=False).X
    array([[0.5 , 0.  , 1.  ], [0.  , 0.25, 0.  ]])
    """
    path = Path(path)
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features is {n_features}; a data set has at least one feature")
    if missing is not None:
        check_missing_rule(missing)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; load_letor reads one file, load_fold the three of a fold")
    beside, precision, state = find_query_file(path), as_precision(dtype), _state(path)
    parse = partial(_parse, path, n_features, missing is not None, precision, beside)
    reading = f"letor {n_features} {missing is not None} {np.dtype(precision)} {beside is not None}"
    table = remembered(path, reading, parse) if cache else parse()
    if beside is not None:
        counts = read_query_file(beside, path, len(table.y))
        table = replace(table, ids=np.arange(1, len(counts) + 1), offsets=np.append(0, np.cumsum(counts)))
    table = replace(table, documents=LaterIds(partial(_ids_in_comments, path.absolute(), state)))
    return table.as_data(name or str(path), missing)


def widened(data: RankingData, n_features: int) -> RankingData:
    """Return data of a LETOR file with zeros for the features up to `n_features` that it does not list."""
    n, width = data.X.shape
    if width >= n_features:
        return data
    n_bytes = n * n_features * data.X.itemsize
    check_room(f"{data.name}: a table of {n:,} documents × {n_features:,} features", n_bytes)
    X = np.zeros((n, n_features), data.X.dtype, order="F" if data.X.flags.f_contiguous else "C")
    X[:, :width] = data.X
    beside = (0, n_features - width)
    return data._changed(
        X=X,
        feature_names=tuple(str(number) for number in range(1, n_features + 1)),
        n_missing=np.pad(data.n_missing, beside),
        _missing_bits=np.packbits(np.pad(data.is_missing, ((0, 0), beside)), axis=1) if data.n_missing.any() else None,
    )


_DOCUMENT = re.compile(rb"#[ \t]*(?:docid[ \t]*=[ \t]*)?([^\s]*)[^\r\n]*")


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _ids_in_comments(path: Path, state: tuple[int, int]) -> Array | None:
    """Return the first word of the comment of each document, behind ``docid =``; None if a document has none.

    A file that has changed since it was in this state, and so may have other documents, is a ValueError.
    """
    if _state(path) != state:
        raise ValueError(f"{path}: it changed after it was read; read it again for the ids of its documents")
    ids: list[bytes] = []
    with path.open("rb", buffering=0) as file:
        for text, end in TextChunks(path, file):
            lines = (line.partition(b"#") for line in text[:end].tobytes().splitlines())
            found = [_DOCUMENT.sub(rb"\1", sign + comment) for document, sign, comment in lines if document.strip()]
            if not all(found):
                return None
            ids += found
    return np.array([word.decode("utf-8", "backslashreplace") for word in ids])


def _parse(path: Path, n_features: int | None, nulls: bool, precision: Precision, beside: Path | None) -> Table:
    report_reading(path, 0.0)
    with path.open("rb", buffering=0) as file:
        table = parse_letor(
            path,
            file,
            precision,
            n_features=n_features,
            nulls=nulls,
            side_file=None if beside is None else beside.name,
            chunk=CHUNK,
            report=lambda share: report_reading(path, min(share, 0.999)),
        )
    report_reading(path, 1.0)
    if not len(table.y):
        raise ValueError(f"{path}: the file holds no document; expected lines like '2 qid:1 1:0.5 2:0'")
    if table.X.shape[1] == 0:
        raise ValueError(f"{path}: no line lists a feature; expected lines like '2 qid:1 1:0.5 2:0'")
    return table
