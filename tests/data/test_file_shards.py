"""Shards of files are, one after the other, the file."""

import gzip

import numpy as np
import pandas as pd
import pytest

from moerank.data import load_letor, load_table, load_web_fold
from moerank.data.embedded import web_shard
from moerank.data.read.letor import letor_shard, widened
from moerank.data.read.table import table_shard


def assert_whole(shards, whole):
    for name in ("X", "y", "qid"):
        np.testing.assert_array_equal(np.concatenate([getattr(shard, name) for shard in shards]), getattr(whole, name))


def letor_text(rng, lengths):
    lines = ["# a comment"]
    for query, length in enumerate(lengths):
        for _ in range(length):
            values = " ".join(f"{feature}:{rng.random():.{rng.integers(1, 9)}f}" for feature in (1, 2, 3))
            lines.append(f"{rng.integers(0, 3)} qid:{query + 5} {values} #docid = qid:9")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(5))
def test_letor_files_are_cut_between_queries(tmp_path, monkeypatch, seed):
    monkeypatch.setattr("moerank.data.read.letor.BYTES_BEFORE_CUT", 200)
    rng = np.random.default_rng(seed)
    path = tmp_path / "train.txt"
    path.write_text(letor_text(rng, rng.integers(1, 12, 40)))
    whole = load_letor(path, cache=False)
    for n_shards in (1, 2, 3, 7):
        shards = [letor_shard(path, number, n_shards) for number in range(n_shards)]
        assert_whole(shards, whole)
        assert len({query for shard in shards for query in set(shard.qid.tolist())}) == whole.n_queries


def test_a_query_that_begins_at_the_byte_of_a_cut_is_the_first_of_its_shard(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("".join(f"1 qid:{query} 1:0.5\n0 qid:{query} 1:0.2\n" for query in range(1, 5)))
    assert [set(letor_shard(path, number, 4).qid.tolist()) for number in range(4)] == [{1}, {2}, {3}, {4}]


def test_other_letor_files_are_cut_after_they_are_read(tmp_path):
    text = letor_text(np.random.default_rng(0), [3, 4, 5, 2])
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert_whole([letor_shard(path, number, 2) for number in range(2)], load_letor(path, cache=False))


def test_a_shard_without_a_query_is_refused(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("1 qid:1 1:0.5\n" * 50)
    with pytest.raises(ValueError, match="shard 2 of 3 would have no query; take fewer shards"):
        letor_shard(path, 1, 3)


def test_features_that_a_shard_does_not_list_are_zero(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("1 qid:1 1:0.5\n0 qid:1 2:NULL\n1 qid:2 3:0.5\n0 qid:2 1:1\n")
    whole = load_letor(path, cache=False, missing=7.0)
    shards = [widened(letor_shard(path, number, 2, missing=7.0), 3) for number in range(2)]
    assert_whole(shards, whole)
    assert sum(shard.n_missing for shard in shards).tolist() == whole.n_missing.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(np.concatenate([shard.is_missing for shard in shards]), whole.is_missing)


@pytest.mark.parametrize("group", [7, 40, 1000])
def test_parquet_files_are_cut_between_queries(tmp_path, group):
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(25), rng.integers(1, 9, 25))
    frame = pd.DataFrame({"q": qid, "a": rng.random(len(qid)), "l": rng.integers(0, 3, len(qid)), "b": 1.5})
    path = tmp_path / "train.parquet"
    frame.to_parquet(path, row_group_size=group)
    reading = {"label": "l", "query": "q", "dtype": np.float32}
    shards = [table_shard(path, number, 4, **reading) for number in range(4)]
    assert_whole(shards, load_table(path, **reading))
    assert [shard.feature_names for shard in shards] == [("a", "b")] * 4


def test_rows_of_a_shard_are_counted_from_the_beginning_of_the_file(tmp_path):
    frame = pd.DataFrame({"q": [1, 1, 2, 2], "l": [0, 1, 0, 1], "a": [1.0, 2.0, 3.0, np.inf]})
    path = tmp_path / "train.parquet"
    frame.to_parquet(path)
    assert table_shard(path, 0, 2, label="l", query="q").n_documents == 2
    with pytest.raises(ValueError, match="row 4: the value inf of 'a' is not finite"):
        table_shard(path, 1, 2, label="l", query="q")


def test_shards_of_the_web_are_made_without_the_rest():
    train = load_web_fold(2, n_queries=70)[0]
    assert_whole([web_shard(2, number, 3, n_queries=70) for number in range(3)], train)
