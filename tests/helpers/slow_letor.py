"""The LETOR format in plain Python, written from its grammar: the oracle of the reader, for right and wrong files."""

from unicodedata import category

import numpy as np

DIGITS = set(b"0123456789")
DECIMAL = DIGITS | set(b"+-.eE")


def read_slowly(content, *, nulls=False, with_queries=True, limit=10_000, dtype=np.float64):
    """X, y, qid of the documents in `content` (bytes), NaN for what is missing; None if a line must be refused."""
    rows, y, qid = [], [], []
    spelling, finished = {}, set()
    for line in content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        tokens = [token for token in line.split(b"#")[0].replace(b"\t", b" ").split(b" ") if token]
        if not tokens:
            continue
        label = _label(tokens.pop(0))
        query = _query(tokens.pop(0)) if with_queries and tokens else None
        if label is None or with_queries is (query is None):
            return None
        if qid and _same(query) != _same(qid[-1]):
            finished.add(_same(qid[-1]))
        if _same(query) in finished:
            return None
        values = _values(tokens, nulls, limit, dtype)
        if values is None:
            return None
        rows.append(values)
        y.append(label)
        qid.append(spelling.setdefault(_same(query), query))
    n_features = max((number for values in rows for number in values), default=0)
    X = np.zeros((len(rows), n_features), dtype)
    for row, values in zip(X, rows, strict=True):
        for number, value in values.items():
            row[number - 1] = value
    if with_queries and all(isinstance(_same(query), int) for query in qid):
        qid = [_same(query) for query in qid]
    return X, np.array(y), np.array(qid)


def _label(token):
    digits, _, zeros = token.partition(b".")
    right = 1 <= len(digits) <= 9 and set(digits) <= DIGITS and not zeros.strip(b"0")
    return int(digits) if right else None


def _query(token):
    if not token.startswith(b"qid:"):
        return None
    try:
        text = token[4:].decode()
    except UnicodeDecodeError:
        return None
    wrong = not 1 <= len(text) <= 100 or any(sign.isspace() or category(sign) == "Cc" for sign in text)
    return None if wrong else text


def _same(query):
    """The same for two ids of one query: an integer of 64 bits is that integer, however it is written."""
    digits = (query or "").removeprefix("-").encode()
    is_integer = 1 <= len(digits) <= 19 and set(digits) <= DIGITS and -(2**63) <= int(query) < 2**63
    return int(query) if is_integer else query


def _values(tokens, nulls, limit, dtype):
    values, last = {}, 0
    for token in tokens:
        number, colon, value = token.partition(b":")
        if not colon or not 1 <= len(number) <= 9 or not set(number) <= DIGITS or not last < int(number) <= limit:
            return None
        last = int(number)
        if nulls and value.lower() in (b"null", b"nan"):
            values[last] = np.nan
            continue
        try:
            with np.errstate(over="ignore"):
                values[last] = dtype(float(value)) + dtype(0)
        except ValueError:
            return None
        if not set(value) <= DECIMAL or not np.isfinite(values[last]):
            return None
    return values


def assert_same_documents(data, content, missing=None):
    """The documents of a RankingData are those of a right file."""
    X, y, qid = read_slowly(content, nulls=missing is not None, dtype=data.X.dtype.type)
    np.testing.assert_array_equal(data.X, X if missing is None else np.where(np.isnan(X), missing, X))
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.qid, qid)
