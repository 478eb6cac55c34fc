"""moerank data ingest: its options, what it says, and its errors in one line."""

import json

import pandas as pd
import pytest
from helpers import logs
from helpers.logs import GOLDEN


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.jsonl").write_text(logs.plugin(GOLDEN))
    (tmp_path / "qrels.txt").write_text(logs.trec(GOLDEN))
    (tmp_path / "ctr.csv").write_text("query,docid,ctr\ntrail shoes,p7,0.9\ntrail shoes,p3,0.2\n")


def test_the_report_of_a_log(command, files, tmp_path):
    done = command("data", "ingest", "log.jsonl", "--judgments", "qrels.txt", "--out", "table.parquet")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "read 2 responses of elasticsearch (o19s): 5 documents, 3 features",
        "joined 4 of 4 judgments by query id; 1 document without a judgment was left out (--unjudged 0 keeps it)",
        "missing: title_bm25 1, stars 1 of 4; positions 1 to 3",
        "wrote table.parquet: 2 queries, 4 documents, labels 0 to 3",
        "next: moerank data describe table.parquet --missing query-min",
    ]
    again = command(*done.stdout.splitlines()[-1].removeprefix("next: moerank ").split())
    assert again.exit_code == 0
    assert again.stderr.startswith("label: 'label', as the file tells\nquery: 'qid', as the file tells\n")


def test_options_reach_the_table(command, files, tmp_path):
    arguments = ["--from", "opensearch", "--judgments", "ctr.csv", "--grade", "ctr", "--grades", "bins=.5"]
    arguments += ["--unjudged", "0", "--exclude", "stars", "--exclude", "age_days", "--missing-as-zero"]
    done = command("data", "ingest", "log.jsonl", *arguments, "--no-position", "--log", "main", "--out", "t.parquet")
    assert done.exit_code == 0, done.stderr
    frame = pd.read_parquet(tmp_path / "t.parquet")
    assert frame.columns.tolist() == ["qid", "label", "query", "doc", "position", "title_bm25"]
    assert frame["label"].tolist() == [0, 1, 0, 0, 0]
    assert frame["title_bm25"].tolist() == [2.5, 6.25, 0, 8, 0.75]
    assert frame["position"].isna().all()
    assert "the grades are 'ctr': clicks favour documents that stood above others" in done.stdout


def test_profiles_in_a_log_become_costs(command, files, tmp_path):
    log = tmp_path / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line, slower in zip(lines, (1, 3), strict=True):
        children = [{"type": "TermQuery", "time_in_nanos": time * slower} for time in (900_000, 250_000, 450_000)]
        ranker = {"type": "RankerQuery", "time_in_nanos": 2_000_000 * slower, "children": children}
        line["response"]["profile"] = {"shards": [{"searches": [{"query": [ranker]}]}]}
    log.write_text("\n".join(map(json.dumps, lines)))
    arguments = ["data", "ingest", "log.jsonl", "--judgments", "qrels.txt", "--out", "table.parquet"]
    done = command(*arguments, "--costs-out", "features.csv")
    assert done.exit_code == 0, done.stderr
    assert "wrote features.csv: costs of 3 features in µs a query, by the profiles of 2 queries" in done.stdout
    assert pd.read_csv(tmp_path / "features.csv")["cost"].tolist() == [1800, 500, 900]
    (tmp_path / "table.parquet").unlink()
    assert "features.csv exists; choose another file" in command(*arguments, "--costs-out", "features.csv").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["log.jsonl", "--out", "t.csv"], "error: log.jsonl, line 1: the log has no labels; name judgments by --judg"),
        (["no.jsonl", "--out", "t.csv"], "error: no.jsonl: No such file or directory"),
        (["log.jsonl", "--judgments", "qrels.txt", "--out", "t.csv", "--join", "text"], "join must be one of"),
        (["log.jsonl", "--judgments", "qrels.txt", "--out", "t.csv", "--repeats", "all"], "repeats must be one of"),
        (["log.jsonl", "--judgments", "ctr.csv", "--out", "t.csv"], "name it by --grade"),
    ],
)
def test_errors_are_one_line(command, files, arguments, message, tmp_path):
    done = command("data", "ingest", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "t.csv").exists()
