import pytest


@pytest.fixture(scope="session")
def parts(tiny_problem):
    """The parts of the second fold of the tiny problem."""
    return dict(zip(("train", "validation", "test"), tiny_problem.load_fold(2), strict=True))
