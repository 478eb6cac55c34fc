from functools import cache

import pytest
from helpers.changes import replace

from moerank.figures import FIGURES
from moerank.runs.problem import Published
from moerank.solvers import solvers
from moerank.studies.results import Results

SOURCES = {"evolutionary": "mofsrank", "ranker": "ranksvm-primal"}
"""Whose results stand for those of a family; of the others greedy-rankrls."""


@pytest.fixture(scope="session")
def problem(tiny_study):
    return tiny_study.problems[0]


def changed(result, number):
    """Return the result with scores and times that no other number has."""

    def scored(member):
        scores = {
            part: {metric: value * 0.998**number for metric, value in table.items()}
            for part, table in member.scores.items()
        }
        objectives = {**member.objectives, "error": 1.0 - scores["train"][result.metrics[0]]}
        return replace(member, scores=scores, objectives=objectives)

    seconds = {"tuning": 0.02 * 1.2 ** (number % 17), "solver": 0.01 * (1 + number % 5)}
    times = replace(result.times, **seconds)
    return replace(result, front=[scored(member) for member in result.front], times=times)


@pytest.fixture(scope="session")
def large(results):
    """A study of all solvers of the table, of results that are relabelled and changed a little."""
    results = Results(
        replace(changed(result, number), solver=entry.name)
        for number, entry in enumerate(solvers().values())
        for result in results.among([SOURCES.get(entry.family, "greedy-rankrls")])
    )
    parts = ("complete", "without instance selection", "without adaptive mutation", "without ensemble")
    results.ablations = [dict(zip(results.solvers[:4], parts, strict=True))]
    assert len(results.solvers) >= 39
    return results


@pytest.fixture(scope="session")
def published_problem(problem):
    """The problem with two published results, of a search and of a filter."""
    entries = [
        Published(method="Theirs", solver="mofsrank", features=4.0, scores={"NDCG@10": 0.93}, source="a paper"),
        Published(method="Others", solver="gas", features=7.5, scores={"NDCG@10": 0.91}, source="a paper"),
        Published(method="Unsized", solver="gas-e", scores={"NDCG@10": 0.5}, source="a paper"),
    ]
    return problem.model_copy(update={"published": tuple(entries)})


@pytest.fixture(scope="session")
def drawn_large(large, published_problem):
    """Draw a figure of the large study once, for all tests that only look at it."""
    return cache(lambda name: FIGURES[name].draw(large, published_problem))
