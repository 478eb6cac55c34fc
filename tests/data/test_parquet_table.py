import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moerank.data import load_table


@pytest.fixture
def table(tmp_path):
    """Write columns to a Parquet file and read it."""

    def read(columns, **options):
        path = tmp_path / "train.parquet"
        pq.write_table(pa.table(columns), path)
        return load_table(path, **{"label": "label", "query": "query"} | options)

    return read


PLAIN = {"label": [2, 0, 1], "query": ["x", "x", "y"], "a": [0.1, 1e300, -0.0]}


@pytest.mark.parametrize(
    "kind", [*(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)), "float16", "float32", "float64", "bool"]
)
def test_all_kinds_of_numbers_become_features(table, kind):
    values = np.array([0, 1, 1]).astype(kind)
    data = table({**PLAIN, "a": pa.array(values), "label": pa.array(values)})
    assert data.X.tolist() == [[0.0], [1.0], [1.0]]
    assert data.y.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([7, 7, -8]), [7, 7, -8]),
        (pa.array(["7", "7", "-8"]), [7, 7, -8]),
        (pa.array(["07", "07", "8"]), ["07", "07", "8"]),
        (pa.array([2**64 - 1, 2**64 - 1, 5], pa.uint64()), [str(2**64 - 1), str(2**64 - 1), "5"]),
        (pa.array(["x", "x", "y"]).dictionary_encode(), ["x", "x", "y"]),
        (pa.array(["x", "x", "y"], pa.large_string()), ["x", "x", "y"]),
        (pa.array([datetime.date(2020, 1, 1)] * 2 + [datetime.date(2020, 1, 2)]), ["2020-01-01"] * 2 + ["2020-01-02"]),
    ],
)
def test_ids_of_queries_have_any_type(table, ids, expected):
    data = table({**PLAIN, "query": ids})
    assert (data.X.tolist(), data.y.tolist(), data.qid.tolist()) == ([[0.1], [1e300], [-0.0]], [2, 0, 1], expected)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array(["1", "2", "3"]), "string"),
        (pa.array(["1", "2", "3"]).dictionary_encode(), "dictionary<values=string, indices=int32, ordered=0>"),
        (pa.array([decimal.Decimal("1.5")] * 3), "decimal128(2, 1)"),
        (pa.array([datetime.date(2020, 1, 1)] * 3), "date32[day]"),
        (pa.array([[1.0], [], [2.0]]), "list<"),
        (pa.nulls(3), "null"),
    ],
)
def test_columns_without_plain_numbers_are_refused_by_name(table, column, kind):
    with pytest.raises(ValueError) as error:
        table({**PLAIN, "b": column})
    assert f"the column 'b' holds {kind}" in str(error.value)
    assert "not plain numbers; turn it into numbers, or leave the column out" in str(error.value)
    assert table({**PLAIN, "b": column}, features=["a"]).feature_names == ("a",)


def test_missing_values_need_a_rule(table):
    for column in (pa.array([1, None, 3]), pa.array([1.0, None, 3.0]), pa.array([1.0, float("nan"), 3.0])):
        data = table({**PLAIN, "b": column}, missing=-2)
        assert data.X[:, 1].tolist() == [1.0, -2.0, 3.0]
        assert data.n_missing.tolist() == [0, 1]
        with pytest.raises(ValueError, match=r"parquet, row 2: the value of 'b' is missing; say what missing values"):
            table({**PLAIN, "b": column})


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        (dict(a=[1.0, np.inf, 2.0]), {}, r"row 2: the value inf of 'a' is infinite"),
        (dict(a=[1.0, 2.0, -1e39]), dict(dtype=np.float32), r"row 3: the value -1e\+39 of 'a' is infinite, or too"),
        (dict(label=[1, None, 0]), {}, r"row 2: the label nan in the column 'label'"),
        (dict(query=["x", None, "y"]), {}, r"row 2: no query id in the column 'query'"),
        (dict(query=[[1], [1], [2]]), {}, r"the column 'query' holds list<.*, which are not ids; make texts"),
        (dict(__index_level_0__=[1, 2, 3]), {}, r"the column '__index_level_0__' is an index that pandas wrote"),
        (dict(label=[], query=[], a=[]), {}, "not plain numbers|the table has no row"),
        (dict(query=[1.0, 1.0, np.nan]), {}, "row 3: the query id nan in the column 'query' is NaN, or a float"),
        (
            dict(query=[1.0, 1.0, 2.0**53]),
            {},
            r"row 3: the query id 9\.0072e\+15 in the column 'query' is NaN, or a float",
        ),
        (dict(query=["x", "x", "x\0"]), {}, "row 3: the query id in the column 'query' ends in a zero byte"),
        (dict(d=["x", "x", "x\0"]), dict(document="d"), "row 3: the document id in the column 'd' ends in a zero byte"),
    ],
)
def test_wrong_values_are_refused_by_place(table, columns, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        table({**PLAIN, **columns}, **options)


def test_what_is_no_parquet_file_is_refused(tmp_path):
    path = tmp_path / "train.parquet"
    pq.write_table(pa.table(PLAIN), path)
    stored = path.read_bytes()
    for content in (b"", b"PAR1", b"label,query,a\n1,2,3\n", stored[:-1], stored[: len(stored) // 2]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"train\.parquet: not a Parquet file that can be read, or a damaged one"):
            load_table(path, label="label", query="query")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        load_table(path, label="label", query="query")
