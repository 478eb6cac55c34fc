"""moerank data ingest: its options, what it says, and its errors in one line."""

import pandas as pd
import pytest
from helpers import logs
from helpers.logs import GOLDEN


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.jsonl").write_text(logs.plugin(GOLDEN))
    (tmp_path / "qrels.txt").write_text(logs.trec(GOLDEN))
    (tmp_path / "stars.csv").write_text("query,sku,stars,rating\ntrail shoes,p7,3,9\ntrail shoes,p3,1,9\n")


def test_the_report_of_a_log(command, files, tmp_path):
    done = command("data", "ingest", "log.jsonl", "--judgments", "qrels.txt", "--out", "table.parquet")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "read 2 responses of Elasticsearch or OpenSearch: 5 documents, 3 features",
        "joined 4 of 4 judgments by query id",
        "documents without a judgment: 1, left out (--unjudged 0 keeps them)",
        "missing values: 2",
        "wrote table.parquet: 2 queries, 4 documents, labels 0 to 3",
        "next: moerank data describe table.parquet",
    ]
    again = command(*done.stdout.splitlines()[-1].removeprefix("next: moerank ").split())
    assert again.exit_code == 0
    assert again.stderr.startswith("label: 'label', as recorded in the file\nquery: 'qid', as recorded in the file\n")


def test_options_reach_the_table(command, files, tmp_path):
    arguments = ["--judgments", "stars.csv", "--columns", "query,sku,stars", "--unjudged", "0", "--log", "main"]
    arguments += ["--exclude", "stars", "--exclude", "age_days"]
    done = command("data", "ingest", "log.jsonl", *arguments, "--out", "t.parquet")
    assert done.exit_code == 0, done.stderr
    frame = pd.read_parquet(tmp_path / "t.parquet")
    assert frame.columns.tolist() == ["qid", "label", "query", "doc", "position", "title_bm25"]
    assert frame["label"].tolist() == [3, 1, 0, 0, 0]
