"""Two members of a front against each other, on the test queries of their fold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.metrics import Metric
from moerank.runs.result import RunResult
from moerank.verdict import judge

__all__ = ["compare_members"]


def compare_members(
    result: RunResult, first: int, second: int, test: RankingData, metric: Metric, *, margin: float
) -> str:
    """Return in one sentence how a member of a front stands against another, query by query.

    Parameters
    ----------
    result : RunResult
    first, second : int
        Members, from 1 as in front.csv.
    test : RankingData
        The test part that the result was measured on, scaled as it was.
    metric : Metric
        That of the error.
    margin : float
        Differences below it do not matter.

    Raises
    ------
    ValueError
        For a member that does not exist, or that no weights are kept of.

    Notes
    -----
    The chosen member's values stand in the result; those of others are measured again by their weights, to the same
    bits. No choice is made by them, and none should be: a member that is chosen by test queries is flattered by them.
    O(n_documents · n_features).
    """
    values, reference = (_values(result, number, test, metric) for number in (first, second))
    sizes = [len(result.front[number - 1].features) for number in (first, second)]
    verdict = judge(values, reference, "test", metric.name, *sizes, margin=margin)
    one, other = (
        f"member {number} ({size} feature{'s' * (size != 1)}{', chosen' * (number == result.chosen + 1)})"
        for number, size in zip((first, second), sizes, strict=True)
    )
    return f"{one[0].upper()}{one[1:]} against {other}: {verdict.outcome}"


def _values(result: RunResult, number: int, test: RankingData, metric: Metric) -> NDArray[np.float64]:
    """Return the metric of each test query."""
    if not 1 <= number <= len(result.front):
        there = f"members 1 to {len(result.front)}" if len(result.front) > 1 else "only member 1"
        raise ValueError(f"--member {number}: the front has {there}; the table numbers them")
    member = result.front[number - 1]
    if number == result.chosen + 1:
        return np.asarray(member.per_query["test"][metric.name])
    if member.weights is None:
        raise ValueError(
            f"--member {number}: its ranker has no weights, and of such a front the chosen member alone is kept "
            f"({result.chosen + 1})"
        )
    return metric.of_linear(test, member.model.coef(test.n_features)[None])[:, 0]
