import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from moerank.data import make_planted
from moerank.exports.names import read_features

README = Path(__file__).resolve().parents[1] / "README.md"
BUDGET = "".join(
    f"[{stage}]\npopulation = 8\ngenerations = 3\n" for stage in ("instance_selection", "feature_selection", "ensemble")
)
"""Put after every problem file, so that its searches take no time."""


@pytest.fixture
def own_data(tmp_path):
    """What somebody has who follows the section on own data: a table, and two folds of LETOR files."""
    data = make_planted(n_queries=30, n_documents=10, n_relevant=2, n_redundant=1, n_noise=2).data
    frame = pd.DataFrame(data.X, columns=["price", "stars", "age", "clicks", "stock"]).round(4)
    frame = frame.assign(session=[f"s{query}" for query in data.qid], bought=data.y)
    frame.loc[np.arange(len(frame)) % 7 == 0, "stars"] = np.nan
    frame.to_csv(tmp_path / "shop.csv", index=False)
    for fold, beginning in ((1, 0), (2, 10)):
        folder = tmp_path / "my_data" / f"Fold{fold}"
        folder.mkdir(parents=True)
        for part, query in zip(("train", "vali", "test"), (beginning, 10, 20), strict=True):
            rows = range(query * 10, query * 10 + 100)
            lines = [
                f"{data.y[row]} qid:{data.qid[row]} " + " ".join(f"{f}:{v}" for f, v in enumerate(data.X[row], start=1))
                for row in rows
            ]
            (folder / f"{part}.txt").write_text("\n".join(lines))


@pytest.mark.usefixtures("undrawn")
def test_own_data_and_their_export_work_as_they_are_typed(command, own_data, tmp_path, monkeypatch):
    monkeypatch.setenv("MOERANK_CACHE", "off")
    text = README.read_text(encoding="utf-8")
    section = text[text.index("## Your own data") : text.index("## Your own backend")]
    done = []
    for kind, block in re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL):
        if kind == "toml":
            name = block.split()[1]
            (tmp_path / name).write_text(block + BUDGET * (name != "features.toml"))
        for line in block.splitlines() if kind == "sh" else ():
            name, *words = shlex.split(line)
            assert name == "moerank"
            outcome = command(*words)
            assert outcome.exit_code == 0, (line, outcome.stderr)
            done.append((words[0], outcome.stdout))
    assert [name for name, _ in done] == ["data", "run", "data", "run", "run", "export", "export"]
    assert ["missing", "values", "43"] in [line.split() for line in done[0][1].splitlines()]
    assert (tmp_path / "results" / "shop-fold1-seed0" / "result.json").is_file()
    assert (tmp_path / "results" / "my_problem-seed0" / "fold2" / "result.json").is_file()
    assert (tmp_path / "results" / "served" / "solr-features.json").is_file()
    assert (tmp_path / "ranker.onnx").is_file()
    told = read_features(tmp_path / "features.toml")["BM25 of the title"]
    assert (told.name, told.vespa, told.solr.class_) == ("bm25_title", "bm25(title)", "SolrFeature")
    assert told.elasticsearch.template == {"match": {"title": "{{q}}"}}
