"""Thousands of broken files: each is read as the format says, or refused in one sentence that names the place."""

import gzip
import lzma
import random
import re
import warnings
import zlib

import pytest
from helpers.slow_letor import assert_same_documents

from moerank.data import RankingData, load_letor
from moerank.data.letor import LARGEST_FEATURE

N_FILES = 1500

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


def byte_changed(content, at, rng):
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def bit_flipped(content, at, rng):
    return content[:at] + bytes(byte ^ 1 << rng.randrange(8) for byte in content[at : at + 1]) + content[at + 1 :]


def bytes_lost(content, at, rng):
    return content[:at] + content[at + rng.choice([1, 1, 1, 2, 5, 40]) :]


def truncated(content, at, rng):
    return content[:at]


def something_inserted(content, at, rng):
    return content[:at] + rng.choice(TOKENS + PLACES) + content[at:]


def line_ends_changed(content, at, rng):
    return content.replace(b"\n", rng.choice([b"\r", b"\r\n", b"\n\n", b"\n\r", b" \n", b"\x0b", b""]))


def lines_shuffled(content, at, rng):
    lines = content.splitlines(keepends=True)
    return b"".join(rng.sample(lines, len(lines)))


def line_repeated(content, at, rng):
    return content + b"".join(rng.sample(content.splitlines(keepends=True), 1 if content else 0))


def tokens_swapped(content, at, rng):
    tokens = re.split(rb"([ \n])", content)
    i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    tokens[i], tokens[j] = tokens[j], tokens[i]
    return b"".join(tokens)


def token_replaced(content, at, rng):
    tokens = re.split(rb"([ \n])", content)
    tokens[rng.randrange(len(tokens))] = rng.choice(TOKENS)
    return b"".join(tokens)


def value_replaced(content, at, rng):
    tokens = re.split(rb"([ \n])", content)
    i = rng.randrange(len(tokens))
    tokens[i] = tokens[i].partition(b":")[0] + b":" + rng.choice(TOKENS)
    return b"".join(tokens)


BINARY_ACCIDENTS = [byte_changed, bit_flipped, bytes_lost, truncated, something_inserted]
ACCIDENTS = [
    *BINARY_ACCIDENTS,
    *(line_ends_changed, lines_shuffled, line_repeated, tokens_swapped, token_replaced, value_replaced),
]


def after_an_accident(content, rng, accidents=ACCIDENTS):
    return rng.choice(accidents)(content, rng.randrange(len(content) + 1), rng)


def outcome(path, content, missing):
    """Load the file and check what came of it; whether it was read. Content None: it cannot be decompressed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data = load_letor(path, missing=missing, cache=False)
    except ValueError as error:
        said = str(error)
        assert said.startswith(str(path))
        reason = said.removeprefix(str(path))
        assert "\n" not in reason
        assert len(reason) < 400
        line = re.match(r", line (\d+): ", reason)
        if line:
            assert 1 <= int(line[1]) <= len(content.splitlines())
        elif path.suffix != ".txt" and "damaged" in reason:
            assert reason.startswith(f": the {path.suffix} file is truncated or damaged")
        else:
            assert re.match(r": (the file holds no document|no line lists a feature)", reason)
        return False
    assert type(data) is RankingData
    assert data.n_features <= LARGEST_FEATURE
    assert_same_documents(data, content, missing)
    return True


@pytest.mark.parametrize("missing", [None, 0.25])
def test_broken_files_are_read_rightly_or_refused(tmp_path, missing):
    rng = random.Random(f"plain {missing}")
    path = tmp_path / "broken.txt"
    n_read = 0
    for _ in range(N_FILES):
        content = VALID
        for _ in range(rng.choice([1, 1, 2, 4])):
            content = after_an_accident(content, rng)
        path.write_bytes(content)
        n_read += outcome(path, content, missing)
    assert 0.1 < n_read / N_FILES < 0.7


@pytest.mark.parametrize(
    ("ending", "compress", "decompress"),
    [(".gz", gzip.compress, gzip.decompress), (".xz", lzma.compress, lzma.decompress)],
)
def test_broken_compressed_files_are_read_rightly_or_refused(tmp_path, ending, compress, decompress):
    rng = random.Random(ending)
    path = tmp_path / f"broken.txt{ending}"
    n_read = 0
    for _ in range(N_FILES // 5):
        if rng.random() < 0.3:
            content = after_an_accident(VALID, rng)
            path.write_bytes(compress(content))
        else:
            stored = after_an_accident(compress(VALID), rng, BINARY_ACCIDENTS)
            path.write_bytes(stored)
            try:
                content = decompress(stored)
            except (OSError, EOFError, zlib.error, lzma.LZMAError):
                content = None
        n_read += outcome(path, content, None)
    assert 0.05 < n_read / (N_FILES // 5) < 0.4
