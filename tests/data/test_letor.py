import gzip
import lzma
import pickle
import re

import numpy as np
import pytest
from helpers.slow_letor import assert_same_documents

from moerank.data import load_letor
from moerank.data.read.letor import LARGEST_FEATURE

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


@pytest.mark.parametrize(("ending", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_files(load, ending, compress):
    half = TINY.index(b"   0 qid:-7")
    for stored in (compress(TINY), compress(TINY[:half]) + compress(TINY[half:])):
        assert_same_documents(load(stored, "tiny.txt" + ending), TINY)
    stored = compress(TINY[:half]) + compress(TINY[half:])
    for damaged in (stored[:-1], stored[:20], stored[:-9] + b"x" + stored[-8:], stored + b"x", TINY):
        with pytest.raises(ValueError, match=rf"tiny\.txt\{ending}: the \{ending} file is truncated or damaged"):
            load(damaged, "tiny.txt" + ending)
    second = bytearray(stored)
    second[len(compress(TINY[:half])) + 1] ^= 1
    with pytest.raises(ValueError, match="truncated or damaged"):
        load(bytes(second), "tiny.txt" + ending)


GOOD = "1 qid:2 1:0.5 2:1"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 1:0.5 2:1", "no query id after the label"),
        ("1", "no query id after the label"),
        ("1 1:0.5 qid:2", "no query id after the label"),
        ("-1 qid:2 1:0.5", "the label '-1' is not an integer from 0"),
        ("0.5 qid:2 1:0.5", "the label '0.5' is not an integer"),
        ("12345678901 qid:2 1:0.5", "the label '12345678901' is not an integer from 0 .* to 999,999,999"),
        ("1,2 qid:2 1:0.5", "the label '1,2'"),
        ("\N{ARABIC-INDIC DIGIT ONE} qid:2 1:0.5", "the label '\N{ARABIC-INDIC DIGIT ONE}'"),
        ("1 qid: 1:0.5", "the query id '' is empty"),
        ("1 qid:" + "9" * 5000 + " 1:0.5", "the query id '9{29}…' is longer than 100 characters"),
        ("1 qid:a\N{NO-BREAK SPACE}b 1:0.5", "the query id 'a.xa0b' holds a space or a control character"),
        ("1 qid:01 1:0.5", "query 01 begins again; sort the lines"),
        ("1 qid:1 1:0.5", "query 1 begins again; sort the lines"),
        ("1 qid:2 0:1 1:0.5", "feature number 0; feature numbers start at 1"),
        ("1 qid:2 1:1 1:1", "feature 1 is listed twice"),
        ("1 qid:2 1:1 3:0 2:1", "feature 2 follows feature 3; list the features in increasing order"),
        ("1 qid:2 -1:1", "'-1:1' is not of the form feature:value"),
        ("1 qid:2 1:1 qid:2", "'qid:2' is not of the form feature:value"),
        ("1 qid:2 1 0.5", "'1' is not of the form feature:value"),
        ("1 qid:2 1: 0.5", "the value '' of feature 1 is not a finite number"),
        ("1 qid:2 1:0.5x", "the value '0.5x' of feature 1"),
        ("1 qid:2 1:0x1p3", "the value '0x1p3' of feature 1"),
        ("1 qid:2 1:1:2", "the value '1:2' of feature 1"),
        ("1 qid:2 1:-inf", "the value '-inf' of feature 1 is not a finite number"),
        ("1 qid:2 1:1 2:1e999", "the value of feature 2 is too large for a 64-bit"),
        ("1 qid:2 10001:1", "feature 10001 is beyond the limit of 10,000 features; .* pass n_features"),
        ("1 qid:2 999999999999:1", "feature 999999999999 is beyond the limit of 10,000"),
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
    with pytest.raises(
        ValueError, match=r"line 2: the value of feature 2 is missing \(NULL\); say what missing values become"
    ):
        load(b"1 qid:1 1:1\n1 qid:1 1:1 2:NULL\n")
    with pytest.raises(ValueError, match=r"feature 1 is missing \(NULL\); .* 'query-min', 'query-mean' or"):
        load(b"1 qid:1 1:null\n")
    with pytest.raises(ValueError, match="the value 'nan' of feature 2 is not a finite number"):
        load(b"1 qid:1 1:1 2:nan\n")
    spelt = b"1 qid:1 1:NULL 2:null 3:Null 4:nan 5:NaN 6:NAN\n"
    assert load(spelt, missing=0.5).X.tolist() == [[0.5] * 6]
    for wrong in (b"-NULL", b"+nan", b"NUL", b"NULLS", b"nano", b"na", b"n", b"N/A"):
        with pytest.raises(ValueError, match=r"line 1: the value .* of feature 1 is not a finite number"):
            load(b"1 qid:1 1:%b 2:1\n" % wrong, missing=0.5)
    with pytest.raises(ValueError, match=r"missing must be a number, 'query-min', .* did you mean 'query-min'"):
        load(content, missing="query_min")
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="only become a finite number"):
            load(content, missing=wrong)


def test_n_features_pads_and_refuses(load):
    data = load(TINY, n_features=6)
    assert data.X.shape == (5, 6)
    assert not data.X[:, 4:].any()
    np.testing.assert_array_equal(data.X[:, :4], load(TINY).X)
    for _ in range(2):  # the second time from the cache
        with pytest.raises(ValueError, match="line 3: feature 4 is beyond n_features=3"):
            load(TINY, n_features=3)
    with pytest.raises(ValueError, match="at least one feature"):
        load(TINY, n_features=0)


def test_n_features_lifts_the_limit_for_itself_only(load):
    content = f"1 qid:1 {LARGEST_FEATURE + 1}:1\n".encode()
    assert load(content, n_features=LARGEST_FEATURE + 2).n_features == LARGEST_FEATURE + 2
    with pytest.raises(ValueError, match="line 1: feature 10001 is beyond the limit"):
        load(content)
    assert load(b"1 qid:1 %d:1\n" % LARGEST_FEATURE).n_features == LARGEST_FEATURE


@pytest.mark.parametrize("content", [b"", b"\n\r\n  \t\n", b"# only\n# comments"])
def test_a_file_without_documents_is_refused(load, tmp_path, content):
    files = {"e.txt": content, "e.txt.gz": gzip.compress(content), "e.txt.xz": lzma.compress(content)}
    for filename, stored in files.items():
        with pytest.raises(ValueError, match="the file holds no document") as caught:
            load(stored, filename)
        assert str(tmp_path / filename) in str(caught.value)


def test_a_file_without_features_needs_their_number(load):
    with pytest.raises(ValueError, match=r"tiny\.txt: no line lists a feature"):
        load(b"1 qid:1\n0 qid:1 # 1:1\n")
    assert load(b"1 qid:1\n0 qid:1\n", n_features=2).X.tolist() == [[0, 0], [0, 0]]


def test_folders_and_missing_files_are_named(tmp_path):
    with pytest.raises(IsADirectoryError, match=rf"{re.escape(str(tmp_path))} is a folder; .* load_fold"):
        load_letor(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"absent\.txt"):
        load_letor(tmp_path / "absent.txt")


def test_name(load, tmp_path):
    assert load(TINY).name == str(tmp_path / "tiny.txt")
    assert load(TINY, name="mine").name == "mine"


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
def test_comments_name_the_documents(tmp_path, content, documents):
    path = tmp_path / "train.txt"
    path.write_bytes(content)
    found = load_letor(path, cache=False).documents
    assert (found if found is None else found.tolist()) == documents


def test_ids_of_a_file_that_has_changed_are_refused(tmp_path):
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(b"1 qid:1 1:1 # a\n0 qid:1 1:2 # b\n0 qid:2 1:3 # c\n"))
    data = load_letor(path, cache=False)
    assert pickle.loads(pickle.dumps(data)).with_rows(np.array([2, 0])).documents.tolist() == ["c", "a"]
    part = data.with_rows(np.array([1, 2])).with_rows(np.array([1]))
    path.write_bytes(gzip.compress(b"1 qid:1 1:1 # x\n"))
    with pytest.raises(ValueError, match=r"train\.txt\.gz: it changed after it was read; read it again"):
        _ = part.documents
