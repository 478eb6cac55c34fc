import gzip

import numpy as np
import pytest

from moerank.data import load_letor, load_table
from moerank.data.read.letor import read_letor
from moerank.data.read.table import write_documents

TEXT = b"2 1:0.5 3:1\n0 1:1\n1 # no feature\n0 2:4\n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(TEXT)
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
    packed.write_bytes(gzip.compress(TEXT))
    with pytest.raises(ValueError, match=r"line 1: no query id .* a file rank\.train\.gz\.query beside"):
        load_letor(packed)
    path.with_name("rank.train.query").write_bytes(b"3\n1\n")
    assert load_letor(packed).n_queries == 2
    packed.write_bytes(gzip.compress(TEXT + b"1 qid:1 1:1\n"))
    with pytest.raises(
        ValueError, match=r"line 5: the line has a query id, but rank\.train\.query also gives the queries"
    ):
        load_letor(packed)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (b"3\n2\n", r"x\.txt\.query: the 2 queries have 5 documents, but .*x\.txt has 4; give"),
        (b"", "the 0 queries have 0 documents"),
        (b"3\n\n1\n", r"x\.txt\.query, line 2: '' is not the number of documents of a query, from 1 on"),
        (b"3\n0\n1\n", "line 2: '0' is not the number"),
        (b"4.0\n", "line 1: '4.0' is not"),
        (b"9999999999\n", "line 1: '9999999999' is not"),
        (b"1\n2\n3\n", r"x\.txt\.weight: 3 weights, but .* has 4 documents and 2 queries"),
        (b"1\nx\n", r"x\.txt\.weight, line 2: 'x' is not a weight"),
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
    write_documents(path.with_name("x.parquet"), read_letor(path))
    for data in (load_letor(path), load_table(path.with_name("x.parquet"))):
        for role, expected in roles.items():
            given = getattr(data, role)
            assert (given if given is None else given.tolist()) == expected


def test_lightgbm_reads_the_same(path):
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X, y, counts = rng.random((60, 4)).round(3), rng.integers(0, 3, 60), [20, 25, 15]
    lines = [
        " ".join([str(label), *(f"{j}:{v}" for j, v in enumerate(row, 1))]) for label, row in zip(y, X, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    path.with_name("x.txt.query").write_text("\n".join(map(str, counts)))
    path.with_name("x.txt.weight").write_text("\n".join(map(str, rng.integers(1, 9, 60))))
    dataset = lightgbm.Dataset(str(path), params={"verbose": -1}).construct()
    data = load_letor(path)
    np.testing.assert_array_equal(dataset.get_label(), data.y)
    np.testing.assert_array_equal(dataset.get_group(), np.diff(data.offsets))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_allclose(dataset.get_weight() / dataset.get_weight().mean(), data.document_weights, rtol=1e-6)
