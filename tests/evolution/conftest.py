import os

import helpers.plain_agemoea2  # noqa: F401
import numpy as np
import pytest
from helpers.toy_search import ALGORITHMS
from pymoo.operators.survival.rank_and_crowding import classes


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


@pytest.fixture(autouse=True)
def pymoo_orders_ties_stably(monkeypatch):
    """Let pymoo's survival use a stable sort: its own order of ties depends on the processor."""

    def stable(values, order, method, random_state):
        drawn = random_state.permutation(len(values))
        ascending = drawn[np.argsort(values[drawn], kind="stable")]
        return ascending[::-1] if order == "descending" else ascending

    monkeypatch.setattr(classes, "randomized_argsort", stable)
