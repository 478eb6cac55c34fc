"""The verdict on a selection: the loss of the chosen ranker, compared with the same ranker on all features."""

from html import escape
from math import isfinite
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, Field, computed_field

from moerank import statistics
from moerank.arrays import Vector
from moerank.data import RankingData
from moerank.metrics import Metric

Part: TypeAlias = Literal["test", "validation", "new"]

Finding: TypeAlias = Literal["loss", "gain", "none"]

Decision: TypeAlias = Literal["none", "use", "try", "loss", "keep", "limits"]

MARGIN = 0.005
"""Largest difference of a metric that does not matter in practice, by default."""


class Verdict(BaseModel):
    """A selection compared with the same ranker on all allowed features, query by query.

    A query is informative if its value of the metric depends on the order of its documents. A query without a relevant
    document, or with fewer documents than the metric needs, is not. Such queries say nothing about rankers, and count
    in `n_queries` alone.

    Attributes
    ----------
    part : {"test", "validation", "new"}
        The queries. Validation queries chose the selection, so their verdict is optimistic. New ones came after it.
    metric : str
    n_queries : int
        All queries of the part.
    differences : tuple of float
        Metric of the selection minus that of the reference, for each informative query, times the weight of the
        query over the mean weight of these queries.
    n_features, n_allowed : int
        Number of features of the selection, and of the reference. Features that change no ranker do not count.
    margin : float
        Mean differences smaller than this do not matter.
    decision : {"none", "use", "try", "loss", "keep", "limits"}
        The decision of the validation queries: use the selection; try it, because fewer than 30 of them are
        informative; use it although it ranks worse; keep all features; raise the limits, which allow no better set; or
        none, because no rule compared the two, or no validation query is informative. Test queries never decide.
    advice : str
        The reason for the decision; may be empty.
    against : str
        The ranker on all features, with its parameters; empty for the backend of the search that found the selection.
    rival : str
        A sentence about another kind of ranker that is detectably better on all features; empty if there is none.
    no_better_than_chance : bool
        Whether the selection is not detectably better than a random order, on 30 queries or more.
    level : float
        Level of each test and of the interval. It is below .05 for a selection that these queries chose among several,
        so that the tests of all of these hold together (`moerank.statistics.level_of_each`).

    Notes
    -----
    The tests and the interval are those of `moerank.statistics.p_above`. With fewer than 30 informative queries
    there is no finding and no equivalence. ``tests/benchmarks/verdict.py`` simulates level, coverage and power.
    """

    # The file holds the computed fields for its readers; here they are computed anew.
    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, allow_inf_nan=False, defer_build=True
    )

    part: Part
    metric: str
    n_queries: Annotated[int, Field(ge=1)]
    differences: Annotated[tuple[float, ...], Field(strict=False)]
    n_features: Annotated[int, Field(ge=0)]
    n_allowed: Annotated[int, Field(ge=1)]
    margin: Annotated[float, Field(gt=0)]
    decision: Decision = "none"
    advice: str = ""
    against: str = ""
    rival: str = ""
    no_better_than_chance: bool = False
    level: Annotated[float, Field(gt=0, le=statistics.LEVEL)] = statistics.LEVEL

    @property
    def n_differing(self) -> int:
        """The number of informative queries."""
        return len(self.differences)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def difference(self) -> float:
        """The mean of the differences; 0 if no query is informative."""
        return float(np.mean(self.differences)) if self.differences else 0.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def error(self) -> float | None:
        """The standard error of the mean; None for fewer than two informative queries."""
        return statistics.mean_and_error(self.differences)[1] if self.n_differing > 1 else None

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval of the mean difference, at `level`; infinite if all differences are equal."""
        return statistics.mean_interval(self.differences or [0.0], 1 - self.level)

    @property
    def p(self) -> float:
        """The two-sided p value of the hypothesis of no difference."""
        return statistics.p_differs(self.differences or [0.0])

    @property
    def p_equivalent(self) -> float:
        """The p value of the hypothesis that the difference exceeds the margin."""
        return statistics.p_not_within(self.differences or [0.0], self.margin)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def finding(self) -> Finding:
        """The result of the test at `level`; "none" for fewer than 30 informative queries."""
        if self.n_differing < statistics.MIN_QUERIES or self.p >= self.level:
            return "none"
        return "loss" if self.difference < 0 else "gain"

    @property
    def equivalent(self) -> bool:
        """True if the tests reject every difference beyond the margin, at `level`."""
        return self.n_differing >= statistics.MIN_QUERIES and self.p_equivalent < self.level

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sentence(self) -> str:
        """The verdict in words, the decision first."""
        outcome = f"{self.headline}; {self.outcome}"
        advice = self.advice
        if self._size not in self.headline and advice:
            outcome = f"{self.headline}. {advice}. {self._size}; {self.outcome}"
            advice = ""
        return ". ".join(filter(None, (outcome, self.rival, advice)))

    @property
    def headline(self) -> str:
        """The decision in a few words. If these queries detect a loss, the headline does not say "use"."""
        if self.no_better_than_chance:
            return f"{self._size}, not detectably better than a random order"
        if self.decision == "keep" or (
            self.decision in ("use", "try") and self.n_features == self.n_allowed
        ):
            return f"Keep all {self.n_allowed} features"
        if self.decision == "limits":
            return "Raise the limits"
        if self.decision == "loss" or (self.finding == "loss" and not self.equivalent):
            return f"{self._size} rank worse"
        if self.decision in ("use", "try"):
            return f"{self.decision.capitalize()} {self._size}"
        return self._size

    @property
    def title(self) -> str:
        """The decision and the finding as the title of a figure."""
        side = "above" if self.difference > 0 else "below"
        change = f"{short(abs(self.difference))} {side}" if self.difference else "the same as"
        if self.finding != "none":
            end = ", which is detected"
        elif self.equivalent:
            end = f", which is within {short(self.margin)}"
        else:
            end = "; too few to tell"
        subject = "they" if self._size in self.headline else self.n_features
        comparison = f"{subject} score {change} all {self.n_allowed}{end}"
        return f"{self.headline}: on {self.query_text}, {comparison}"

    @property
    def _size(self) -> str:
        return f"{self.n_features} of {self.n_allowed} features"

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        """Return the verdict for a notebook."""
        return f"<p><strong>Verdict.</strong> {escape(self.sentence)}</p>"

    @property
    def outcome(self) -> str:
        """The result of the comparison, without the sizes of the two selections."""
        change = self.difference
        word = "difference"
        if change:
            word = "gain" if change > 0 else "loss"
        estimate = f"{word} {short(abs(change))} {self.metric}{self._interval_text(change)}"
        against = f" against {self.against} with all of them" if self.against else ""
        optimistic = ""
        if self.part == "validation":
            allowance = "; interval and tests allow for it" if self.level < statistics.LEVEL else ""
            optimistic = f" (optimistic: these queries chose it{allowance})"
        return (
            f"estimated {estimate}{against} on {self.query_text}: {self._test_results}{optimistic}"
        )

    def with_rival(self, other: Self, name: str) -> Self:
        """Return the verdict with a sentence about another ranker on all features, if that ranker is better.

        Parameters
        ----------
        other : Verdict
            The verdict on the selection against that ranker.
        name : str
            The name of the ranker.
        """
        if other.finding != "loss":
            return self
        gain = f"{short(-other.difference)}{other._interval_text(other.difference)}"
        rival = f"{name} on all features is better by {gain}"
        return self.model_copy(update={"rival": rival})

    def with_chance(self, other: Self) -> Self:
        """Return the verdict with a remark if the selection is not detectably better than a random order.

        `other` is the verdict on the selection against the mean of random orders.
        """
        suffices = other.n_differing >= statistics.MIN_QUERIES
        no_better = suffices and other.finding != "gain"
        return self.model_copy(update={"no_better_than_chance": no_better})

    def _interval_text(self, change: float) -> str:
        """Return the interval of the loss, or of the gain if the change is one."""
        low, high = self.interval
        if change <= 0:
            low, high = -high, -low
        return f" (95 %: {signed(low)} to {signed(high)})" if isfinite(low) else ""

    @property
    def query_text(self) -> str:
        """The queries over which the difference is averaged, in words."""
        if self.n_differing == self.n_queries:
            return f"{self.n_queries:,} {self.part} quer{'y' if self.n_queries == 1 else 'ies'}"
        queries = f"{self.part} quer{'y' if self.n_differing == 1 else 'ies'}"
        return f"{self.n_differing:,} informative {queries} of {self.n_queries:,}"

    @property
    def _test_results(self) -> str:
        margin = short(self.margin)
        if self.finding != "none":
            end = f", and it lies within {margin}" if self.equivalent else ""
            return f"a {self.finding} is detected{end}"
        if self.equivalent:
            return f"equivalent within {margin}"
        if self.n_differing >= statistics.MIN_QUERIES and not any(self.differences):
            return "both rank all of them equally well, which says nothing about other queries"
        needed = statistics.queries_needed(self.differences, self.margin, self.level)
        if not needed:
            return "too few to tell"
        # Uninformative queries included.
        n_queries = float(f"{needed * self.n_queries / self.n_differing:.2g}")
        return f"too few to tell; about {n_queries:,.0f} {self.part} queries could"


def judge(
    selection: ArrayLike,
    reference: ArrayLike,
    part: Part,
    metric: str,
    n_features: int,
    n_allowed: int,
    *,
    can_differ: ArrayLike | None = None,
    weights: Vector | None = None,
    margin: float = MARGIN,
    **fields: Any,
) -> Verdict:
    """Compare a selection with its reference on the same queries.

    Parameters
    ----------
    selection, reference : array-like, shape (n_queries,)
        The value of the metric for each query, times its weight over the mean weight of all queries.
    part, metric, n_features, n_allowed, margin, **fields
        The other fields of a `Verdict`.
    can_differ : array-like of bool, shape (n_queries,), optional
        The informative queries, see `Metric.can_differ`; by default all.
    weights : ndarray, shape (n_queries,), optional
        The weights of the queries; by default all are equal.

    Examples
    --------
    >>> print(judge([0.50, 0.70, 0.61, 0.2], [0.52, 0.70, 0.60, 0.2], "test", "MAP", 6, 45).outcome)
    estimated loss .003 MAP (95 %: −.601 to .603) on 4 test queries:
    too few to tell; about 1,300 test queries could
    """
    differences = statistics.paired_differences(selection, reference)
    statistics.numbers(differences, limit=1.0 if weights is None else np.inf)
    if can_differ is None:
        can_differ = np.ones(len(differences), bool)
    differs = np.asarray(can_differ, bool)
    return Verdict(
        part=part,
        metric=metric,
        n_queries=len(differences),
        differences=tuple(statistics.select_differing(differences, differs, weights).tolist()),
        n_features=int(n_features),
        n_allowed=int(n_allowed),
        margin=margin,
        **fields,
    )


def judge_scores(
    data: RankingData,
    metric: Metric,
    selection: Vector,
    reference: Vector,
    n_features: int,
    n_allowed: int,
    **fields: Any,
) -> Verdict:
    """Compare the scores of a selection, shape (n_documents,), with those of its reference on test data.

    See `judge` for the other arguments.
    """
    scores = np.column_stack([selection, reference])
    values = data.weighted(metric.per_query(data, scores))
    return judge(
        values[:, 0],
        values[:, 1],
        "test",
        metric.name,
        n_features,
        n_allowed,
        can_differ=metric.can_differ(data),
        weights=data.query_weights,
        **fields,
    )


def short(value: float) -> str:
    """Return a number to three decimal places, without the leading zero."""
    text = f"{value:.3f}"
    return text[1:] if text.startswith("0.") else text


def signed(value: float) -> str:
    """Return a number as `short` does, with a minus sign if it is negative."""
    sign = "−" if round(value, 3) < 0 else ""
    return f"{sign}{short(abs(value))}"
