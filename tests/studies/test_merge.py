"""Studies that become one, and studies that must not."""

import json
import shutil

import pytest
from helpers.study_files import contents

from moerank.studies.study import Study, merge_studies, read_results

SOLVERS = ["rankrls", "ranksvm-primal"]


@pytest.fixture(scope="module")
def halves(tiny_problem_file, tmp_path_factory):
    """A study of two solvers, and the same in two folders with a cell that both have."""
    folder = tmp_path_factory.mktemp("halves")
    Study(tiny_problem_file, SOLVERS, folder / "whole", folds=[1, 2]).run()
    Study(tiny_problem_file, SOLVERS[0], folder / "first", folds=[1, 2]).run()
    Study(tiny_problem_file, SOLVERS, folder / "second", folds=[1]).run()
    Study(tiny_problem_file, SOLVERS[1], folder / "third", folds=[2]).run()
    return folder


@pytest.fixture
def copies(halves, tmp_path):
    return shutil.copytree(halves, tmp_path / "copies")


def cells(folder):
    return {name: text for name, text in contents(folder).items() if name.startswith("cells")}


def test_the_union_is_what_one_study_would_have_been(halves, tmp_path):
    merged = merge_studies([halves / "first", halves / "second", halves / "third"], tmp_path / "both")
    assert cells(tmp_path / "both") == cells(halves / "whole")
    whole = Study.load(halves / "whole")
    assert {cell.key for cell in merged.cells()} == {cell.key for cell in whole.cells()}
    columns = [name for name in whole.frame() if "seconds" not in name]
    order = ["solver", "fold"]
    one, other = (study.frame()[columns].sort_values(order, ignore_index=True) for study in (merged, whole))
    assert one.equals(other)
    assert set(merged.states().values()) == {"finished"}


def test_a_study_can_be_extended_and_nothing_of_it_is_replaced(copies):
    before = {path: path.read_bytes() for path in (copies / "first" / "cells").iterdir()}
    merge_studies([copies / "first", copies / "second", copies / "third"], copies / "first")
    assert cells(copies / "first") == cells(copies / "whole")
    assert {path: path.read_bytes() for path in before} == before
    assert len(merge_studies([copies / "first", copies / "third"], copies / "first").results()) == 4


def test_other_settings_and_other_solvers_of_one_name_are_refused(copies, tiny_problem_file):
    from moerank.rankers import RankRLS, RankSVM

    Study(tiny_problem_file, "rankrls", copies / "map", folds=[1], settings={"metric.name": "MAP"}).run()
    with pytest.raises(ValueError, match="holds another problem tiny, with other code or settings"):
        merge_studies([copies / "first", copies / "map"], copies / "both")
    for name, ranker in (("a", RankRLS()), ("b", RankSVM())):
        Study(tiny_problem_file, {"mine": ranker}, copies / name, folds=[1]).run()
    with pytest.raises(ValueError, match="holds another solver mine"):
        merge_studies([copies / "a", copies / "b"], copies / "both")
    assert not (copies / "both").exists()


def test_failures_come_along_where_nobody_has_succeeded(copies):
    first, third = (Study.load(copies / name) for name in ("first", "third"))
    for study, cell in ((first, first.cells()[0]), (third, third.cells()[0])):
        (study.out / "cells" / f"{cell.key}.json").unlink()
        failure = {"cell": cell.label, "error": "out of luck", "traceback": ""}
        (study.out / "failures" / f"{cell.key}.json").write_text(json.dumps(failure))
    merged = merge_studies([first.out, copies / "second", third.out], copies / "both")
    assert sorted(merged.states().values()) == ["failed", "finished", "finished", "finished"]
    assert [cell.label for cell in merged.failures()] == ["tiny, fold 2, ranksvm-primal"]


def test_folders_that_are_no_studies_are_refused(copies, tmp_path):
    with pytest.raises(ValueError, match="holds no study"):
        merge_studies([copies / "first", tmp_path / "nothing"], tmp_path / "both")
    with pytest.raises(ValueError, match="name at least two studies"):
        merge_studies([copies / "first"], tmp_path / "both")


def test_the_command_says_what_there_is(copies, command):
    outcome = command("merge", copies / "first", copies / "second", "--out", copies / "both")
    assert outcome.stdout == f"3 of 3 cells are finished, in {copies / 'both'}\n"
    assert command("merge", copies / "first", "--out", copies / "both").exit_code == 2


def test_results_are_read_as_one_table(copies, command, undrawn):
    frame = read_results(copies / "whole")
    assert len(frame) == 4
    assert set(frame["solver"]) == set(SOLVERS)
    command("run", "TINY", "--solver", "greedy-rankrls", "--fold", "all", "--out", "runs")
    folds = read_results("runs")
    assert folds["fold"].tolist() == [1, 2, 3, 4, 5]
    members = read_results("runs/fold2", members=True)
    assert members["member"].tolist() == list(range(1, len(members) + 1))
    assert members["chosen"].sum() == 1
    chosen = members[members["chosen"]].iloc[0]
    assert chosen["test MAP"] == folds["test MAP"][1]
    with pytest.raises(FileNotFoundError):
        read_results("nowhere")


def altered(folder, change):
    """Alter a result of rankrls, and return its file."""
    for path in sorted((folder / "cells").iterdir()):
        values = json.loads(path.read_text())
        if values["solver"] == "rankrls":
            change(values)
            path.write_text(json.dumps(values))
            return path
    raise AssertionError


def test_times_and_versions_may_differ(copies):
    altered(copies / "second", lambda values: values["times"].update(solver=77.0))
    altered(copies / "second", lambda values: values["versions"].update(numpy="0"))
    assert len(merge_studies([copies / "first", copies / "second"], copies / "both").results()) == 3


def test_other_results_of_the_same_cell_are_refused(copies):
    def change(values):
        values["front"][0]["weights"][0] += 1e-12

    path = altered(copies / "second", change)
    with pytest.raises(ValueError, match=f"different results of tiny, fold 1, rankrls.*{path.name}"):
        merge_studies([copies / "first", copies / "second"], copies / "both")
    assert not (copies / "both").exists()
