import gzip
import random
import re
from collections import Counter

import lightgbm
import numpy as np
import pytest
from helpers.broken_letor import VALID, after_an_accident, assert_same_documents, broken, judged, without_queries

from moerank.data import inputs, load_fold, load_letor, load_table
from moerank.data.read import letor
from moerank.data.read.letor import LARGEST_FEATURE, read_letor
from moerank.data.read.table import write_documents

TINY = b"""# a comment line, and a blank one

2 qid:10 1:0.5 2:-1e-3 4:.25 #docid = GX008-86-4444840 inc = 1 prob = 0.086622
0\tqid:10   2:+3.  3:1E+2\t
1 qid:10
   0 qid:-7 1:1 2:2 3:3 4:4 # \xff\xfe not UTF-8, 9:9 qid:5 \x00
3.0 qid:9223372036854775807 04:1
"""


@pytest.fixture
def load(tmp_path):
    """Load a file with the given content and name."""

    def load_content(content, filename="tiny.txt", **options):
        path = tmp_path / filename
        path.write_bytes(content)
        return load_letor(path, **options)

    return load_content


def test_equals_the_format_restated(load):
    data = load(TINY)
    assert_same_documents(data, TINY)
    assert data.X.shape == (5, 4)
    assert data.y.tolist() == [2, 0, 1, 0, 3]
    assert data.qid.tolist() == [10, 10, 10, -7, 2**63 - 1]
    assert data.feature_names == ("1", "2", "3", "4")
    assert data.name.endswith("tiny.txt") and load(TINY, name="mine").name == "mine"


def test_compressed_files(load):
    half = TINY.index(b"   0 qid:-7")
    first, second = gzip.compress(TINY[:half]), gzip.compress(TINY[half:])
    stored = first + second
    for right in (gzip.compress(TINY), stored):
        assert_same_documents(load(right, "tiny.txt.gz"), TINY)
    member = first + second[:1] + bytes([second[1] ^ 1]) + second[2:]
    for damaged in (stored[:-1], stored[:20], stored[:-9] + b"x" + stored[-8:], stored + b"x", TINY, member):
        with pytest.raises(ValueError, match=r"tiny\.txt\.gz: the \.gz file is truncated or damaged"):
            load(damaged, "tiny.txt.gz")


GOOD = "1 qid:2 1:0.5 2:1"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 1:0.5 2:1", "no query id after the label"),
        ("1 1:0.5 qid:2", "no query id after the label"),
        ("-1 qid:2 1:0.5", "the label '-1' is not an integer from 0"),
        ("12345678901 qid:2 1:0.5", "the label '12345678901' is not an integer from 0 .* to 999,999,999"),
        ("\N{ARABIC-INDIC DIGIT ONE} qid:2 1:0.5", "the label '\N{ARABIC-INDIC DIGIT ONE}'"),
        ("1 qid: 1:0.5", "the query id '' is not a text of 1 to 100 characters without spaces in UTF-8"),
        ("1 qid:" + "9" * 5000 + " 1:0.5", "the query id '9{29}…' is not a text of 1 to 100 characters"),
        ("1 qid:a\N{NO-BREAK SPACE}b 1:0.5", "the query id 'a.xa0b' is not a text of 1 to 100"),
        ("1 qid:1 1:0.5", "query 1 begins again; sort the lines"),
        ("1 qid:2 0:1 1:0.5", "'0:1' is not feature:value of a feature from 1 to 10000; if numbers start at 0"),
        ("1 qid:2 1:1 1:1", "'1:1' is not feature:value of a feature from 2 to 10000"),
        ("1 qid:2 1:1 3:0 2:1", "'2:1' is not feature:value of a feature from 4"),
        ("1 qid:2 -1:1", "'-1:1' is not feature:value"),
        ("1 qid:2 1:1 qid:2", "'qid:2' is not feature:value"),
        ("1 qid:2 1 0.5", "'1' is not feature:value"),
        ("1 qid:2 1:0x1p3", "the value '0x1p3' of feature 1"),
        ("1 qid:2 1:1:2", "the value '1:2' of feature 1"),
        ("1 qid:2 1:-inf", "the value '-inf' of feature 1 is not a finite number of 64 bits"),
        ("1 qid:2 1:1 2:1e999", "the value '1e999' of feature 2 is not a finite number"),
        ("1 qid:2 1:1 2:9007199254740993", "the value '9007199254740993' of feature 2 .*or an integer beyond 2.53: '1"),
        ("1 qid:2 1:-1152921504606846976", "the value '-1152921504606846976' of feature 1 .*or an integer beyond 2"),
        ("1 qid:2 999999999999:1", "'999999999999:1' is not .* or pass n_features for larger numbers"),
        ("1 qid:2 1:1\x00", r"the value '1\\x00' of feature 1"),
        ("1 qid:2\x0b1:1", r"the query id '2\\x0b1:1'"),
    ],
)
@pytest.mark.parametrize("missing", [None, 0.0])
def test_a_bad_line_is_refused_with_path_line_number_and_text(load, tmp_path, line, message, missing):
    content = f"0 qid:1 1:1 2:0\n\n# comment\n{GOOD}\r\n{line} # docid\n{GOOD}\n"
    with pytest.raises(ValueError, match=message) as caught:
        load(content.encode(), missing=missing)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'tiny.txt'}, line 5: ")
    text = line + " # docid"
    assert said.endswith(": " + repr(text if len(text) <= 100 else text[:99] + "…"))


def test_null_becomes_what_missing_says(load):
    content = b"1 qid:1 1:NULL 2:0.5 #docid = NULL\n0 qid:1 1:1 2:NULL\n"
    for missing in (0.0, -1.5, 1e-7):
        assert_same_documents(load(content, missing=missing), content, missing)
    with pytest.raises(ValueError, match=r"line 2: the value of feature 2 is missing \(NULL\); say what missing"):
        load(b"1 qid:1 1:1\n1 qid:1 1:1 2:NULL\n")
    spelt = b"1 qid:1 1:NULL 2:null 3:Null 4:nan 5:NaN 6:NAN\n"
    assert load(spelt, missing=0.5).X.tolist() == [[0.5] * 6]
    for wrong in (b"-NULL", b"+nan", b"NUL", b"NULLS", b"nano", b"na", b"n", b"N/A"):
        with pytest.raises(ValueError, match=r"line 1: the value .* of feature 1 is not a finite number"):
            load(b"1 qid:1 1:%b 2:1\n" % wrong, missing=0.5)
    with pytest.raises(ValueError, match=r"missing must be a finite number, .* did you mean 'query-min'"):
        load(content, missing="query_min")


def test_n_features_pads_and_refuses(load):
    data = load(TINY, n_features=6)
    assert data.X.shape == (5, 6)
    assert not data.X[:, 4:].any()
    np.testing.assert_array_equal(data.X[:, :4], load(TINY).X)
    with pytest.raises(ValueError, match=r"line 3: '4:\.25' is not feature:value of a feature from 3 to 3;"):
        load(TINY, n_features=3)
    with pytest.raises(ValueError, match="n_features must be at least 1, or None, not 0"):
        load(TINY, n_features=0)
    with pytest.raises(ValueError, match=r"tiny\.txt: no line lists a feature"):
        load(b"1 qid:1\n0 qid:1 # 1:1\n")
    assert load(b"1 qid:1\n0 qid:1\n", n_features=2).X.tolist() == [[0, 0], [0, 0]]
    beyond = b"1 qid:1 %d:1\n" % (LARGEST_FEATURE + 1)
    assert load(beyond, n_features=LARGEST_FEATURE + 2).n_features == LARGEST_FEATURE + 2
    with pytest.raises(ValueError, match="line 1: '10001:1' is not"):
        load(beyond)
    assert load(b"1 qid:1 %d:1\n" % LARGEST_FEATURE).n_features == LARGEST_FEATURE


@pytest.mark.parametrize("content", [b"", b"\n\r\n  \t\n", b"# only\n# comments"])
def test_a_file_without_documents_is_refused(load, tmp_path, content):
    files = {"e.txt": content, "e.txt.gz": gzip.compress(content)}
    for filename, stored in files.items():
        with pytest.raises(ValueError, match="the file holds no document") as caught:
            load(stored, filename)
        assert str(tmp_path / filename) in str(caught.value)


def test_folders_and_missing_files_are_named(tmp_path):
    with pytest.raises(IsADirectoryError, match=rf"{re.escape(str(tmp_path))} is a folder; .* load_fold"):
        load_letor(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"absent\.txt"):
        load_letor(tmp_path / "absent.txt")


@pytest.mark.parametrize("part", ["MQ2008/Fold3/vali.txt", "OHSUMED/Fold2/test.txt"])
def test_real_file_equals_the_format_restated(letor_folder, part):
    path = letor_folder / part
    assert_same_documents(load_letor(path), path.read_bytes())


@pytest.mark.parametrize(
    ("content", "documents"),
    [
        (b"1 qid:1 1:1 #docid = GX-1 inc = 1\n0 qid:1 1:2 # docid=b # c\n", ["GX-1", "b"]),
        (b"# two\n1 qid:1 1:1 # a trail shoes\r\n\r\n0 qid:1 1:2 #\xc3\xa9\r\n", ["a", "é"]),
        (b"1 qid:1 1:1 # a\r0 qid:1 1:2 # b", ["a", "b"]),
        (b"1 qid:1 1:1 # a # b\n0 qid:1 1:2\n", None),
        (b"1 qid:1 1:1 # a\n0 qid:1 1:2 #\n", None),
        (b"1 qid:1 1:1\n0 qid:1 1:2\n", None),
    ],
)
def test_comments_name_the_documents(load, monkeypatch, content, documents):
    for chunk in (1, 2**22):
        monkeypatch.setattr(letor, "CHUNK", chunk)
        ids = load(content).documents
        assert (ids if ids is None else ids.tolist()) == documents


LINES = [
    f"{row % 3} qid:{row // 7} " + " ".join(f"{j}:{row / (j + 1)!r}" for j in range(1, row % 9 + 2))
    for row in range(60)
]
TEXT = "\n".join(LINES).encode() + b"\n"


@pytest.mark.parametrize("room", [1, 1000, 10**4])
@pytest.mark.parametrize("chunk", [1, 13, 64, 2**24])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_neither_the_size_of_the_pieces_nor_the_order_in_memory_matters(load, monkeypatch, room, chunk, dtype):
    monkeypatch.setattr(inputs, "BY_COLUMNS", room)
    monkeypatch.setattr(letor, "CHUNK", chunk)
    for end in (b"\n", b"\r\n", b"\r"):
        content = TEXT.replace(b"\n", end)
        data = load(content, dtype=dtype)
        assert (data.X.dtype, data.X.flags.f_contiguous) == (dtype, room <= data.X.nbytes)
        assert_same_documents(data, TEXT)
        for wrong, message in ((b"x qid:9 1:1", "the label 'x' is not an integer"), (b"0 qid:3 1:0", "query 3 begins")):
            with pytest.raises(ValueError, match=rf"tiny\.txt, line 61: {message}"):
                load(content + wrong + end + content, dtype=dtype)


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
def test_query_ids(load, ids, expected):
    content = "".join(f"1 qid:{query} 1:1\n" for query in ids.split()).encode()
    assert load(content).qid.tolist() == expected
    with pytest.raises(ValueError, match=rf"line {len(expected) + 1}: query {ids.split()[0]} begins again"):
        load(content + content)


def test_the_first_fault_in_the_file_is_named(load):
    good, again, large, bad = "1 qid:1 1:1", "1 qid:1 1:2", "1 qid:2 1:1e999", "x"
    for faults, message in (
        ((large, again, bad), "line 2: .* not a finite number"),
        (("1 qid:3", again, large), "line 3: query 1 begins again"),
        (("1 qid:3", bad, again), "line 3: the label"),
    ):
        with pytest.raises(ValueError, match=message):
            load("\n".join((good, *faults)).encode())


def test_single_precision_is_the_double_rounded_and_has_its_own_limit(load):
    texts = ["1e29", "1.0000000596046447754", "1e-46", "-0", "16777217", "0.1"]
    content = " ".join(["1 qid:1", *(f"{j}:{text}" for j, text in enumerate(texts, 1))]).encode()
    table = load(content, dtype="float32").X
    np.testing.assert_array_equal(table[0], np.array([float(text) for text in texts]).astype(np.float32))
    assert not np.signbit(table).any()
    assert load(b"1 qid:1 1:3.4028235677973362e38", dtype=np.float32).X.tolist() == [[np.finfo(np.float32).max]]
    with pytest.raises(ValueError, match=r"line 1: the value .* of feature 1 is not a finite number of 32 bits"):
        load(b"1 qid:1 1:3.4028235677973366e38", dtype=np.float32)
    with pytest.raises(ValueError, match="dtype must be float32 or float64, not int64"):
        load(content, dtype=np.int64)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_that_count_from_0_keep_their_numbers(load, tmp_path, dtype):
    content = b"1 qid:1 0:0.5 2:1e-3\n0 qid:1 1:0.1234567890123456789 # 0\n"
    data = load(content, zero_based=True, dtype=dtype)
    assert_same_documents(data, b"1 qid:1 1:0.5 3:1e-3\n0 qid:1 2:0.1234567890123456789\n")
    assert data.feature_names == ("0", "1", "2")
    with pytest.raises(ValueError, match=r"line 1: '3:1' is not feature:value of a feature from 3 to 2; list features"):
        load(b"1 qid:1 2:1 3:1\n", zero_based=True, n_features=3)
    for part, text in (("train", content), ("vali", b"1 qid:2 0:7\n"), ("test", b"1 qid:3 4:2\n")):
        (tmp_path / f"{part}.txt").write_bytes(text)
    parts = load_fold(tmp_path, zero_based=True, dtype=dtype)
    assert [part.feature_names for part in parts] == [tuple("01234")] * 3
    assert parts[1].X.tolist() == [[7, 0, 0, 0, 0]]


@pytest.mark.parametrize("chunk", [1, 5, 2**22])
def test_a_mark_is_skipped_and_other_content_is_named(load, monkeypatch, chunk):
    monkeypatch.setattr(letor, "CHUNK", chunk)
    assert_same_documents(load(b"\xef\xbb\xbf" + TINY), TINY)
    for content, kind in ((TEXT.decode().encode("utf-16"), "UTF-16 text"), (b"PK\x03\x04 \n", "an archive")):
        with pytest.raises(ValueError, match=rf"tiny\.txt is {kind}"):
            load(content)


WIDE = b"1 qid:1 10000:1\n" * 1000


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress)])
def test_a_table_beyond_the_limit_is_refused_before_it_is_made(load, monkeypatch, ending, pack):
    monkeypatch.setenv("MOERANK_MEMORY", "0.01")
    for content, message in (
        (WIDE, r"line 1: a table of 1,000 or more documents × 10,000 features would take 0\.07"),
        (b"1 qid:1 1:1\n" * 1000 + WIDE, r"× 10,000 features would take .* MOERANK_MEMORY, in GiB"),
        (b"1 qid:1 1:1\n" * 800_000, r"documents × 1 features would take 0\.0156 GiB, and the limit is 0\.01 GiB"),
    ):
        with pytest.raises(ValueError, match=message):
            load(pack(content), f"tiny.txt{ending}")
    with pytest.raises(ValueError, match=r"a table of 100 or more documents × 50,000 features would take"):
        load(pack(b"1 qid:1 1:1\n" * 100), f"tiny.txt{ending}", n_features=50_000)


def test_a_line_without_end_does_not_fill_the_memory(load, monkeypatch):
    monkeypatch.setattr(letor, "LONGEST_LINE", 1000)
    with pytest.raises(ValueError, match=r"zeros\.txt\.gz, line 1: longer than 0 MiB, too long for a document"):
        load(gzip.compress(bytes(10**7)), "zeros.txt.gz")


@pytest.mark.parametrize("missing", [None, 0.25])
@pytest.mark.parametrize("counts", [None, [4, 4, 4]])
def test_broken_files_are_read_rightly_or_refused(tmp_path, monkeypatch, missing, counts):
    rng = random.Random(f"plain {missing}")
    path = tmp_path / "broken.txt"
    base = [] if counts is None else [after_an_accident(VALID, rng, [without_queries])]
    if counts:
        path.with_name("broken.txt.query").write_text("4\n4\n4\n")
    outcomes = Counter()
    for _ in range(300 if counts is None else 150):
        content = broken(rng, *base)
        path.write_bytes(content)
        monkeypatch.setattr(letor, "CHUNK", rng.choice([1, 16, 64, 2**12]))
        dtype = rng.choice([np.float64, np.float32])
        outcome = judged(path, content, missing=missing, dtype=dtype, counts=counts)
        assert outcome in ("read", "refused"), content
        outcomes[outcome] += 1
    assert 0.1 < outcomes["read"] / outcomes.total() < 0.8


BARE = b"2 1:0.5 3:1\n0 1:1\n1 # no feature\n0 2:4\n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(BARE)
    return path


@pytest.mark.parametrize("beside", ["x.txt.query", "x.txt.group"])
@pytest.mark.parametrize("counts", [b"3\n1\n", b"3\r\n1", b" 3\t\r1\r\n\n"])
def test_queries_come_from_the_file_beside(path, beside, counts):
    path.with_name(beside).write_bytes(counts)
    data = load_letor(path)
    assert data.qid.tolist() == [1, 1, 1, 2]
    assert data.y.tolist() == [2, 0, 1, 0]
    assert data.X.tolist() == [[0.5, 0, 1], [1, 0, 0], [0, 0, 0], [0, 4, 0]]
    path.with_name(beside).write_bytes(b"2\n2\n")
    assert load_letor(path).qid.tolist() == [1, 1, 2, 2]


def test_queries_in_both_places_or_in_none_are_refused(path):
    packed = path.with_name("rank.train.gz")
    packed.write_bytes(gzip.compress(BARE))
    with pytest.raises(ValueError, match=r"line 1: no query id .* a file rank\.train\.gz\.query beside"):
        load_letor(packed)
    path.with_name("rank.train.query").write_bytes(b"3\n1\n")
    assert load_letor(packed).n_queries == 2
    packed.write_bytes(gzip.compress(BARE + b"1 qid:1 1:1\n"))
    with pytest.raises(ValueError, match=r"line 5: the line has a query id, but rank\.train\.query also gives"):
        load_letor(packed)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (b"3\n2\n", r"x\.txt\.query: the 2 queries have 5 documents, but .*x\.txt has 4; give"),
        (b"", "the 0 queries have 0 documents"),
        (b"3\n\n1\n", r"x\.txt\.query, line 2: '' is not the number of documents of a query, from 1 on"),
        (b"3\n0\n1\n", "line 2: '0' is not the number"),
        (b"9999999999\n", "the 1 queries have 9,999,999,999 documents"),
        (b"1\n2\n3\n", r"x\.txt\.weight: 3 weights, but .* has 4 documents and 2 queries"),
        (b"1\nx\n", r"x\.txt\.weight, line 2: 'x' is not a weight"),
        (b"1\n0\n", r"x\.txt\.weight, line 2: '0' is not a weight; write one positive number a line"),
    ],
)
def test_wrong_counts_and_weights_are_refused(path, counts, message):
    path.with_name("x.txt.query").write_bytes(b"3\n1\n")
    path.with_name("x.txt.weight" if "weight" in message else "x.txt.query").write_bytes(counts)
    with pytest.raises(ValueError, match=message):
        load_letor(path)


@pytest.mark.parametrize(
    ("weights", "roles"),
    [
        ("1\n2\n3\n2\n", {"document_weights": [0.5, 1, 1.5, 1], "query_weights": None}),
        ("1\n3", {"document_weights": None, "query_weights": [0.5, 1.5]}),
    ],
)
def test_weights_come_from_the_file_beside(path, weights, roles):
    path.with_name("x.txt.query").write_text("3\n1\n")
    path.with_name("x.txt.weight").write_text(weights)
    write_documents(path.with_name("x.parquet"), read_letor(path, nulls=False))
    for data in (load_letor(path), load_table(path.with_name("x.parquet"))):
        for role, expected in roles.items():
            given = getattr(data, role)
            assert (given if given is None else given.tolist()) == expected


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["0", "NULL", "0"], np.float32),
        (["8.388607", "8.388608", "-8.388608"], np.float32),
        (["8.388607", "8.388609"], np.float64),
        (["16777216", "16777217"], np.float64),
        (["83.88607", "0.00001"], np.float32),
        (["0.1234567", "0.123456"], np.float32),
        (["0.1234567", "0.12345671"], np.float64),
        (["0.00000001", "0.00000002"], np.float32),
        (["1e300"], np.float64),
    ],
)
def test_values_are_single_where_that_tells_them_apart(path, values, dtype):
    lines = [f"{row} qid:1 1:{value}\n" for row, value in enumerate(values)]
    path.write_text("".join(lines))
    single = load_letor(path, missing=0.5, dtype=np.float32) if dtype == np.float32 else None
    data = load_letor(path, missing=0.5)
    assert data.X.dtype == dtype
    assert len(np.unique(data.X)) == len(set(values))
    if single is not None:
        np.testing.assert_array_equal(data.X, single.X)
    for part in ("train", "vali", "test"):
        path.with_name(f"{part}.txt").write_text("".join(lines) if part == "test" else lines[0])
    assert {part.X.dtype for part in load_fold(path.parent, missing=0.5)} == {np.dtype(dtype)}


def test_lightgbm_reads_the_same(path):
    rng = np.random.default_rng(0)
    X, y, counts = rng.random((60, 4)).round(3), rng.integers(0, 3, 60), [20, 25, 15]
    lines = [
        " ".join([str(label), *(f"{j}:{v}" for j, v in enumerate(row, 1))]) for label, row in zip(y, X, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    path.with_name("x.txt.query").write_text("\n".join(map(str, counts)))
    path.with_name("x.txt.weight").write_text("\n".join(map(str, rng.integers(1, 9, 60))))
    dataset = lightgbm.Dataset(str(path), params={"verbose": -1}).construct()
    data = load_letor(path, dtype=np.float64)
    np.testing.assert_array_equal(dataset.get_label(), data.y)
    np.testing.assert_array_equal(dataset.get_group(), np.diff(data.offsets))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_allclose(dataset.get_weight() / dataset.get_weight().mean(), data.document_weights, rtol=1e-6)
