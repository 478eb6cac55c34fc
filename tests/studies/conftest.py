import pytest


@pytest.fixture(scope="session")
def parts(tiny_problem):
    """The parts of the second fold of the tiny problem."""
    return dict(zip(("train", "validation", "test"), tiny_problem.load_fold(2), strict=True))


@pytest.fixture(scope="session")
def undisturbed(tiny_problem_file, tmp_path_factory):
    """The folder of a study that nothing has disturbed; no test changes it."""
    from moerank.studies.study import Study

    folder = tmp_path_factory.mktemp("undisturbed")
    Study([tiny_problem_file], ["fsmrank", "ranksvm-primal", "mofsrank"], folder, folds=[1, 2], seeds=2).run()
    return folder
