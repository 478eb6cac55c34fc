import pytest


@pytest.fixture(scope="session")
def undisturbed(tiny_problem_file, tmp_path_factory):
    """The folder of a study that nothing has disturbed; no test changes it."""
    from moerank.studies.study import Study

    folder = tmp_path_factory.mktemp("undisturbed")
    Study([tiny_problem_file], ["fsmrank", "ranksvm-primal", "mofsrank"], folder, folds=[1, 2], seeds=2).run()
    return folder
