import gzip
import lzma
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from helpers.slow_letor import read_slowly

from moerank.data import blocks as table_order
from moerank.data import load_letor
from moerank.data.read.letor import parse_letor, widened

LINES = [
    f"{row % 3} qid:{row // 7} " + " ".join(f"{j}:{row / (j + 1)!r}" for j in range(1, row % 9 + 2))
    for row in range(60)
]
TEXT = "\n".join(LINES).encode() + b"\n"


def parsed(path, content, dtype=np.float64, **options):
    path.write_bytes(content)
    with path.open("rb", buffering=0) as file:
        documents = parse_letor(path, file, dtype, **options)
    return documents.X, documents


@pytest.mark.parametrize("room", [1, 100, 1000, 10**4])
@pytest.mark.parametrize("chunk", [1, 13, 64, 1000, 2**24])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_neither_the_size_of_the_pieces_nor_the_order_in_memory_matters(tmp_path, monkeypatch, room, chunk, dtype):
    monkeypatch.setattr(table_order, "BY_COLUMNS", room)
    X, y, qid = read_slowly(TEXT, dtype=dtype)
    for end in (b"\n", b"\r\n", b"\r"):
        content = TEXT.replace(b"\n", end)
        table, documents = parsed(tmp_path / "x.txt", content, dtype, chunk=chunk)
        assert table.dtype == dtype
        assert table.flags.f_contiguous == (room <= X.nbytes)
        np.testing.assert_array_equal(table, X)
        np.testing.assert_array_equal(documents.y, y)
        np.testing.assert_array_equal(documents.qid, qid)
        wide = widened(documents.as_data("x", None), 12)
        np.testing.assert_array_equal(wide.X, np.pad(X, ((0, 0), (0, 12 - X.shape[1]))))
        assert wide.X.flags.f_contiguous == table.flags.f_contiguous
        with pytest.raises(ValueError, match=r"x\.txt, line 61: the label 'x' is not an integer"):
            parsed(tmp_path / "x.txt", content + b"x qid:9 1:1" + end + content, dtype, chunk=chunk)
        with pytest.raises(ValueError, match=r"x\.txt, line 61: query 3 begins again"):
            parsed(tmp_path / "x.txt", content + b"0 qid:3 1:0" + end, dtype, chunk=chunk)


def test_wider_and_wider_lines(tmp_path):
    content = b"".join(b"1 qid:1 1:0.5 %d:%d\n" % (j, j) for j in [*range(2, 40), 500, 499, 10_000, 3])
    table, _ = parsed(tmp_path / "x.txt", content, chunk=64)
    assert table.shape == (42, 10_000)
    np.testing.assert_array_equal(table, read_slowly(content)[0])


def test_many_queries_and_long_numbers(tmp_path):
    content = b"".join(b"1 qid:q%d 1:0.%s%d\n" % (row, b"1234567890" * 3, row) for row in range(20_000))
    table, documents = parsed(tmp_path / "x.txt", content)
    X, _, qid = read_slowly(content)
    np.testing.assert_array_equal(table, X)
    assert documents.qid.tolist() == qid.tolist()


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ("7 7 07 -3", [7, 7, 7, -3]),
        ("7 07 x", ["7", "7", "x"]),
        ("WT04-132 2.5 é :", ["WT04-132", "2.5", "é", ":"]),
        ("9223372036854775807 -9223372036854775808", [2**63 - 1, -(2**63)]),
        ("9223372036854775808 1", ["9223372036854775808", "1"]),
    ],
)
def test_query_ids(tmp_path, ids, expected):
    content = "".join(f"1 qid:{query} 1:1\n" for query in ids.split()).encode()
    (tmp_path / "x.txt").write_bytes(content)
    for _ in range(2):  # the second time from the cache
        assert load_letor(tmp_path / "x.txt").qid.tolist() == expected
    with pytest.raises(ValueError, match=rf"line {len(expected) + 1}: query {ids.split()[0]} begins again"):
        parsed(tmp_path / "x.txt", content + content)


def test_the_first_fault_in_the_file_is_named(tmp_path):
    good, again, large, bad = "1 qid:1 1:1", "1 qid:1 1:2", "1 qid:2 1:1e999", "x"
    for faults, message in (
        ((large, again, bad), "line 2: .* too large"),
        (("1 qid:3", again, large), "line 3: query 1 begins again"),
        (("1 qid:3", bad, again), "line 3: the label"),
    ):
        with pytest.raises(ValueError, match=message):
            parsed(tmp_path / "x.txt", "\n".join((good, *faults)).encode())


def test_single_precision_is_the_double_rounded_and_has_its_own_limit(tmp_path):
    texts = ["3.4028235677973362e38", "1.0000000596046447754", "1e-46", "-0", "16777217", "0.1"]
    content = " ".join(["1 qid:1", *(f"{j}:{text}" for j, text in enumerate(texts, 1))]).encode()
    table, _ = parsed(tmp_path / "x.txt", content, np.float32)
    np.testing.assert_array_equal(table[0], np.array([float(text) for text in texts]).astype(np.float32))
    with pytest.raises(ValueError, match=r"line 1: the value of feature 1 is too large for a 32-bit floating-point"):
        parsed(tmp_path / "x.txt", b"1 qid:1 1:3.4028235677973366e38", np.float32)
    (tmp_path / "x.txt").write_bytes(content)
    assert load_letor(tmp_path / "x.txt", dtype="float32", cache=False)  # whatever RankingData makes of it
    with pytest.raises(ValueError, match="dtype must be float32 or float64, not int64"):
        load_letor(tmp_path / "x.txt", dtype=np.int64)


WIDE = b"1 qid:1 10000:1\n" * 1000


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_table_beyond_the_limit_of_memory_is_refused_while_it_grows(tmp_path, monkeypatch, ending, pack):
    monkeypatch.setenv("MOERANK_MEMORY", "0.01")
    path = tmp_path / f"x.txt{ending}"
    with pytest.raises(
        ValueError, match=r"line 1001: a table of 1,000 or more documents × 10,000 features would take 0\.07"
    ):
        parsed(path, pack(WIDE))


def test_a_table_may_outgrow_the_limit_in_rows_or_in_columns(tmp_path, monkeypatch):
    monkeypatch.setenv("MOERANK_MEMORY", "0.01")
    path = tmp_path / "x.txt"
    with pytest.raises(ValueError, match=r"× 10,000 features would take .* MOERANK_MEMORY, in GiB"):
        parsed(path, b"1 qid:1 1:1\n" * 1000 + WIDE)
    with pytest.raises(ValueError, match=r"documents × 1 features would take 0\.0156 GiB, and the limit is 0\.01 GiB"):
        parsed(path, b"1 qid:1 1:1\n" * 800_000)
    with pytest.raises(ValueError, match=r"documents × 0 features would take"):
        parsed(path, b"".join(b"0 qid:%d\n" % query for query in range(60_000)))


def test_more_features_and_long_ids_count_too(tmp_path, monkeypatch):
    monkeypatch.setenv("MOERANK_MEMORY", "0.001")
    path = tmp_path / "x.txt"
    path.write_bytes(b"1 qid:1 1:1\n" * 100)
    with pytest.raises(
        ValueError, match=r"x\.txt, line 101: a table of 100 or more documents × 5,000 features would take 0\.00\d+ GiB"
    ):
        load_letor(path, n_features=5000)
    many = b"".join(b"1 qid:%d 1:1\n" % row for row in range(3_000))
    path.write_bytes(many + b"1 qid:" + b"x" * 90 + b" 1:1\n")
    with pytest.raises(ValueError, match=r"x\.txt: 3,001 query ids of up to 90 characters would take"):
        load_letor(path)


def test_an_archive_that_unpacks_to_more_takes_no_more_memory(tmp_path):
    path = tmp_path / "bomb.txt.xz"
    with lzma.open(path, "wb") as file:
        for _ in range(40):
            file.write(b"1 qid:1 200:1\n" * 100_000)
    code = (
        "import resource, sys\n"
        "from moerank.data import load_letor\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: load_letor(sys.argv[1], cache=False)\n"
        "except ValueError as error: print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    environment = os.environ | {"MOERANK_MEMORY": "0.1"}
    command = [sys.executable, "-c", code, str(path)]
    said, peak = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    ).stdout.splitlines()
    assert "documents × 200 features would take 0.451 GiB, and the limit is 0.1 GiB" in said
    assert path.stat().st_size < 100_000
    assert int(peak) * 1024 < 0.25 * 2**30


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "x.txt"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(TEXT,))
    writer.start()
    assert load_letor(pipe).n_documents == 60
    writer.join()


def test_hard_numbers_and_missing_ones_find_their_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(table_order, "BY_COLUMNS", 40)
    hard = "0.1000000000000000055511151231257827"
    content = "".join(f"0 qid:1 1:{row} 2:NULL 3:{hard}\n" for row in range(20)).encode()
    table, _ = parsed(tmp_path / "x.txt", content, nulls=True)
    np.testing.assert_array_equal(table, [[row, np.nan, 0.1] for row in range(20)])


def test_lines_become_short_and_features_more(tmp_path, monkeypatch):
    monkeypatch.setattr(table_order, "BY_COLUMNS", 400)
    lines = [f"1 qid:1 1:{row} 2:{-row} # {'long' * 50}" for row in range(30)]
    lines += [f"0 qid:1 1:{row}" for row in range(300)] + [f"0 qid:2 2:1 {3 + row}:0.5" for row in range(40)]
    content = "\n".join(lines).encode()
    for chunk in (100, 5000):
        table, _ = parsed(tmp_path / "x.txt", content, chunk=chunk)
        assert table.flags.f_contiguous
        np.testing.assert_array_equal(table, read_slowly(content)[0])
