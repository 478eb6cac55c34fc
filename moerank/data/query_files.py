"""The queries of a file in another beside it, as LightGBM has them: one count of documents per line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["find_query_file", "read_query_file"]

_ENDINGS = (".query", ".group")
_COMPRESSIONS = (".gz", ".xz")
_LARGEST = 2**28
"""Bytes of such a file, at most: more lines than any table has documents."""


def find_query_file(path: Path) -> Path | None:
    """Return the file with the counts of `path`; None if there is none.

    For ``x.txt`` it is the first of ``x.txt.query``, ``x.txt.group``, ``x.query`` and ``x.group``; for another ending
    only the first two, as ``x.train`` and ``x.test`` would share the others. ``.gz`` and ``.xz`` are put aside first.
    """
    plain = path.with_suffix("") if path.suffix.lower() in _COMPRESSIONS else path
    stems = [plain.name, plain.stem] if plain.suffix.lower() == ".txt" else [plain.name]
    candidates = [path.with_name(stem + ending) for stem in stems for ending in _ENDINGS]
    return next((candidate for candidate in candidates if candidate != path and candidate.is_file()), None)


def read_query_file(path: Path, beside: Path, n_documents: int) -> NDArray[np.int64]:
    """Return the number of documents of each query, shape (n_queries,).

    Parameters
    ----------
    path : Path
        One positive number per line; blank lines at its end are skipped.
    beside : Path
        The file of the documents, for messages.
    n_documents : int
        What the counts must add up to.

    Raises
    ------
    ValueError
        For a line that is no count, with its number and text, and for counts of more or fewer documents.
    """
    with path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"{path}: larger than {_LARGEST // 2**20} MiB; expected one count of documents per line")
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
