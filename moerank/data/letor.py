"""LETOR files: one document a line, ``label qid:Q 1:v … n:v #docid = …``.

scikit-learn parses the numbers. What it lets pass in silence, or reports without a line number, is refused here first:
every line is matched against the grammar of a document, and only text of that form reaches the parser.
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import zlib
from io import BytesIO
from itertools import pairwise
from math import isfinite
from pathlib import Path

import numpy as np

from moerank.data.cache import Arrays, remembered
from moerank.data.ranking_data import RankingData

__all__ = ["LARGEST_FEATURE", "load_letor"]

LARGEST_FEATURE = 10_000
"""The largest feature number a file may hold unless `n_features` allows more: a misprint must not fill the memory."""

_LABEL = rb"[0-9]{1,9}(?:\.0*)?"
_QUERY = rb"qid:(-?[0-9]{1,19})"
_FEATURE = rb"[0-9]{1,9}"
_NUMBER = rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER_OR_NULL = _NUMBER + b"|NULL"


def _document(value: bytes) -> re.Pattern[bytes]:
    grammar = rb"[ \t]*%b[ \t]+%b(?:[ \t]+%b:(?:%b))*[ \t]*"
    return re.compile(grammar % (_LABEL, _QUERY, _FEATURE, value))


_COMPLETE_DOCUMENT = _document(_NUMBER)
_DOCUMENT_WITH_NULL = _document(_NUMBER_OR_NULL)
_FEATURE_NUMBERS = re.compile(rb"[ \t]([0-9]+):")


def load_letor(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    missing: float | None = None,
    name: str | None = None,
    cache: bool = True,
) -> RankingData:
    r"""Read a LETOR or svmlight file with query ids: plain, ``.gz`` or ``.xz``.

    Features a line does not list are 0. Lines end in LF, CRLF or CR; what follows a ``#`` is a comment; blank lines
    and lines of comment alone are skipped.

    Parameters
    ----------
    path : path-like
        The file.
    n_features : int, optional
        The number of columns of X; a file with a larger feature number is refused. By default the largest number in
        the file, which must not exceed `LARGEST_FEATURE`.
    missing : float, optional
        What ``NULL`` values become. By default a file that holds one is refused.
    name : str, optional
        How messages call the data set; by default its path.
    cache : bool, default True
        Keep the parsed arrays in the user's cache folder, see `moerank.data.cache`.

    Returns
    -------
    RankingData
        The documents in file order.

    Raises
    ------
    ValueError
        For a line that is not a document (with the path, the line number and the text), a query whose lines are not
        contiguous, a file without documents, and a compressed file that is damaged.
    OSError
        If the file is missing, a folder, or cannot be read.

    Notes
    -----
    Time and memory are O(bytes of the file) plus O(n_documents · n_features) for the dense result. A label is an
    integer from 0 to 999,999,999, a query id an integer of 64 bits, a feature number starts at 1 and increases along
    the line.

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
    if missing is not None and not isfinite(missing):
        raise ValueError(f"missing is {missing}; NULL values can only become a finite number")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; load_letor reads one file, load_fold the three of a fold")
    stored = path.read_bytes()

    def parse() -> Arrays:
        return _parse(path, _decompressed(path, stored), n_features, missing)

    arrays = remembered(stored, f"letor {path.suffix} missing={missing}", parse) if cache else parse()
    if arrays["X"].shape[1] > (n_features or LARGEST_FEATURE):
        arrays = parse()  # refuses the file and says where: it was remembered under a larger limit
    X = arrays["X"]
    if n_features is not None:
        X = np.pad(X, ((0, 0), (0, n_features - X.shape[1])))
    elif X.shape[1] == 0:
        raise ValueError(f"{path}: no line lists a feature; expected lines like '2 qid:1 1:0.5 2:0'")
    return RankingData(X, arrays["y"], arrays["qid"], name=name or str(path))


def _decompressed(path: Path, stored: bytes) -> bytes:
    try:
        if path.suffix == ".gz":
            return gzip.decompress(stored)
        if path.suffix == ".xz":
            return _xz_decompressed(stored)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(
            f"{path}: the {path.suffix} file is truncated or damaged ({error}); fetch or compress it again"
        ) from None
    return stored


def _xz_decompressed(stored: bytes) -> bytes:
    """Decompress every stream; `lzma.decompress` would ignore all that follows a damaged one."""
    content: list[bytes] = []
    while stored or not content:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        content.append(stream.decompress(stored))
        if not stream.eof:
            raise EOFError("the stream does not end")
        stored = stream.unused_data.lstrip(b"\0")
    return b"".join(content)


def _parse(path: Path, content: bytes, n_features: int | None, missing: float | None) -> Arrays:
    """Check every line, then let scikit-learn read the numbers."""
    from sklearn.datasets import load_svmlight_file

    lines = content.splitlines()
    documents, line_numbers, n_columns = _checked_documents(path, lines, n_features, missing)
    if not documents:
        raise ValueError(f"{path}: the file holds no document; expected lines like '2 qid:1 1:0.5 2:0'")
    cleaned = b"\n".join(documents)
    if missing is not None:
        cleaned = cleaned.replace(b":NULL", b":%r" % float(missing))
    # The parser needs at least one column; a file without any keeps none.
    X, y, qid = load_svmlight_file(
        BytesIO(cleaned), n_features=max(n_columns, 1), dtype=np.float64, zero_based=False, query_id=True
    )
    overflow = np.flatnonzero(~np.isfinite(X.data))
    if len(overflow):
        row = int(np.searchsorted(X.indptr, overflow[0], side="right")) - 1
        number = line_numbers[row]
        reason = f"the value of feature {X.indices[overflow[0]] + 1} is too large for a 64-bit floating-point number"
        raise _refusal(path, number, lines[number - 1], reason)
    return dict(X=X.toarray()[:, :n_columns], y=y.astype(np.int64), qid=qid.astype(np.int64))


def _checked_documents(
    path: Path, lines: list[bytes], n_features: int | None, missing: float | None
) -> tuple[list[bytes], list[int], int]:
    """Return the documents without comments, the number of the line of each, and the largest feature number."""
    pattern = _COMPLETE_DOCUMENT if missing is None else _DOCUMENT_WITH_NULL
    documents: list[bytes] = []
    line_numbers: list[int] = []
    finished: set[int] = set()
    query: int | None = None
    features: list[bytes] = []
    n_columns = 0
    for number, line in enumerate(lines, start=1):
        document = line.partition(b"#")[0]
        match = pattern.fullmatch(document)
        if match is None:
            if not document.strip(b" \t"):
                continue
            raise _refusal(path, number, line, _what_is_wrong(document, n_features, missing))
        if int(match[1]) != query:
            if query is not None:
                finished.add(query)
            query = int(match[1])
            reason = _wrong_query(query, finished)
            if reason:
                raise _refusal(path, number, line, reason)
        listed = _FEATURE_NUMBERS.findall(document)
        if listed != features:  # dense files list the same features in every line: look at them once
            reason = _wrong_features([int(feature) for feature in listed], n_features)
            if reason:
                raise _refusal(path, number, line, reason)
            features = listed
            n_columns = max(n_columns, int(listed[-1]) if listed else 0)
        documents.append(document)
        line_numbers.append(number)
    return documents, line_numbers, n_columns


def _refusal(path: Path, number: int, line: bytes, reason: str) -> ValueError:
    return ValueError(f"{path}, line {number}: {reason}: {_shortened(line, 100)!r}")


def _wrong_query(query: int, finished: set[int]) -> str | None:
    if not -(2**63) <= query < 2**63:
        return f"the query id {query} does not fit in 64 bits; number the queries anew"
    if query in finished:
        return f"query {query} begins again; sort the lines so that those of a query are contiguous"
    return None


def _wrong_features(features: list[int], n_features: int | None) -> str | None:
    """Say what is wrong with the feature numbers of one line, if anything."""
    if features and features[0] == 0:
        return "feature number 0; feature numbers start at 1, so add 1 to all of them"
    for feature, following in pairwise(features):
        if feature == following:
            return f"feature {feature} is listed twice"
        if feature > following:
            return f"feature {following} follows feature {feature}; list the features in increasing order"
    if features and features[-1] > (n_features or LARGEST_FEATURE):
        return _beyond_limit(str(features[-1]), n_features)
    return None


def _beyond_limit(feature: str, n_features: int | None) -> str:
    if n_features is not None:
        return f"feature {feature} is beyond n_features={n_features}"
    return (
        f"feature {feature} is beyond the limit of {LARGEST_FEATURE:,} features; number the features without gaps, "
        "or pass n_features if so many are meant"
    )


def _what_is_wrong(document: bytes, n_features: int | None, missing: float | None) -> str:
    """Name the first part of a line that does not have the form of a document."""
    label, *rest = re.split(rb"[ \t]+", document.strip(b" \t"))
    if not re.fullmatch(_LABEL, label):
        return f"the label {_quoted(label)} is not an integer from 0 (irrelevant) to 999,999,999"
    if not rest or not rest[0].startswith(b"qid:"):
        return "no query id after the label; expected 'label qid:Q 1:v 2:v …'"
    if not re.fullmatch(_QUERY, rest[0]):
        return f"the query id {_quoted(rest[0][4:])} is not an integer of 64 bits"
    form = b"%b:(?:%b)" % (_FEATURE, _NUMBER if missing is None else _NUMBER_OR_NULL)
    token = next(token for token in rest[1:] if not re.fullmatch(form, token))
    feature, colon, value = token.partition(b":")
    if not colon or not re.fullmatch(rb"[0-9]+", feature):
        return f"{_quoted(token)} is not of the form feature:value, as in 12:0.5"
    if not re.fullmatch(_FEATURE, feature):
        return _beyond_limit(_shortened(feature), n_features)
    if value == b"NULL":
        return f"the value of feature {feature.decode()} is missing (NULL); pass missing=, the number it becomes"
    return f"the value {_quoted(value)} of feature {feature.decode()} is not a finite number"


def _shortened(part: bytes, length: int = 30) -> str:
    text = part.decode("utf-8", "backslashreplace")
    return text if len(text) <= length else text[: length - 1] + "…"


def _quoted(part: bytes) -> str:
    return repr(_shortened(part))
