import gzip
import lzma
import re

import pytest

import moerank.data.read.files
from moerank.data import load_letor
from moerank.data.read.files import TextChunks

TEXTS = [
    b"",
    b"a\nbb\r\nccc\rd\n\n\r\re",
    b"x" * 50 + b"\n" + b"y" * 7,
    b"\r",
    b"\r\n",
    b"a\r",
    b"a\r\n",
    b"\n\r\n\r",
    b"a" * 99,
]


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".XZ", lzma.compress)])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10**6])
def test_pieces_are_whole_lines(tmp_path, ending, pack, size):
    path = tmp_path / f"text{ending}"
    for text in TEXTS:
        path.write_bytes(pack(text))
        found = []
        with path.open("rb", buffering=0) as file:
            for buffer, end in TextChunks(path, file, size):
                assert not (buffer[end - 1] == 13 and buffer[end] == 10)
                found.append(buffer[:end].tobytes())
        lines = [re.split(rb"\r\n|\r|\n", piece) for piece in found]
        assert all(piece and last == b"" for piece, (*_, last) in zip(found, lines, strict=True))
        whole = b"".join(found)
        assert whole == text or (whole == text + b"\n" and text and not text.endswith((b"\n", b"\r")))


def test_a_line_without_end_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(moerank.data.read.files, "LONGEST_LINE", 1000)
    path = tmp_path / "zeros.txt.xz"
    path.write_bytes(lzma.compress(bytes(10**6)))
    with pytest.raises(ValueError, match=r"zeros\.txt\.xz, line 1: longer than 64 MiB, which no document is"):
        load_letor(path)


def test_the_rest_of_an_archive_is_checked(tmp_path):
    path = tmp_path / "text.gz"
    stored = gzip.compress(b"a\n" * 10**6)
    path.write_bytes(stored[:-9] + b"x" + stored[-8:])
    with path.open("rb", buffering=0) as file:
        chunks = TextChunks(path, file, 64)
        next(iter(chunks))
        with pytest.raises(ValueError, match=r"text\.gz: the \.gz file is truncated or damaged"):
            chunks.check_rest()


def test_the_share_that_has_been_read(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"0123456\n" * 100)
    with path.open("rb", buffering=0) as file:
        chunks = TextChunks(path, file, 80)
        shares = [chunks.share for _ in chunks]
    assert shares == pytest.approx([k / 10 for k in range(1, 11)])
