"""moerank export."""

import json
import os

import numpy as np
import pytest
from helpers.changes import replace
from helpers.served_models import scores, stumps
from helpers.serving_solr import SolrModel

from moerank.data import PER_QUERY
from moerank.exports.formats import FORMATS
from moerank.runs.result import write_result


@pytest.fixture
def run(tiny_result, tmp_path):
    """The folder of a finished run."""
    (tmp_path / "run").mkdir()
    write_result(tiny_result, tmp_path / "run")
    return tmp_path / "run"


def scored(folder, X):
    return scores(SolrModel((folder / "solr-features.json").read_text(), (folder / "solr.json").read_text()), X)


def test_the_chosen_member_is_exported_beside_the_result(command, run, tiny_result):
    outcome = command("export", "run", "--format", "solr")
    assert outcome.exit_code == 0
    place, best = tiny_result.chosen, tiny_result.best
    assert outcome.stderr == (
        f"wrote {os.path.join('run', 'solr-features.json')} and {os.path.join('run', 'solr.json')}: member {place + 1} "
        f"of {len(tiny_result.front)}, the chosen one, of mofsrank on tiny\n"
    )
    assert "Upload it to Solr" in outcome.stdout
    X = np.random.default_rng(0).random((20, len(best.features))).astype(np.float32)
    np.testing.assert_allclose(scored(run, X), X.astype(float) @ best.weights, rtol=1e-4, atol=1e-6)


def test_another_member_goes_where_it_is_asked_for(command, run, tiny_result, tmp_path):
    (tmp_path / "features.toml").write_text('["relevant 1"]\nname = "bm25"\n', encoding="utf-8")
    words = ("--format", "solr", "--out", "new/solr.json", "--name", "shop", "--features", "features.toml")
    for number, member in enumerate(tiny_result.front, start=1):
        outcome = command("export", "run", "--member", number, *words)
        assert outcome.exit_code == 0
        assert f"member {number} of" in outcome.stderr
        model = json.loads((tmp_path / "new" / "solr.json").read_text())
        assert model["name"] == "shop"
        names = [feature["name"] for feature in model["features"]]
        assert names == [
            "bm25" if name == "relevant 1" else name.replace(" ", "_") for name in tiny_result.names(member.features)
        ]
        assert list(model["params"]["weights"].values()) == pytest.approx(member.weights)
        for file in (tmp_path / "new").iterdir():
            file.unlink()


def test_a_member_whose_trees_are_not_stored_is_refused_with_a_way_out(command, tiny_result, tmp_path):
    front = [replace(member, weights=None) for member in tiny_result.front]
    chosen = len(front) - 2
    forest = replace(stumps([0.5]).trees, columns=front[chosen].features[:1])
    front[chosen] = replace(front[chosen], trees=forest)
    (tmp_path / "run").mkdir()
    write_result(replace(tiny_result, front=front, chosen=chosen), tmp_path / "run")
    fault = "a run stores the trees of the chosen member only; "
    python = "fit the solver in Python, and call mr.export(solver, 'solr', member={})"
    refused = command("export", "run", "--format", "solr", "--member", 1).stderr
    again = f"run again with max_features = {len(front[0].features)} in [features], or "
    assert refused == f"error: --member 1: {fault}{again}{python.format(0)}\n"
    refused = command("export", "run", "--format", "solr", "--member", len(front)).stderr  # no limit makes one larger
    assert refused == f"error: --member {len(front)}: {fault}{python.format(len(front) - 1)}\n"
    assert command("export", "run", "--format", "solr", "--member", chosen + 1).exit_code == 0


def test_a_cell_of_a_study_is_exported_to_the_current_folder(command, tiny_study, tmp_path):
    cells = sorted((tiny_study.out / "cells").iterdir())
    outcome = command("export", cells[0], "--format", "solr")
    assert outcome.exit_code == 0
    assert sorted(os.listdir(tmp_path)) == ["solr-features.json", "solr.json"]
    assert sorted((tiny_study.out / "cells").iterdir()) == cells
    outcome = command("export", tiny_study.out, "--format", "solr")
    assert outcome.exit_code == 2
    assert f"holds several runs; name one of them, such as {cells[0]}" in outcome.stderr


def test_what_cannot_be_exported_is_refused_in_a_sentence(command, run, tiny_result, tmp_path):
    (tmp_path / "folds" / "fold1").mkdir(parents=True)
    (tmp_path / "folds" / "fold1" / "result.json").write_text("{}")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "solr.json").write_text("mine")
    (tmp_path / "damaged.json").write_text('{"format": 4}')
    (tmp_path / "query").mkdir()
    write_result(replace(tiny_result, scaling=PER_QUERY), tmp_path / "query")
    n_members = len(tiny_result.front)
    there = sorted(tmp_path.rglob("*"))
    for words, message in [
        (("run", "--format", "sorl"), "did you mean 'solr'"),
        (("run", "--format", "solr", "--member", n_members + 1), f"the front has {n_members} members, see front.csv"),
        (("run", "--format", "solr", "--name", "A"), "name must have lower-case letters"),
        (("run", "--format", "solr", "--features", "gone.toml"), "gone.toml"),
        (("run", "--format", "solr", "--out", "other/solr.json"), "exists with other content"),
        (("nowhere", "--format", "solr"), "nowhere"),
        (("other", "--format", "solr"), "other holds no finished run; moerank run makes one"),
        (("query", "--format", "solr"), 'train on raw values with normalize = "minmax" or "standard"'),
        (("folds", "--format", "solr"), f"several runs; name one of them, such as {os.path.join('folds', 'fold1')}"),
        (("damaged.json", "--format", "solr"), "damaged.json: not written by this version of moerank"),
    ]:
        outcome = command("export", *words)
        assert outcome.exit_code == 2
        assert message in outcome.stderr
        assert outcome.stderr.count("\n") == 1
        assert outcome.stdout == ""
    assert sorted(tmp_path.rglob("*")) == there


FILES = {
    "solr": ["solr-features.json", "solr.json"],
    "elasticsearch": ["elasticsearch-features.json", "elasticsearch.json"],
    "opensearch": ["opensearch-features.json", "opensearch.json"],
    "vespa": ["shop.profile"],
    "onnx": ["ranker.onnx"],
    "python": ["score.py"],
    "json": ["ranker.json"],
}
"""The files of the package's own formats. A format that is added names its files in its own test."""


@pytest.mark.parametrize("format", sorted(FILES.keys() | FORMATS.keys()))
def test_every_format_writes_its_files_and_says_what_comes_next(command, run, tmp_path, format):
    if format == "onnx":
        pytest.importorskip("onnx")
    there = set(run.iterdir())
    outcome = command("export", "run", "--format", format, "--name", "shop")
    assert outcome.exit_code == 0
    written = sorted(path.name for path in set(run.iterdir()) - there)
    assert written == FILES.get(format, written) != []
    assert "Check that" in outcome.stdout
    assert written[-1] in outcome.stdout and written[-1] in outcome.stderr
    content = {path: path.read_bytes() for path in run.iterdir()}
    again = command("export", "run", "--format", format, "--name", "shop")
    assert (again.exit_code, again.stdout) == (0, outcome.stdout)
    assert {path: path.read_bytes() for path in run.iterdir()} == content
