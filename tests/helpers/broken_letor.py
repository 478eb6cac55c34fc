"""Accidents that befall LETOR files, and the judge of what the reader makes of them."""

import re
import warnings
from decimal import Decimal
from unicodedata import category

import numpy as np

from moerank.data import RankingData, load_letor

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
        is_exact = not value.lstrip(b"+-").isdigit() or abs(Decimal(value.decode())) <= 2**53
        if not set(value) <= DECIMAL or not np.isfinite(values[last]) or not is_exact:
            return None
    return values


def assert_same_documents(data, content, missing=None):
    """The documents of a RankingData are those of a right file."""
    X, y, qid = read_slowly(content, nulls=missing is not None, dtype=data.X.dtype.type)
    np.testing.assert_array_equal(data.X, X if missing is None else np.where(np.isnan(X), missing, X))
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.qid, qid)


VALID = b"".join(
    b"%d qid:%d %s #docid = GX%03d inc = 1 prob = 0.086622\n"
    % (line % 3, 10 + line // 4, b" ".join(b"%d:0.%06d" % (f, line * f * 7919 % 10**6) for f in range(1, 7)), line)
    for line in range(12)
)

TOKENS = [
    *b"NULL nan -inf 1e999 -1e999 1e-999 1e 0x10 1_000 --1 + . 1,5 -1 0.5 2.0 -9223372036854775809".split(),
    *b"qid: qid:1 qid:x qid:1.5 QID:1 qid : :: 1: :1 # 0:1 1:1 7:1 10000:1 10001:1 2147483648:1 -3:1 1.5:1".split(),
    *(b"", b"9" * 12, b"9" * 30, b"9" * 6000, b"qid:" + b"8" * 25, b"9" * 22 + b":1"),
    *(text.encode() for text in ("٣", "\ufeff", "\u2028", "é:1", "\x00", "\x0b", "\x1a")),
    *(b"\xff\xfe", b"\x85"),
]
PLACES = [b"\n", b"\r", b"\r\n", b" ", b"\t", b"\x0c", b"#", b":"]


def somewhere_else(content, at, rng):
    """A byte or a bit is another, some are lost, all from there on is lost, or something comes in between."""
    byte, bit = bytes([rng.randrange(256)]), bytes(byte ^ 1 << rng.randrange(8) for byte in content[at : at + 1])
    inserted, n_lost = rng.choice(TOKENS + PLACES), rng.choice([1, 1, 1, 2, 5, 40])
    other = [byte + content[at + 1 :], bit + content[at + 1 :], content[at + n_lost :], b"", inserted + content[at:]]
    return content[:at] + rng.choice(other)


def lines_changed(content, at, rng):
    """The lines end otherwise, or come in another order, or one of them comes again."""
    lines = content.splitlines(keepends=True)
    ends = content.replace(b"\n", rng.choice([b"\r", b"\r\n", b"\n\n", b"\n\r", b" \n", b"\x0b", b""]))
    return rng.choice([ends, b"".join(rng.sample(lines, len(lines))), content + b"".join(lines[:1])])


def tokens_changed(content, at, rng):
    """Two tokens are swapped, or one of them or its value is another."""
    tokens = re.split(rb"([ \n])", content)
    i, j, other = rng.randrange(len(tokens)), rng.randrange(len(tokens)), rng.choice(TOKENS)
    swapped, valued = (tokens[j], tokens[i]), (tokens[i].partition(b":")[0] + b":" + other, tokens[j])
    tokens[i], tokens[j] = rng.choice([swapped, (other, tokens[j]), valued]) if i != j else swapped
    return b"".join(tokens)


def number_written_anew(content, at, rng):
    """A value of 1 to 40 digits, with a point and a power of ten or without."""
    values = list(re.finditer(rb":[0-9.eE+-]+", content))
    if not values:
        return content
    value = rng.choice(values)
    digits = "".join(rng.choices("0123456789", k=rng.choice([1, 3, 8, 15, 16, 17, 18, 19, 20, 21, 40])))
    point = rng.randrange(len(digits) + 1)
    number = rng.choice([digits, *4 * [rng.choice(["", "", "-", "+"]) + digits[:point] + "." + digits[point:]]])
    power = rng.choice("eE") + rng.choice(["", "-", "+"]) + str(rng.choice([0, 1, 5, 22, 23, 40, 290, 308, 330, 999]))
    number += rng.choice([power, power, "", "", ""])
    return content[: value.start() + 1] + number.encode() + content[value.end() :]


def query_renamed(content, at, rng):
    """The same other id, or another part of it, in every place of one query."""
    ids = re.findall(rb"qid:(\S+)", content)
    if not ids:
        return content
    new = rng.choice([b"WT04-132", b"007", b"7", b"-0", "é".encode(), b"9" * 20, b"x" * 101, b"a:b"])
    return content.replace(b"qid:" + rng.choice(ids) + b" ", b"qid:" + new + b" ")


def without_queries(content, at, rng):
    return re.sub(rb"qid:\S+ ", b"", content)


ACCIDENTS = [
    *5 * [somewhere_else],
    *(number_written_anew, number_written_anew, query_renamed),
    *3 * [lines_changed, tokens_changed],
]


def after_an_accident(content, rng, accidents=ACCIDENTS):
    return rng.choice(accidents)(content, rng.randrange(len(content) + 1), rng)


def broken(rng, base=VALID):
    """A file after one to four accidents."""
    content = base
    for _ in range(rng.choice([1, 1, 2, 4])):
        content = after_an_accident(content, rng)
    return content


def judged(path, content, *, missing=None, dtype=np.float64, counts=None):
    """Load a file and judge what came of it: "read", "refused", or a sentence on what is wrong with that.

    A file beside it may hold the `counts`.
    """
    rules = {"nulls": missing is not None, "with_queries": counts is None, "dtype": dtype}
    expected = read_slowly(content, **rules)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data = load_letor(path, missing=missing, dtype=dtype)
    except ValueError as error:
        return _judged_refusal(path, content, str(error), expected, counts)
    if expected is None:
        return "read what is broken"
    X, y, qid = expected
    if counts is not None:
        qid = np.repeat(np.arange(1, len(counts) + 1), counts)
    X = X if missing is None else np.where(np.isnan(X), dtype(missing), X)
    same = type(data) is RankingData and data.X.shape == X.shape and data.qid.dtype.kind == qid.dtype.kind
    same = same and np.array_equal(data.X, X) and not np.signbit(data.X[data.X == 0]).any()
    return "read" if same and np.array_equal(data.y, y) and np.array_equal(data.qid, qid) else "misread"


def _judged_refusal(path, content, said, expected, counts):
    reason = said.removeprefix(str(path))
    if not said.startswith(str(path)) or "\n" in reason or len(reason) > 500:
        return f"refused without the path, or at length: {said[:300]!r}"
    line = re.match(r", line (\d+): ", reason)
    if line:
        right = expected is None and 1 <= int(line[1]) <= len(content.splitlines())
    elif reason.startswith(": the file holds no document"):
        right = expected is not None and not len(expected[1])
    elif reason.startswith(": no line lists a feature"):
        right = expected is not None and len(expected[1]) and not expected[0].shape[1]
    else:
        right = counts is not None and expected is not None and sum(counts) != len(expected[1])
    return "refused" if right else f"refused what is right: {reason[:300]!r}"
