"""Tables that lie by columns hold the same numbers as others, and lead to the same."""

from copy import copy

import numpy as np
import pandas as pd
import pytest

from moerank.data import RankingData, fit_scaling, inputs, load_table, query_level_norm
from moerank.data.folds import split_fold
from moerank.metrics import NDCG
from moerank.rankers import RankRLS, RankSVM


@pytest.fixture
def small(monkeypatch):
    """Take every table for a large one."""
    monkeypatch.setattr(inputs, "BY_COLUMNS", 1)


def drawn(missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(700, 5)) + rng.normal(size=5)) * [1.0, 1e3, 0.1, 7.0, 1e-3]
    X[rng.random(X.shape) < missing] = np.nan
    return X, rng.integers(0, 3, 700), np.sort(rng.integers(0, 40, 700))


def frozen(X, order):
    X = np.array(X, order=order)
    X.setflags(write=False)
    return X


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("missing", [None, 0.5, "query-min", "query-mean", "query-worst"])
def test_data_by_columns_are_filled_and_scaled_to_the_same_bits(missing, dtype):
    X, y, qid = drawn(0.2 if missing else 0.0)
    by_rows, by_columns = (RankingData(frozen(X.astype(dtype), order), y, qid, missing=missing) for order in "CF")
    assert by_columns.X.flags.f_contiguous and by_columns.columns.base is not None
    np.testing.assert_array_equal(by_columns.X, by_rows.X)
    np.testing.assert_array_equal(by_columns.X64, by_rows.X64)
    for kind in ("minmax", "standard"):
        scaling = fit_scaling(by_rows, kind)
        assert fit_scaling(by_columns, kind) == scaling
        np.testing.assert_array_equal(scaling.apply(by_columns).X, scaling.apply(by_rows).X)
    np.testing.assert_array_equal(query_level_norm(by_columns).X, query_level_norm(by_rows).X)
    for part, same in zip(split_fold(by_columns, 2), split_fold(by_rows, 2), strict=True):
        assert part.X.flags.f_contiguous
        np.testing.assert_array_equal(part.X, same.X)
    rows = np.array([3, 4, 10])
    np.testing.assert_array_equal(by_columns.with_rows(rows).X, by_rows.with_rows(rows).X)


@pytest.mark.parametrize("ranker", [RankRLS(), RankRLS(loss="query"), RankSVM()], ids=repr)
def test_rankers_trained_on_columns_have_the_same_bits(ranker):
    X, y, qid = drawn()
    by_rows, by_columns = (query_level_norm(RankingData(frozen(X, order), y, qid)) for order in "CF")
    weights, same = ranker.fit(by_rows).coef_.copy(), ranker.fit(by_columns).coef_
    np.testing.assert_array_equal(same, weights)
    np.testing.assert_array_equal(ranker.predict(by_columns), ranker.predict(by_rows))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("frame", [False, True])
def test_a_large_table_is_copied_once_in_the_order_of_kernels(small, order, frame):
    X = np.array(drawn(missing=0.1)[0], np.float32, order=order)
    data = RankingData(pd.DataFrame(X) if frame else X, *drawn()[1:], missing=0.5)
    np.testing.assert_array_equal(data.X, np.where(np.isnan(X), np.float32(0.5), X))
    assert data.X.dtype == np.float32
    assert np.shares_memory(data.columns, data.X)
    assert not np.shares_memory(data.X, X)


@pytest.mark.parametrize(("ending", "writing"), [("parquet", {"row_group_size": 130}), ("csv", {})])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tables_come_block_by_block_and_lie_by_columns(tmp_path, monkeypatch, small, ending, writing, dtype):
    X, y, qid = drawn()
    X = np.hstack([X, X[:, ::-1] + 1.0, X * 2.0, X + 3.0])  # more features than are read together
    path = tmp_path / f"train.{ending}"
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(20)])
    queries = [f"q{query}" for query in qid]
    getattr(frame.assign(label=y, query=queries), f"to_{ending}")(path, index=False, **writing)
    monkeypatch.setattr("moerank.data.read.CELLS_AT_A_TIME", 1000)
    data = load_table(path, label="label", query="query", dtype=dtype)
    assert (data.X.dtype, data.X.flags.f_contiguous, data.qid.tolist()) == (dtype, True, queries)
    np.testing.assert_array_equal(data.X, X.astype(dtype))
    np.testing.assert_array_equal(data.y, y)


def test_copies_share_what_depends_on_labels_alone():
    data, metric = RankingData(np.eye(6), [0, 1, 2, 0, 1, 0], [1, 1, 1, 2, 2, 2]), NDCG(10)
    runs, plan = data.label_runs, metric._plan_of(data)
    for part in (copy(data), data.with_features(np.arange(6) < 2)):
        assert part.label_runs is runs and metric._plan_of(part) is plan
        assert part._memory == {}
    assert metric._plan_of(data.with_rows(np.arange(3)))[0].tolist() == [0]
