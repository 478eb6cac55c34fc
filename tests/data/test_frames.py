"""Tables of other libraries against the arrays that they hold."""

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse

from moerank.data import RankingData

VALUES = np.array([[0.5, 1.0], [0.25, 3.0], [0.75, 2.0]])
SINGLE = VALUES.astype(np.float32)
LABELS, QUERIES = [0, 2, 1], [7, 7, 8]


class Capsule:
    """A table that knows nothing but Arrow's stream."""

    def __init__(self, columns):
        self._table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def made(table):
    return RankingData(table, LABELS, QUERIES)


FRAMES = {
    "pandas": pd.DataFrame(VALUES, columns=["a", "b"], index=[5, 3, 9]),
    "mixed pandas": pd.DataFrame({"a": VALUES[:, 0], "b": [1, 3, 2]}),
    "objects": pd.DataFrame({"a": [0.5, 0.25, 0.75], "b": [1, 3, 2]}, dtype=object),
    "nullable": pd.DataFrame({"a": VALUES[:, 0], "b": [1, 3, 2]}).convert_dtypes(),
    "sparse": pd.DataFrame(VALUES, columns=["a", "b"]).astype(pd.SparseDtype("float64", VALUES[0, 0])),
    "capsule": Capsule({"a": VALUES[:, 0], "b": np.array([1, 3, 2])}),
    "arrow": pa.table({"a": VALUES[:, 0], "b": [1, 3, 2]}),
    "chunks": pa.concat_tables([pa.table({"a": VALUES[:1, 0], "b": [1]}), pa.table({"a": VALUES[1:, 0], "b": [3, 2]})]),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_keep_their_values_and_names(kind):
    data = made(FRAMES[kind])
    np.testing.assert_array_equal(data.X, VALUES)
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert data.given_names == ("a", "b")
    assert RankingData(FRAMES[kind], LABELS, QUERIES, ["x", "y"]).given_names == ("x", "y")


@pytest.mark.parametrize(
    ("table", "dtype"),
    [
        (SINGLE, np.float32),
        (np.asfortranarray(SINGLE), np.float32),
        (VALUES.astype(">f4"), np.float32),
        (pd.DataFrame(SINGLE), np.float32),
        (pd.DataFrame(SINGLE).astype("Float32"), np.float32),
        (np.ma.MaskedArray(SINGLE), np.float32),
        (pd.DataFrame({"a": SINGLE[:, 0], "b": VALUES[:, 1]}), np.float64),
        (VALUES.astype(np.float16), np.float64),
        ((4 * VALUES).astype(int), np.float64),
        (VALUES > 0.6, np.float64),
        (VALUES.tolist(), np.float64),
    ],
)
def test_single_precision_stays_single_and_all_else_is_double(table, dtype):
    data = made(table)
    assert (data.X.dtype, data.X.dtype.isnative, data.X.flags.c_contiguous) == (dtype, True, True)
    np.testing.assert_array_equal(data.X, np.asarray(table).astype(dtype))
    assert data.X64.dtype == np.float64
    np.testing.assert_array_equal(data.X64, data.X)
    assert data.X64 is data.X64


NESTED = [[[0.5, 1], [0.25, unknown], [0.75, decimal.Decimal(2)]] for unknown in (None, pd.NA, float("nan"))]
MASKED = np.ma.MaskedArray(VALUES, mask=[[False, False], [False, True], [False, False]])
UNKNOWN = [
    pd.Series([1.0, None, 2.0]),
    pd.Series([1, None, 2], dtype="Int64"),
    pd.Series([1.0, pd.NA, 2.0], dtype="Float64"),
    pd.Series([1, None, 2.0], dtype=object),
    pd.Series([True, pd.NA, True], dtype="boolean"),
]


@pytest.mark.parametrize(
    "table",
    [
        *(pd.DataFrame({"a": VALUES[:, 0], "b": column}) for column in UNKNOWN),
        *NESTED,
        *(np.array(table, dtype=object) for table in NESTED),
        MASKED,
        MASKED.astype(int),
    ],
)
def test_what_a_table_does_not_know_is_missing(table):
    feature = "'b'" if isinstance(table, pd.DataFrame) else "2"
    with pytest.raises(ValueError, match=rf"X\[1, 1\] is NaN \(row 1, feature {feature}\)"):
        made(table)
    data = RankingData(table, LABELS, QUERIES, missing=-1.0)
    assert (data.n_missing.tolist(), data.X[1, 1]) == ([0, 1], -1.0)
    if not isinstance(table, pd.DataFrame | np.ma.MaskedArray):
        assert data.X.tolist() == [[0.5, 1.0], [0.25, -1.0], [0.75, 2.0]]


def test_masked_labels_queries_and_weights_are_missing():
    with pytest.raises(ValueError, match=r"y\[1\] is nan"):
        RankingData(VALUES, np.ma.MaskedArray(LABELS, mask=[0, 1, 0]), QUERIES)
    for ids in (QUERIES, ["a", "a", "b"]):
        with pytest.raises(ValueError, match=r"qid\[2\] is (nan|None); every row"):
            RankingData(VALUES, LABELS, np.ma.MaskedArray(ids, mask=[0, 0, 1]))
        assert RankingData(VALUES, LABELS, np.ma.MaskedArray(ids)).offsets.tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match=r"document_weights\[0\] is nan"):
        RankingData(VALUES, LABELS, QUERIES, document_weights=np.ma.MaskedArray(LABELS, mask=[1, 0, 0]))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.Series(["x", "y", "z"]), ""),
        (pd.Series([1, "y", 2], dtype=object), ""),
        (pd.Series(pd.Categorical(["x", "y", "x"])), ""),
        (pd.Series(pd.to_datetime(["2020-01-01"] * 3)), ""),
        (pd.Series([[1], [2], [3]]), ""),
        (pa.array(["x", "y", "z"], pa.string_view()), "holds string_view"),  # as those of polars
        (pa.array(["x", "y", "z"]).dictionary_encode(), "holds dictionary"),
        (pa.array([[1], [2], [3]]), "holds list"),
        (pd.Series([1, 2, 2**53 + 1]), r"holds integers beyond 2\^53, such as 9007199254740993 at \[2\], "),
        (pd.Series([1, None, 2**60], dtype="Int64"), r"holds integers beyond 2\^53, such as 1152921504606846976 at"),
        (pa.array([None, -(2**53) - 1, 2]), r"holds integers beyond 2\^53, such as -9007199254740993 at \[1\], "),
    ],
)
def test_columns_that_hold_no_numbers_are_refused_by_name(column, kind):
    columns = {"a": VALUES[:, 0], "site": column}
    message = rf"data: column 'site' of X is no feature .*{kind}.*leave it out, turn it into .*dummies"
    with pytest.raises(ValueError, match=message):
        made(pd.DataFrame(columns) if isinstance(column, pd.Series) else Capsule(columns))


def test_integers_that_double_precision_holds_are_features():
    largest = [2**53, -(2**53), 0]
    for column in (
        pd.Series(largest),
        pd.Series(largest, dtype="Int64"),
        pa.array(largest),
        pa.array([2**53, None, 1]),
    ):
        columns = {"a": VALUES[:, 0], "id": column}
        table = pd.DataFrame(columns) if isinstance(column, pd.Series) else Capsule(columns)
        assert RankingData(table, LABELS, QUERIES, missing=0.0).X[0, 1] == 2.0**53
    assert made(np.array([largest, largest]).T).X[:, 1].tolist() == largest


def test_columns_of_arrow_are_numbers():
    unknown = Capsule({"a": pa.array([0.5, None, 1.5]), "b": pa.array([True, None, False]), "c": pa.nulls(3)})
    data = RankingData(unknown, LABELS, QUERIES, missing=-1)
    assert data.X.tolist() == [[0.5, 1, -1], [-1, -1, -1], [1.5, 0, -1]]
    single = Capsule({"a": pa.array([1, 2, 3], pa.float32()), "b": pa.array([decimal.Decimal(1)] * 3)})
    assert made(single).X.dtype == np.float64
    assert made(Capsule({"a": pa.array([1, 2, 3], pa.float32())})).X.dtype == np.float32


def test_a_file_mapped_for_reading_is_taken_without_a_copy(tmp_path):
    np.save(tmp_path / "X.npy", VALUES)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    data = made(mapped)
    assert np.shares_memory(data.X, mapped)
    assert type(data.X) is np.ndarray
    np.testing.assert_array_equal(data.X, VALUES)
    assert np.shares_memory(RankingData(mapped[1:], [0, 1], 0).X, mapped)
    for other in (
        np.load(tmp_path / "X.npy", mmap_mode="c"),
        np.load(tmp_path / "X.npy", mmap_mode="r+"),
        mapped[:, :1],
        mapped.astype(">f8"),
    ):
        assert not np.shares_memory(RankingData(other, LABELS, 0).X, other)


def test_labels_and_queries_of_any_index_are_taken_by_row_unless_the_table_has_another():
    y, qid = pd.Series(LABELS, index=[3, 1, 2]), pd.Series(["q", "q", "p"], index=[9, 8, 7])
    data = RankingData(VALUES, y, qid)
    assert (data.y.tolist(), data.qid.tolist()) == (LABELS, ["q", "q", "p"])
    frame = pd.DataFrame(VALUES, index=[3, 1, 2])
    assert RankingData(frame, y, QUERIES).y.tolist() == LABELS
    assert RankingData(frame, y.to_numpy(), qid.tolist()).qid.tolist() == ["q", "q", "p"]
    with pytest.raises(ValueError, match=r"data: qid has another index than X; give qid\.loc\[X\.index\], or"):
        RankingData(frame, y, qid)
    for what in ("documents", "document_weights"):
        with pytest.raises(ValueError, match=f"{what} has another index than X"):
            RankingData(FRAMES["pandas"], LABELS, QUERIES, **{what: pd.Series(LABELS)})
    with pytest.raises(ValueError, match="y has another index than X"):
        RankingData(frame, y.sort_index(), QUERIES)
    with pytest.raises(ValueError, match=r"y has shape .*; give 3 numbers"):
        RankingData(frame, y[:2], QUERIES)


@pytest.mark.parametrize(
    "qid",
    [
        pd.Categorical(["b", "b", "a"]),
        pd.Series(["b", "b", "a"], dtype="category"),
        pd.Series(["b", "b", "a"], dtype="string"),
        np.array(["b", "b", "a"], dtype=object),
        np.array(["b", "b", "a"], dtype=np.dtypes.StringDType()),
        pd.Series([4, 4, 2], dtype="Int64"),
        pd.Categorical([4, 4, 2]),
    ],
)
def test_queries_of_every_type(qid):
    data = RankingData(VALUES, LABELS, qid)
    assert data.offsets.tolist() == [0, 2, 3]
    assert [str(entry) for entry in data.qid] == [str(entry) for entry in qid]
    with pytest.raises(ValueError, match=r"query (b|4) are not contiguous: it begins again at row 3"):
        RankingData(np.ones((4, 1)), [0, 0, 0, 0], pd.Series([*data.qid, data.qid[0]], dtype=object))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (scipy.sparse.csr_matrix((100_663, 1000)), r"X is sparse; .*X\.toarray\(\), which takes 0\.75 GiB"),
        (scipy.sparse.coo_array((100_663, 1000)), r"X is sparse; .*X\.toarray\(\), which takes 0\.75 GiB"),
        (VALUES + 1j, r"X must be a table of numbers.*: (Complex data|no real)"),
        (VALUES.astype("datetime64[s]"), r"X must be a table of numbers.*: (Complex data|no real)"),
        *(
            (
                table,
                r"X must be a table of numbers.* \(holds integers beyond 2\^53, such as 9007199254740993 at \[1, 0\]",
            )
            for values in [[[0.5, 1], [2**53 + 1, 2], [3, 4]]]
            for table in (values, np.array(values, object))
        ),
        (
            np.array([[1, 2], [3, 4], [0, 2**64 - 1]], np.uint64),
            r"X must be a table of numbers.* \(holds integers beyond 2\^53, such as 18446744073709551615 at \[2, 1\]",
        ),
        ([[1, 2], [-(2**53) - 1, 4], [0, 1]], r"such as -9007199254740993 at \[1, 0\], which are equal in double"),
        (
            VALUES.astype("timedelta64[s]"),
            r"X must be a table of numbers.*: (Complex data|no real)",
        ),
    ],
)
def test_tables_that_are_sparse_or_hold_other_than_numbers_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        made(table)
