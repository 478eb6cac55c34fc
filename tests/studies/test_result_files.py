import csv
import errno
import os

import pytest
from helpers.further_objective import cost, with_cost

from moerank.files import replace_file
from moerank.rankers.model import Model
from moerank.studies.result import write_result


def test_the_files_have_the_front_and_the_chosen_model(tiny_result, tmp_path):
    write_result(tiny_result, tmp_path)
    assert Model.from_json((tmp_path / "model.json").read_text()) == tiny_result.model(tiny_result.best)
    with (tmp_path / "front.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(tiny_result.front)
    for row, member in zip(rows, tiny_result.front, strict=True):
        assert int(row["n_features"]) == len(row["features"].split("; ")) == len(member.features)
        assert float(row["validation MAP"]) == member.scores["validation"]["MAP"]
    assert [int(row["chosen"]) for row in rows].index(1) == tiny_result.chosen


def test_front_table_has_a_column_for_each_further_objective(tiny_result, tmp_path):
    write_result(tiny_result, tmp_path)
    plain = (tmp_path / "front.csv").read_text().splitlines()
    write_result(with_cost(tiny_result), tmp_path)
    with (tmp_path / "front.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head[2] == "cost"
    for row, member in zip(rows, tiny_result.front, strict=True):
        assert float(row[2]) == cost(member.features)
    assert [",".join([*row[:2], *row[3:]]) for row in (head, *rows)] == plain


def test_a_spreadsheet_runs_no_name_of_the_front_table(tiny_result, tmp_path):
    hostile = [f"{sign}cmd|' /C calc'!A{k}" for k, sign in enumerate("=+-@\ta", 1)]
    names = (hostile * len(tiny_result.feature_names))[: len(tiny_result.feature_names)]
    names = [f"{name}{k}" for k, name in enumerate(names)]
    write_result(tiny_result.model_copy(update={"feature_names": names}), tmp_path)
    with (tmp_path / "front.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    shown = {name for row in rows for name in row["features"].split("; ")}
    members = {name for member in tiny_result.front for name in (names[feature] for feature in member.features)}
    assert shown == {name if name[0] == "a" else f"'{name}" for name in members}
    assert {name[1] for name in shown if name[0] == "'"} >= set("=+")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    replace_file(path, b"old")

    def fail(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"cannot write .*file: No space left on device; make room, or choose another"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
