"""Folders of runs: what an interrupted run has left there goes, also where another process still reads it."""

from pathlib import Path

import pytest

from moerank import systems
from moerank.studies.folders import FoldRuns
from moerank.studies.solver import Solver


@pytest.mark.parametrize("windows", [False, True])
def test_what_an_interrupted_run_left_is_removed(windows, tiny_problem, tmp_path, monkeypatch):
    """On Windows it cannot be for as long as another process has it open, a virus scanner for one."""
    journals = [tmp_path / "search.journal.ensemble", tmp_path / "search.journal.feature_selection"]
    for journal in journals:
        journal.write_bytes(b"{}")
    refused, unlink = [], Path.unlink

    def held(path, missing_ok=False):
        if windows and path in journals and refused.count(path) < 2:
            refused.append(path)
            raise PermissionError(13, "the process cannot access the file")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", held)
    if windows:
        monkeypatch.setattr(systems, "fcntl", None)
    said = []
    runs = FoldRuns(tiny_problem, Solver(name="single"), {1: tmp_path})
    assert len(list(runs.run(say=said.append))) == 1
    assert not any(journal.exists() for journal in journals)
    assert len(said) == 2 and "starting anew" in said[0]
    assert len(refused) == 4 * windows
