import helpers.plain_agemoea2  # noqa: F401
import pytest
from helpers.toy_search import ALGORITHMS


@pytest.fixture
def path(tmp_path):
    """Where a memo is, or will be."""
    return tmp_path / "run.memo"


@pytest.fixture
def nsga2():
    return ALGORITHMS["NSGA2"]()
