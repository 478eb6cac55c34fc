"""Large tables are kept as they were read."""

import numpy as np
import pytest

from moerank.data import load_table
from moerank.data.read import csv
from moerank.data.read import table as tables
from moerank.data.read.columns import Table

TEXT = "query,label,price,rating\nshoes,2,59.9,4.5\nshoes,0,120,\nhats,1,-1e-3,.5\n"


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "LARGE", 0)
    path = tmp_path / "train.csv"
    path.write_text(TEXT)
    return path


def load(path, **options):
    return load_table(path, **{"label": "label", "query": "query", "missing": 7.0, **options})


def same(a, b):
    np.testing.assert_array_equal(a.X, b.X)
    assert (a.y.tolist(), a.qid.tolist(), a.given_names) == (b.y.tolist(), b.qid.tolist(), b.given_names)
    assert (a.X.dtype, a.n_missing.tolist()) == (b.X.dtype, b.n_missing.tolist())


@pytest.mark.parametrize("options", [{}, {"dtype": np.float32}, {"features": ["rating"]}])
def test_the_second_time_nothing_is_parsed(path, options, monkeypatch):
    once = load(path, **options)

    def read_table(*_, **__):
        pytest.fail("the file was parsed again")

    monkeypatch.setattr(csv, "read_table", read_table)
    same(load(path, **options), once)


def test_another_file_other_options_and_a_damaged_entry_are_read(path, cache):
    load(path)
    path.write_text(TEXT.replace("59.9", "60"))
    assert load(path).X[0, 0] == 60
    assert load(path, features=["rating"]).X.tolist() == [[4.5], [7.0], [0.5]]
    with pytest.raises(ValueError, match="line 3"):
        load(path, missing=None)
    for entry in cache.glob("*/values.npy"):
        entry.write_bytes(entry.read_bytes()[:-1])
    assert load(path).X[0, 0] == 60


def test_small_files_and_those_that_are_not_to_be_kept_leave_nothing(path, cache, monkeypatch):
    load(path, cache=False)
    monkeypatch.setattr(tables, "LARGE", 2**26)
    load(path)
    assert not list(cache.iterdir())


def test_a_table_by_columns_comes_back_by_columns():
    X = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    table = Table(X, np.array([0, 1, 2]), np.array(["a", "a", "b"]), ("x\0", "y"))
    again = Table.from_arrays(table.as_arrays())
    np.testing.assert_array_equal(again.X, X)
    assert again.X.flags.f_contiguous
    assert again.names == ("x\0", "y")
    with pytest.raises(ValueError, match="do not fit together"):
        Table.from_arrays({**table.as_arrays(), "y": np.array([0, 1])})
