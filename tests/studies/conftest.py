import pytest

from moerank.studies.study import Study

STUDY_SOLVERS = ("fsmrank", "ranksvm-primal", "mofsrank", "greedy-rankrls")


@pytest.fixture(scope="session")
def tiny_study(tiny_problem_file, tmp_path_factory):
    """Four solvers on two folds, those that draw with three seeds."""
    folder = tmp_path_factory.mktemp("tiny-study")
    return Study([tiny_problem_file], STUDY_SOLVERS, folder, folds=[1, 2], seeds=3).run()
