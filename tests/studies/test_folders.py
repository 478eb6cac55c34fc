"""Folders of runs: what an interrupted run has left there goes."""

from moerank.studies.folders import FoldRuns
from moerank.studies.solver import Solver


def test_what_an_interrupted_run_left_is_removed(tiny_problem, tmp_path):
    journals = [tmp_path / "search.journal.ensemble", tmp_path / "search.journal.feature_selection"]
    for journal in journals:
        journal.write_bytes(b"{}")
    said = []
    runs = FoldRuns(tiny_problem, Solver(name="single"), {1: tmp_path})
    assert len(list(runs.run(say=said.append))) == 1
    assert not any(journal.exists() for journal in journals)
    assert len(said) == 2 and "starting anew" in said[0]
