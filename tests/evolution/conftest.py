import os

import helpers.plain_agemoea2  # noqa: F401
import pytest
from helpers.toy_search import ALGORITHMS


@pytest.fixture
def path(tmp_path):
    """Where a journal is, or will be."""
    return tmp_path / "run.journal"


@pytest.fixture
def nsga2():
    return ALGORITHMS["NSGA2"]()


@pytest.fixture
def no_waiting_for_the_disk(monkeypatch):
    """Make syncing instant, for tests of what stands in a file; a kill of the process takes nothing from it."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
