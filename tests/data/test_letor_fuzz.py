"""Thousands of broken files: each is read as the format says, or refused in one sentence that names the place."""

import gzip
import lzma
import random
import re
import warnings

import pytest
from letor_restated import assert_same_documents

from moerank.data import RankingData, load_letor
from moerank.data.letor import LARGEST_FEATURE

N_FILES = 2500

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


def mutated(content, rng):
    """`content` after one of a dozen accidents."""
    at = rng.randrange(len(content) + 1)
    tokens = re.split(rb"([ \n])", content)
    kind = rng.randrange(11)
    if kind == 0:
        return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
    if kind == 1:
        return content[:at] + content[at + rng.choice([1, 1, 1, 2, 5, 40]) :]
    if kind == 2:
        return content[:at] + rng.choice(TOKENS + PLACES) + content[at:]
    if kind == 3:
        return content[:at]
    if kind == 4:
        return content.replace(b"\n", rng.choice([b"\r", b"\r\n", b"\n\n", b"\n\r", b" \n", b"\x0b", b""]))
    if kind == 5:
        lines = content.splitlines(keepends=True)
        rng.shuffle(lines)
        return b"".join(lines)
    if kind == 6:
        lines = content.splitlines(keepends=True)
        return b"".join([*lines, rng.choice(lines)]) if lines else content
    if kind == 7 and content:
        at = rng.randrange(len(content))
        return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
    if kind == 8:
        i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        tokens[i], tokens[j] = tokens[j], tokens[i]
        return b"".join(tokens)
    if kind == 9:
        value = rng.choice(TOKENS)
        tokens[rng.randrange(len(tokens))] = value
        return b"".join(tokens)
    i = rng.randrange(len(tokens))
    tokens[i] = tokens[i].partition(b":")[0] + b":" + rng.choice(TOKENS)
    return b"".join(tokens)


def outcome(path, content, missing):
    """Load the file and check what came of it; whether it was read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data = load_letor(path, missing=missing, cache=False)
    except ValueError as error:
        said = str(error)
        assert "\n" not in said
        assert len(said) < len(str(path)) + 400
        assert said.startswith(str(path))
        line = re.match(r", line (\d+): ", said.removeprefix(str(path)))
        if line:
            assert 1 <= int(line[1]) <= len(content.splitlines())
        else:
            assert re.match(
                r": (the file holds no document|no line lists a feature|the \.\w+ file is truncated or damaged)",
                said.removeprefix(str(path)),
            )
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
            content = mutated(content, rng)
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
    whole = compress(VALID)
    n_read = 0
    for _ in range(300):
        stored = whole
        for _ in range(rng.choice([1, 1, 3])):
            at = rng.randrange(len(stored))
            accident = rng.randrange(4)
            if accident == 0:
                stored = stored[:at]
            elif accident == 1:
                stored = stored[:at] + bytes([stored[at] ^ 1 << rng.randrange(8)]) + stored[at + 1 :]
            elif accident == 2:
                stored = stored[:at] + rng.randbytes(3) + stored[at:]
            else:
                stored = compress(mutated(VALID, rng))
            if not stored:
                break
        path.write_bytes(stored)
        try:
            content = decompress(stored)
        except Exception:
            content = b""
        n_read += outcome(path, content, None)
    assert 0 < n_read < 150
