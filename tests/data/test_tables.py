import datetime
import gzip
import io
import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moerank.data import load_table, load_table_fold
from moerank.data.read import table as table_module
from moerank.data.read.delimited import MISSING

TEXT = "query,label,price,rating\nshoes,2,59.9,4.5\nshoes,0,120,3\nhats,1,-1e-3,.5\n"


@pytest.fixture
def table(tmp_path):
    """Write a text, bytes or columns to a file and read it."""

    def read(content, name="train.csv", **options):
        path = tmp_path / ("train.parquet" if isinstance(content, dict) else name)
        if isinstance(content, dict):
            pq.write_table(pa.table(content), path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return load_table(path, **{"label": "label", "query": "query"} | options)

    return read


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", "\r"),
        TEXT.replace(",", ";"),
        TEXT.replace(",", "\t"),
        "\ufeff" + TEXT,
        "\n \n" + TEXT.replace("\n", "\n\n \t\n"),
        TEXT.rstrip("\n"),
        TEXT.replace("shoes", '"shoes"').replace("price", '"price"'),
        gzip.compress(TEXT.encode()),
    ],
    ids=["plain", "CRLF", "CR", "semicolons", "tabs", "mark", "blank lines", "no end", "quotes", "gz"],
)
def test_every_way_of_writing_says_the_same(table, tmp_path, text):
    name = "train.csv.gz" if isinstance(text, bytes) else "train.tsv"
    data = table(text, name)
    assert data.X.tolist() == [[59.9, 4.5], [120.0, 3.0], [-1e-3, 0.5]]
    assert (data.y.tolist(), data.qid.tolist()) == ([2, 0, 1], ["shoes", "shoes", "hats"])
    assert (data.given_names, data.name) == (("price", "rating"), str(tmp_path / name))


def test_quotes_hold_separators_line_ends_and_quotes(table):
    data = table('label,query,"a, b"\n1,"x,\n""y""",2\n0,z,3\n')
    assert data.qid.tolist() == ['x,\n"y"', "z"]
    assert data.feature_names == ("a, b",)


def test_listed_features_come_in_their_order_and_others_are_not_looked_at(table):
    text = "label,query,a,note,b\n1,7,1,red,2\n0,7,3,,4\n"
    assert table(text, features="a").feature_names == ("a",)
    data = table(text, features=("b", "a"))
    assert data.feature_names == ("b", "a")
    assert data.X.tolist() == [[2, 1], [4, 3]]
    with pytest.raises(ValueError, match=r"csv, line 2: the value 'red' of 'note' is not a number; turn it into"):
        table(text)


def test_numbers_are_rounded_correctly(table):
    rng = random.Random(3)

    def number():
        digits = "".join(rng.choices("0123456789", k=rng.randrange(1, 25)))
        point = rng.randrange(len(digits) + 1) if rng.random() < 0.7 else len(digits)
        exponent = rng.choice(["", f"e{rng.randrange(-320, 290)}", f"E+{rng.randrange(10)}"])
        return rng.choice(["", "-", "+"]) + digits[:point] + "." * (point < len(digits)) + digits[point:] + exponent

    texts = [text for text in (number() for _ in range(20_000)) if np.isfinite(float(text))]
    texts = [text for text in texts if not text.strip("+-").isdigit() or abs(int(text)) <= 2**53]
    rows = "".join(f"0,1,{text}\n" for text in texts)
    expected = np.array([float(text) for text in texts])
    assert np.array_equal(table("label,query,a\n" + rows).X[:, 0], expected)
    moderate = [text for text in texts if abs(float(text)) < 1e38]
    single = table("label,query,a\n" + "".join(f"0,1,{text}\n" for text in moderate), dtype=np.float32)
    assert single.X.dtype == np.float32
    assert np.array_equal(single.X[:, 0], np.array([float(text) for text in moderate]).astype(np.float32))


@pytest.mark.parametrize("written", MISSING)
def test_missing_values_need_a_rule(table, written):
    text = f"label,query,a,b\n1,7,1,2\n0,7,{written},4\n"
    data = table(text, missing=-1.5)
    assert data.X.tolist() == [[1, 2], [-1.5, 4]]
    assert data.n_missing.tolist() == [1, 0]
    assert data.missing == -1.5
    with pytest.raises(ValueError, match="line 3: the value of 'a' is missing; say what missing values become, by"):
        table(text)


REFUSED = [
    ("label,query,a\n1,7,2\n0,7\n", r"line 3: 2 fields, but the header names 3 columns"),
    ("label,query,a\n1,7,2,3\n", r"line 2: 4 fields, but the header names 3 columns"),
    ('label,query,a\n1,"x",2\n0,"y,7\n', r"not a CSV file: unexpected end of data"),
    ('label,query,a\n1,"x",2\n0,"y"z,7\n', r"not a CSV file: ',' expected after"),
    ("label,query,a\n1,7,0x10\n", r"line 2: the value '0x10' of 'a' is not a number; turn it into numbers, or leave"),
    ("label,query,a\n\n1,7,1\n0,7,1_000\n", r"line 4: the value '1_000' of 'a' is not a number"),
    (
        "label,query,a\nE,7,2\n",
        r"line 2: the label 'E' in .* not a number; give the label of each text, such as labels =",
    ),
    (b"PK\x03\x04", r"train\.csv is an archive or a compressed file; unpack it"),
    ("label,query,a\n1,7,1\n".encode("utf-16"), r"train\.csv is UTF-16 text; save it as UTF-8"),
    ("label,query,a\n1,7,inf\n", r"line 2: the value 'inf' of 'a' is not a number"),
    (
        "label,query,a\n1,7,9006999999999999\n1,7,-00009007199254740993\n",
        r"line 3: the value '-00009007199254740993' of 'a' is an integer beyond 2\^53; turn it into numbers, or leave",
    ),
    ("label,query,a\n1,7,1e999\n", r"X\[0, 0\] is inf \(row 0, feature 'a'\); a value must be finite"),
    ("label\tquery\ta\n1\t7\t1\n\t\n", r"line 3: 2 fields, but the header names 3 columns"),
    ("label;query;a\n1;7;1,5\n", r"line 2: the value '1,5' of 'a' is not a number"),
    ("label,query,a\n1.5,7,1\n", r"line 2: the label 1\.5 in the column 'label' is not an integer from 0"),
    ("label,query,a\n2147483648,7,1\n", r"line 2: the label 2\.14748e\+09 in the column 'label' is not"),
    ("label,query,a\n1,,1\n", r"line 2: no query id in the column 'query'; every row needs one"),
    ("label,query,a\n1,7,1\n1,8,1\n0,7,2\n", r"line 4: query 7 begins again; sort the rows by the column 'query'"),
    ("label,query,a,a\n1,7,1,2\n", r"two columns are called 'a'; give distinct names"),
    ("label,qid,a\n1,7,1\n", r"query=: unknown column 'query'; choose one of label, qid, a"),
    (",label,query,a\n0,1,7,2\n", r"the column '' is an index that pandas wrote, or numbers the rows"),
    ("label,query,a\n", r"the table has no row"),
    ("", r"the first line must be a header"),
    ('"label","query","a\r","b"\n1,7,2,3\n', r"the first line must be a header"),
    ("1,7,2.5\n0,7,1\n", r"the first line must be a header"),
    ("1;7;;NA\n0;7;1;2\n", r"the first line must be a header"),
    (b"label,query,a\n1,7\xff,1\n", r"not UTF-8 text"),
    (b"label,query,a\0\n1,7,1\n", r"line 1: a zero byte; save the file as UTF-8 text"),
    (b"label,query,a\n\xef\xbb\xbf1,7,1\n", r"line 2: the label '\\ufeff1' in the column 'label' is not a number"),
]


def test_a_table_beyond_the_limit_is_refused_while_its_rows_are_counted(table, monkeypatch):
    n_rows = 200_000
    content = gzip.compress(b"label,query,a,b\n" + b"1,7,0,0\n" * n_rows)
    assert len(content) < 10_000
    monkeypatch.setenv("MOERANK_MEMORY", str(n_rows * 32 * 0.9 / 2**30))
    with pytest.raises(ValueError, match=r"train\.csv\.gz: [\d,]+ rows of 2 features would take .* the limit is"):
        table(content, "train.csv.gz")
    monkeypatch.setenv("MOERANK_MEMORY", str(n_rows * 32 * 1.1 / 2**30))
    assert table(content, "train.csv.gz").n_documents == n_rows


def test_folds_have_the_columns_of_the_training_table(tmp_path):
    (tmp_path / "train.csv").write_text("label,query,a,b\n1,1,2,3\n")
    pd.DataFrame({"b": [4], "a": [5], "query": [2], "label": [0]}).to_parquet(tmp_path / "validation.parquet")
    (tmp_path / "test.csv.gz").write_bytes(gzip.compress(b"label,query,a,b\n1,3,,7\n"))
    train, vali, test = load_table_fold(tmp_path, label="label", query="query", missing=0.0, dtype=np.float32)
    assert [part.X.tolist() for part in (train, vali, test)] == [[[2, 3]], [[5, 4]], [[0, 7]]]
    assert {part.feature_names for part in (train, vali, test)} == {("a", "b")}
    assert {part.X.dtype.name for part in (train, vali, test)} == {"float32"}
    chosen = load_table_fold(tmp_path, label="label", query="query", features=["b"])
    assert [part.X.tolist() for part in chosen] == [[[3]], [[4]], [[7]]]
    (tmp_path / "test.csv.gz").write_bytes(gzip.compress(b"label,query,a,c\n1,3,6,7\n"))
    with pytest.raises(ValueError, match=r"test\.csv\.gz: features=: unknown column 'b'"):
        load_table_fold(tmp_path, label="label", query="query")
    (tmp_path / "test.csv.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"looked for test\.parquet \(also .* found train\.csv, validation\.p"):
        load_table_fold(tmp_path, label="label", query="query")
    with pytest.raises(FileNotFoundError, match=r"train\.csv is a file, not a folder"):
        load_table_fold(tmp_path / "train.csv", label="label", query="query")


def test_usual_names_are_guessed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Grade;x;Query_ID\n1;2;7\n")
    assert load_table(path).feature_names == ("x",)
    assert load_table(path, label="x").y.tolist() == [2]
    path.write_text("score,x,Query_ID\n")
    with pytest.raises(ValueError, match=r"no column has a usual name for the label; give label=, such as"):
        load_table(path)


@pytest.mark.parametrize("ending", ["csv", "parquet", "tsv"])
@pytest.mark.parametrize(
    ("column", "rule", "labels"),
    [
        (["I", "E", "S"], {"E": 3, "S": 2, "I": 0}, [0, 3, 2]),
        ([0.1, 0.25, 7.0], [0.25, 0.5, 0.75], [0, 1, 3]),
        ([-1.0, 0.5, 0.6], [0.0, 0.55], [0, 1, 2]),
        ([True, False, True], None, [1, 0, 1]),
        ([4, 5, 4], {"4": 0, "5": 1}, [0, 1, 0]),
    ],
)
def test_texts_limits_and_switches_become_labels(tmp_path, ending, column, rule, labels):
    frame = pd.DataFrame({"label": column, "query": [7, 7, 8], "a": [1.5, 2, 3], "b": [True, False, True]})
    path = tmp_path / f"t.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False, sep=",\t"[ending == "tsv"])
    data = load_table(path, labels=rule)
    assert (data.y.tolist(), data.X.tolist()) == (labels, [[1.5, 1], [2, 0], [3, 1]])


def test_values_stand_for_missing_ones(table):
    text = "label,query,a,b\n1,7,-999,1.79769313486e308\n0,7,2,4\n"
    data = table(text, missing=0.5, missing_values=[-999, 1.79769313486e308])
    assert (data.X.tolist(), data.n_missing.tolist(), data.missing_values[0]) == ([[0.5, 0.5], [2, 4]], [1, 1], -999)
    with pytest.raises(ValueError, match=r"csv: X\[0, 0\] is NaN \(row 0, feature 'a'\); say what missing"):
        table(text, missing_values=[-999])
    with pytest.raises(ValueError, match=r"missing_values\[0\] is nan; give a list of finite numbers"):
        table(text, missing=0, missing_values=[float("nan")])


def read_numpy(path, columns=None):
    """A reader that a package might add: one function from a path to columns."""
    stored = np.load(path)
    return pa.table({name: stored[name] for name in columns or stored.dtype.names})


@pytest.mark.parametrize("make", [lambda function: function, table_module.Reader.of])
def test_a_package_adds_a_format_by_a_function_or_a_reader(tmp_path, monkeypatch, make):
    monkeypatch.setattr(table_module, "plugins", {"moerank.readers": {"npy": make(read_numpy)}}.get)
    kinds = [("qid", "i8"), ("label", "i4"), ("a", "f8"), ("b", "f4")]
    rows = np.array([(7, 1, 0.5, 2.0), (7, 0, 0.25, 3.0)], kinds)
    for part in ("train", "vali", "test"):
        np.save(tmp_path / f"{part}.npy", rows)
    data = load_table(tmp_path / "train.npy", label="label", query="qid", features=["b", "a"])
    assert (data.X.tolist(), data.y.tolist(), data.qid.tolist()) == ([[2, 0.5], [3, 0.25]], [1, 0], [7, 7])
    assert load_table_fold(tmp_path, label="label", query="qid")[2].feature_names == ("a", "b")


NOTED = "query,label,price,id,use,click\nshoes,2,59.9,p1,3,2\nshoes,0,120,p2,3,1\nhats,1,1,p1,1,3\n"
GRADED = "label,query,a\nE,7,1\nS,7,2\n"
COLUMNS = {"document": "id", "query_weight": "use", "document_weight": "click"}


@pytest.mark.parametrize("name", ["train.csv", "train.parquet"])
def test_ids_and_weights_have_columns_of_their_own(tmp_path, name):
    path = tmp_path / name
    rows = pd.read_csv(io.StringIO(NOTED))
    (rows.to_csv if name.endswith("csv") else rows.to_parquet)(path, index=False)
    data = load_table(path, label="label", query="query", **COLUMNS)
    assert data.feature_names == ("price",)
    assert data.documents.tolist() == ["p1", "p2", "p1"]
    assert data.query_weights.tolist() == [1.5, 0.5]
    assert data.document_weights.tolist() == [1.0, 0.5, 1.5]


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
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_texts_of_any_type_are_labels(table, kind):
    for texts, rule in (["2", "0", "1"], None), (["E", "I", "C"], {"E": 2, "C": 1, "I": 0}):
        column = pa.array(texts).dictionary_encode() if pa.types.is_dictionary(kind) else pa.array(texts, kind)
        assert table({**PLAIN, "label": column}, labels=rule).y.tolist() == [2, 0, 1]
    with pytest.raises(ValueError, match=r"row 1: the label 'E' in .* not a number; give the label of each text"):
        table({**PLAIN, "label": column})


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array(["1", "2", "3"]), "string"),
        (pa.array(["1", "2", "3"]).dictionary_encode(), "dictionary<values=string, indices=int32, ordered=0>"),
        (pa.array([datetime.date(2020, 1, 1)] * 3), "date32[day]"),
        (pa.array([[1.0], [], [2.0]]), "list<"),
    ],
)
def test_columns_without_plain_numbers_are_refused_by_name(table, column, kind):
    with pytest.raises(ValueError) as error:
        table({**PLAIN, "b": column})
    assert f"the column 'b' holds {kind}" in str(error.value)
    assert "not plain numbers; turn it into numbers, or leave the column out" in str(error.value)
    assert table({**PLAIN, "b": column}, features=["a"]).feature_names == ("a",)


def test_missing_values_of_arrow_need_a_rule(table):
    for column in (pa.array([1, None, 3]), pa.array([1.0, None, 3.0]), pa.array([1.0, float("nan"), 3.0])):
        data = table({**PLAIN, "b": column}, missing=-2)
        assert data.X[:, 1].tolist() == [1.0, -2.0, 3.0]
        assert data.n_missing.tolist() == [0, 1]
        with pytest.raises(ValueError, match=r"parquet, row 2: the value of 'b' is missing; say what missing values"):
            table({**PLAIN, "b": column})


WRONG = [
    *((content, {}, sentence) for content, sentence in REFUSED),
    (TEXT, {"features": ["prise"]}, r"unknown column 'prise'; did you mean 'price'\?"),
    (TEXT, {"features": ["label"]}, "the column 'label' cannot be both label and features"),
    (TEXT, {"features": []}, "no feature besides 'label' and 'query'"),
    (TEXT, {"query": "label"}, "the column 'label' cannot be both label and query"),
    (TEXT, {"missing": "query-worse"}, r"did you mean 'query-worst'\?"),
    (TEXT, {"dtype": np.int64}, "dtype must be float32 or float64, not int64"),
    ("label,query,a\n1,7,1e39\n", {"dtype": np.float32}, r"X\[0, 0\] is inf \(row 0"),
    (NOTED.replace("p2,3,1", "p2,4,1"), COLUMNS, "line 3: another weight in the column 'use' than in the first row"),
    (NOTED.replace("p2,3,1", "p2,3,0"), COLUMNS, r"csv: document_weights\[1\] is 0; weights are positive"),
    (NOTED.replace("p2,3,1", "p2,3,"), COLUMNS, r"csv: document_weights\[1\] is nan; weights are positive"),
    (NOTED.replace("p2,3,1", "p2,,1"), COLUMNS, "csv, line 3: another weight in the column 'use' than"),
    (NOTED.replace("p2,3", ",3"), COLUMNS, "line 3: no document id in the column 'id'"),
    (NOTED, COLUMNS | {"document": "doc"}, "document=: unknown column 'doc'"),
    (NOTED, COLUMNS | {"document_weight": "use"}, "'use' cannot be both query_weight and document_weight"),
    (NOTED, COLUMNS | {"features": ["use"]}, "the column 'use' cannot be both query_weight and features"),
    (GRADED, {"labels": {"E": 3}}, "line 3: the label 'S' in the column 'label' is none of 'E'; add it to labels"),
    (GRADED, {"labels": [0.5]}, "line 2: the label 'E' in the column 'label' is not a number"),
    (GRADED, {"labels": [0.5, 0.5]}, r"labels is \[0.5, 0.5\]; give the label of each text, .*, or increasing limits"),
    (GRADED, {"labels": "E"}, "labels must be numbers"),
    (GRADED, {"labels": []}, r"labels is \[\]; give"),
    (GRADED, {"labels": {"E": -1}}, "labels of 'E' must be at least 0"),
    (PLAIN | {"a": [1.0, np.inf, 2.0]}, {}, r"X\[1, 0\] is inf \(row 1, feature 'a'\)"),
    (PLAIN | {"a": [1.0, 2.0, -1e39]}, {"dtype": np.float32}, r"X\[2, 0\] is -inf"),
    (
        PLAIN | {"a": [1, None, 2**63 - 1]},
        {},
        r"the column 'a' holds integers beyond 2\^53, such as 9223372036854775807",
    ),
    (
        PLAIN | {"rowid": [3, 1, 2]},
        {},
        r"the column 'rowid' is an index .* or numbers the rows, and no feature; exclude",
    ),
    (PLAIN | {"label": [1, None, 0]}, {}, r"row 2: the label in the column 'label' is missing"),
    (PLAIN | {"query": ["x", None, "y"]}, {}, r"row 2: no query id in the column 'query'"),
    (PLAIN | {"__index_level_0__": [1, 2, 3]}, {}, r"the column '__index_level_0__' is an index that pandas wrote"),
    (PLAIN | {"label": [], "query": [], "a": []}, {}, "not plain numbers|the table has no row"),
    (PLAIN | {"query": [1.0, 1.0, np.nan]}, {}, "row 3: the query id nan in the column 'query' is NaN, or a float"),
    (
        PLAIN | {"query": [1.0, 1.0, 2.0**53]},
        {},
        r"row 3: the query id 9\.0072e\+15 in the column 'query' is NaN, or a",
    ),
]


@pytest.mark.parametrize(("content", "options", "sentence"), WRONG)
def test_what_is_no_table_of_numbers_is_refused_by_place(table, tmp_path, content, options, sentence):
    for missing in (None, 0.0):
        with pytest.raises(ValueError, match=sentence) as error:
            table(content, **{"missing": missing} | options)
        assert options or str(error.value).startswith(f"{tmp_path}/train.")


def test_folders_and_missing_files_are_named(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"Is a directory: .*test_folders"):
        load_table(tmp_path, label="label", query="query")
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        load_table(tmp_path / "absent.csv", label="label", query="query")


def test_what_is_no_parquet_file_is_refused(tmp_path):
    path = tmp_path / "train.parquet"
    pq.write_table(pa.table(PLAIN), path)
    stored = path.read_bytes()
    for content in (b"", b"PAR1", b"label,query,a\n1,2,3\n", stored[:-1], stored[: len(stored) // 2]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"train\.parquet: not a Parquet file that can be read, or a damaged one"):
            load_table(path, label="label", query="query")
