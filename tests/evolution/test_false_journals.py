"""Journals whose check sums are right and whose content is not that of the search: each is refused by name."""

import numpy as np
import pytest
from helpers.interrupted_search import GENERATIONS, assert_same_result, interrupted
from helpers.toy_search import ALGORITHMS, WeighedBits

from moerank.evolution import Journal, Record, search

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def rewritten(path, change):
    """Write the journal anew, with right check sums, as `change` alters its list of records."""
    journal = Journal(path, {})
    about = {
        "algorithm class": "NSGA2",
        "seed of the search": 3,
        "variables": 60,
        "objectives, inequalities, equalities": [2, 0, 0],
    }
    journal.open(about, 2)
    there = list(iter(journal.read, None))
    journal.close()
    journal.remove()
    journal.open(about, 2)
    for record in change(there):
        journal.append(record)
    journal.close()


def with_values(record, row, values):
    F = record.values.copy()
    F[row] = values
    return Record(record.elapsed, record.digests, F)


LIES = {
    "a better value": (
        lambda there: [*there[:-1], with_values(there[-1], 4, [1.0, 0.0])],
        r"holds wrong values: measured again, the member of the front with \[1.0, 0.0\]",
    ),
    "an earlier value": (
        lambda there: [with_values(there[0], 4, [1.0, 0.0]), *there[1:]],
        r"record \d of journal .* belongs to another search: its individual \d+ of 16 is another",
    ),
    "a lost generation": (
        lambda there: [*there[:2], *there[3:]],
        r"record 3 of journal .* belongs to another search: its individual 1 of 16 is another than the one asked for",
    ),
    "fewer individuals": (
        lambda there: [Record(0.0, there[0].digests[1:], there[0].values[1:]), *there[1:]],
        r"record 1 of journal .* belongs to another search: it holds 15 individuals, and 16 are asked for",
    ),
    "too many generations": (
        lambda there: [*there, *(Record(there[-1].elapsed, [], np.empty((0, 2))) for _ in range(9))],
        r"record 7 of journal .* belongs to another search: it holds 0 individuals, and 16 are asked for",
    ),
}


@pytest.mark.parametrize(("change", "sentence"), LIES.values(), ids=LIES)
def test_a_journal_that_lies_is_refused(change, sentence, path, nsga2):
    interrupted(path, nsga2)
    rewritten(path, change)
    with pytest.raises(ValueError, match=sentence):
        search(WeighedBits(), nsga2, GENERATIONS, seed=3, journal=Journal(path, {}))


def test_a_journal_of_a_longer_search_is_refused(path, nsga2):
    search(WeighedBits(), nsga2, GENERATIONS, seed=3, journal=Journal(path, {}))
    with pytest.raises(ValueError, match=r"record 8 of .* another search: the search ends after 7 records"):
        search(WeighedBits(), nsga2, 7, seed=3, journal=Journal(path, {}))


def test_another_problem_is_noticed(path, nsga2):
    class Other(WeighedBits):
        def _evaluate(self, X, out, *args, **kwargs):
            super()._evaluate(X, out)
            out["F"][:, 1] += 1e-6

    interrupted(path, nsga2)
    with pytest.raises(ValueError, match=r"holds wrong values: .*; remove the journal to begin anew"):
        search(Other(), nsga2, GENERATIONS, seed=3, journal=Journal(path, {}))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (dict(seed=4), "seed of the search is 3 there and 4 here"),
        (dict(problem=WeighedBits(61)), "variables is 60 there and 61 here"),
        (dict(algorithm=ALGORITHMS["SPEA2"]()), "algorithm class is 'NSGA2' there and 'SPEA2' here"),
    ],
)
def test_another_search_is_refused_by_name(settings, sentence, path, nsga2):
    interrupted(path, nsga2)
    given = dict(problem=WeighedBits(), algorithm=nsga2, seed=3) | settings
    with pytest.raises(ValueError, match=sentence):
        search(given["problem"], given["algorithm"], GENERATIONS, seed=given["seed"], journal=Journal(path, {}))


def test_a_seed_that_was_drawn_stands_in_the_journal(path, nsga2):
    journal = Journal(path, {})
    drawn = search(WeighedBits(), nsga2, 5, seed=None, journal=journal)
    again = search(WeighedBits(), nsga2, 5, seed=drawn.algorithm.seed, journal=journal)
    assert_same_result(again, drawn)
    with pytest.raises(ValueError, match=f"seed of the search is {drawn.algorithm.seed} there"):
        search(WeighedBits(), nsga2, 5, seed=None, journal=journal)
