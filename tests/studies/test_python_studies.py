"""Studies of what a user has in Python: data, estimators and functions, one of a thing or several."""

import subprocess
import sys

import pytest

from moerank.data import load_planted_fold
from moerank.mofsrank import MOFSRank
from moerank.rankers import RankRLS, RankSVM
from moerank.studies.problem import load_problem
from moerank.studies.study import Study

SMALL = {"population": 8, "generations": 3}
MOFS = dict(instance_selection=False, feature_selection=SMALL, ensemble=False)


@pytest.fixture(scope="module")
def fold():
    return load_planted_fold(1, n_queries=15, n_documents=8, n_noise=3)


def weak(problem, seed):
    return RankRLS(alpha=100.0)


def strong(problem, seed):
    return RankRLS(alpha=0.01)


def test_a_single_thing_needs_no_list(tiny_problem_file, tiny_problem):
    for problem in (str(tiny_problem_file), tiny_problem_file, tiny_problem):
        study = Study(problem, "fsmrank[lambda1=0.5]", folds=[1])
        assert [cell.label for cell in study.cells()] == ["tiny, fold 1, fsmrank[lambda1=0.5]"]
    study = Study("planted", RankSVM(C=2), folds=[3])
    assert [cell.label for cell in study.cells()] == ["planted, fold 3, RankSVM"]


def test_data_estimators_and_functions_run_as_cells(fold, tmp_path):
    solvers = {"mofs": MOFSRank(**MOFS), "weak": weak, "gas": "gas", "fixed": MOFSRank(**MOFS, random_state=7)}
    study = Study({"mine": fold, "again": [fold, fold]}, solvers, tmp_path, seeds=2).run()
    assert not study.failures()
    frame = study.frame().set_index(["problem", "fold", "solver", "seed"])
    assert len(frame) == 3 * (2 + 2 + 1 + 1)  # mofs and the function draw
    assert len({*frame.xs("fixed", level="solver")["train NDCG@10"]}) == 1  # the same data, the same seed
    assert frame["test P@3"].between(0, 1).all()
    loaded = Study.load(tmp_path)
    assert [cell.key for cell in loaded.cells()] == [cell.key for cell in study.cells()]
    assert loaded.run().frame().equals(study.frame())  # nothing is left to run


def test_another_function_or_data_of_the_same_name_is_not_taken_for_the_first(fold, tmp_path):
    first = Study({"mine": fold}, {"rls": weak}, tmp_path).run()
    again = Study({"mine": fold}, {"rls": weak}, tmp_path)
    assert set(again.states().values()) == {"finished"}
    changed = Study({"mine": fold}, {"rls": strong}, tmp_path)
    assert set(changed.states().values()) == {"open"}
    with pytest.raises(ValueError, match="holds another solver rls, with other code or settings"):
        changed.run()
    with pytest.raises(ValueError, match="holds another solver rls"):
        Study({"mine": fold}, {"rls": RankRLS()}, tmp_path).run()
    Study({"mine": fold}, "rankrls", tmp_path).run()
    changed = Study({"mine": load_planted_fold(1, n_queries=15, n_documents=8, n_noise=3, seed=1)}, "rankrls", tmp_path)
    assert set(changed.states().values()) == {"open"}
    with pytest.raises(ValueError, match="holds another problem mine, with other code or settings"):
        changed.run()
    apart = Study({"mine": fold}, {"strong": strong}, tmp_path).run()
    assert apart.results()[0].best.weights != first.results()[0].best.weights
    assert len(Study.load(tmp_path).results()) == 3


def test_what_a_folder_knows_by_its_digest_alone_is_asked_for(fold, tmp_path):
    study = Study({"mine": fold}, {"weak": weak}, tmp_path).run()
    next((tmp_path / "cells").iterdir()).unlink()
    with pytest.raises(ValueError, match="weak was given as a Python object; pass it to Study again"):
        Study.load(tmp_path).run()
    assert len(study.run().results()) == 1
    Study({"mine": fold}, "rankrls", tmp_path / "data").run()
    next((tmp_path / "data" / "cells").iterdir()).unlink()
    with pytest.raises(ValueError, match="mine was given as a Python object"):
        Study.load(tmp_path / "data").run()


@pytest.mark.parametrize(
    ("problems", "solvers", "message"),
    [
        ("planted", {"mine": "fsmrank"}, "fsmrank keeps its name: solvers={'fsmrank': 'fsmrank'}"),
        ("planted", [RankSVM(), type("RankSVM", (RankSVM,), {})()], "two solvers are called RankSVM"),
        ("planted", (), "^a study needs a problem, a solver and a fold; moerank solvers lists"),
        (["planted", load_problem("planted", {"metric.name": "MAP"})], "gas", "two problems are called planted"),
        ({"no name": "planted"}, "gas", "--set name"),
        (load_planted_fold(1), "gas", "data in memory need a name: problems="),
    ],
)
def test_what_cannot_be_asked_for_is_refused(problems, solvers, message):
    with pytest.raises(ValueError, match=message.replace("{", r"\{")):
        Study(problems, solvers, folds=[1])


def test_an_estimator_that_changes_later_is_run_as_it_was_given(fold, tmp_path):
    ranker = RankRLS(alpha=0.5)
    study = Study({"mine": fold}, {"rls": ranker}, tmp_path)
    ranker.set_params(alpha=100.0)
    assert study.run().results()[0].best.parameters["alpha"] == 0.5


def test_a_function_of_a_script_runs_in_its_processes(tmp_path):
    """What is in __main__ cannot be imported elsewhere, and is sent as code."""
    script = tmp_path / "mine.py"
    script.write_text(
        "from moerank import RankRLS, Study, load_planted_fold\n"
        "ALPHA = 0.5\n"
        "def make(problem, seed):\n"
        "    return RankRLS(alpha=ALPHA)\n"
        "if __name__ == '__main__':\n"
        "    fold = load_planted_fold(1, n_queries=15, n_documents=8, n_noise=3)\n"
        f"    study = Study({{'mine': fold}}, {{'made': make}}, {str(tmp_path / 'study')!r}).run(workers=2)\n"
        "    print(study.failures(), [result.best.parameters['alpha'] for result in study.results()])\n"
    )
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert found.stdout == "{} [0.5]\n"
