"""The verdict on a selection: the loss of the chosen ranker, compared with the same ranker on all features."""

import re
from html import escape
from math import inf, isfinite
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, computed_field

from moerank import statistics
from moerank.arrays import Matrix, Vector
from moerank.data import RankingData
from moerank.metrics import Metric

Part: TypeAlias = Literal["test", "validation", "new"]

Finding: TypeAlias = Literal["loss", "gain", "likely loss", "likely gain", "none"]

Grade: TypeAlias = Literal["detected", "likely", "none"]

Decision: TypeAlias = Literal["none", "use", "try", "loss", "keep", "limits", "other"]

MARGIN = 0.005
"""Largest difference of a metric that does not matter in practice, by default."""


RANDOM_ORDERS = 16  # orders of the test documents, whose mean metric is that of chance

Z = 1.2816  # standard errors at the ends of an interval of 80 %

Differences: TypeAlias = Annotated[
    tuple[float, ...],
    Field(strict=False),
    BeforeValidator(lambda values: np.asarray(values, float).tolist()),
]

CHANCE_OF_A_MISS = 2.0
"""Chance that the queries miss the differences that reverse a likely finding, over the level.

It is .10 at the level of .05.
"""


class Comparison(BaseModel):
    """Two rankers compared by paired differences of queries, see `compare`.

    Attributes
    ----------
    differences : tuple of float
        Metric of the first ranker minus that of the second one, for each query, times its weight.
    n_queries : int
        All queries of the part; the uninformative ones have no difference.
    part : {"test", "validation", "new"}
    weights : tuple of float or None
        The weights of the queries, with the mean 1; None if all are equal.
    tail : Tail
        What the queries of other parts show of the differences and weights that these may have missed.
    margin : float
        Mean differences smaller than this do not matter.
    level : float
        Level of each test and of the interval. It is below .05 for a selection that these queries chose among several,
        so that the tests of all of these hold together (`moerank.statistics.level_of_each`).
    """

    # The file holds the computed fields for its readers; here they are computed anew.
    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, allow_inf_nan=False, defer_build=True
    )

    differences: Differences
    n_queries: Annotated[int, Field(ge=1)]
    part: Part = "test"
    weights: Differences | None = None
    tail: statistics.Tail = statistics.Tail()
    margin: Annotated[float, Field(gt=0)] = MARGIN
    level: Annotated[float, Field(gt=0, le=statistics.LEVEL)] = statistics.LEVEL

    @property
    def n_differing(self) -> int:
        """The number of informative queries."""
        return len(self.differences)

    @property
    def _weighed(self) -> tuple[Vector, float]:
        """The values and the scale of `moerank.statistics.weigh`; those of one query if there is none."""
        return statistics.weigh(self.differences or [0.0], self.weights, self.tail.heaviest)

    @property
    def n_effective(self) -> float:
        """So many queries of equal weight would tell as much; below 30 there is no finding."""
        values, scale = self._weighed
        return len(values) / scale

    @computed_field  # type: ignore[prop-decorator]
    @property
    def difference(self) -> float:
        """The mean of the differences; 0 if no query is informative."""
        values, scale = self._weighed
        return float(scale * values.mean())

    @computed_field  # type: ignore[prop-decorator]
    @property
    def error(self) -> float | None:
        """The standard error of the mean; None for fewer than two informative queries."""
        values, scale = self._weighed
        return scale * statistics.mean_and_error(values)[1] if self.n_differing > 1 else None

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval of the mean difference, at `level`; infinite if nothing bounds it."""
        values, scale = self._weighed
        low, high = statistics.mean_interval(values, 1 - self.level)
        return (scale * low, scale * high) if scale < len(values) else (-inf, inf)

    @property
    def p(self) -> float:
        """The two-sided p value of the hypothesis of no difference."""
        return statistics.p_differs(self._weighed[0])

    @property
    def p_equivalent(self) -> float:
        """The p value of the hypothesis that the difference exceeds the margin."""
        values, scale = self._weighed
        return statistics.p_not_within(values, self.margin / scale)

    @property
    def grades(self) -> tuple[Grade, Grade]:
        """How sure a difference is, and how sure it is that it lies within the margin.

        Either is detected if the tests reject the contrary at `level`. It is likely if they do so with losses and gains
        that are as large as the largest one of all parts in place of 1, and if the queries of all parts together
        exclude those of 1; each is missed with a chance of at most twice the level. If queries have weights, nothing is
        likely, because few queries decide what the parts show.
        """
        values, scale = self._weighed
        n, chance = len(values), CHANCE_OF_A_MISS * self.level
        if n < statistics.MIN_QUERIES or not isfinite(self.interval[0]):
            return "none", "none"
        size = max(np.abs(self.differences).max(), self.tail.size)
        low, high = statistics.interval_ends(
            *statistics.moments(values),
            self.level,
            statistics.Miss(n, chance, size),
            statistics.Miss(n + self.tail.n, chance),
        )

        def grade(p: float, is_likely: Any) -> Grade:
            if p < self.level:
                return "detected"
            return "likely" if is_likely and self.weights is None else "none"

        finding = grade(self.p, low > 0 or high < 0)
        return finding, grade(self.p_equivalent, scale * max(-low, high) < self.margin)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def finding(self) -> str:
        """The side of a difference that is detected or likely, see `Finding`; "none" for fewer than 30 queries."""
        side = "loss" if self.difference < 0 else "gain"
        return {"detected": side, "likely": f"likely {side}", "none": "none"}[self.grades[0]]

    @property
    def equivalent(self) -> bool:
        """True if the tests reject every difference beyond the margin, at `level`."""
        return self.grades[1] == "detected"

    @property
    def needed(self) -> tuple[float, float]:
        """The least and the largest number of informative queries that could tell; infinite if a million cannot.

        The mean and the deviation of the differences are anywhere in their intervals of 80 %.
        """
        values, scale = self._weighed
        mean, error = values.mean(), (self.error or 0.0) / scale
        spread = np.exp(Z / np.sqrt(2 * len(values)))
        sizes = [
            statistics.queries_needed(
                mean + errors * error + factor * (values - mean), self.margin / scale, self.level
            )
            or inf
            for errors in np.linspace(-Z, Z, 5)
            for factor in (1 / spread, spread)
        ]
        return min(sizes), max(sizes)

    @property
    def words(self) -> str:
        """What is found, or how many queries it would take, the uninformative ones included."""
        finding, equivalence = self.grades
        within = f"lies within {short(self.margin)}"
        if equivalence == "likely":
            within = f"likely {within}"
        if finding != "none":
            end = "" if equivalence == "none" else f", and it {within}"
            return f"a {self.finding.split()[-1]} is {finding}{end}"
        if equivalence != "none":
            return within.replace("lies", "equivalent")
        if self.n_effective < min(self.n_differing, 2):
            return "no finding, because few queries carry the traffic"
        if self.n_differing >= statistics.MIN_QUERIES and not any(self.differences):
            return "both rank all of them equally well, which says nothing about other queries"
        share = max(self.n_differing, 1) / self.n_queries
        low, high = (f"{float(f'{n / share:.2g}'):,.0f}" for n in self.needed)
        if low == "inf":
            return "too few to tell"
        number = f"at least {low}" if high == "inf" else f"between {low} and {high}"
        if low == high:
            number = f"about {low}"
        return f"too few to tell; {number} {self.part} queries could"


def compare(
    differences: ArrayLike,
    weights: ArrayLike | None = None,
    **fields: Any,
) -> Comparison:
    """Compare two rankers by their differences of a metric on the same queries.

    Parameters
    ----------
    differences : array-like, shape (n_queries,)
        Value of the first ranker minus that of the second one, between −1 and 1, times `weights`.
    weights : array-like, shape (n_queries,), optional
        Positive weights of the queries; by default all are 1.
    **fields
        The fields `n_queries`, `part`, `tail`, `margin` and `level` of a `Comparison`. By default all queries are
        informative.

    Returns
    -------
    Comparison
        Its `words` say what is found: a difference or an equivalence that is detected, one that is likely, or how many
        queries it would take.

    Raises
    ------
    ValueError
        For NaN, and for differences beyond −1 and 1.

    Examples
    --------
    >>> d = np.tile([-0.055, 0.035], 75)
    >>> compare(d).words, compare(d, tail=statistics.Tail(n=600, size=0.2)).words
    ('too few to tell; between 300 and 950 test queries could', 'a loss is likely')
    """
    statistics.weigh(differences, weights)
    pairs = {"differences": differences, "weights": weights}
    return Comparison.model_validate({"n_queries": np.size(differences), **pairs, **fields})


class Verdict(Comparison):
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
    weights : tuple of float or None
        The weights of the informative queries, over their mean; None if all are equal.
    tail : Tail
        What the queries of other parts show of the differences and weights that these may have missed.
    n_features, n_allowed : int
        Number of features of the selection, and of the reference. Features that change no ranker do not count.
    margin : float
        Mean differences smaller than this do not matter.
    decision : {"none", "use", "try", "loss", "keep", "limits", "other"}
        The decision of the validation queries: use the selection; try it, because fewer than 30 of them are
        informative; use it although it ranks worse; keep all features; raise the limits, which allow no better set;
        take the `other` kind of ranker; or none, because no rule compared the two, or no validation
        query is informative. Test queries never decide.
    advice : str
        The reason for the decision; may be empty.
    ranker : str
        The kind of ranker of the selection, if several were compared; else empty.
    against : str
        The ranker on all features, with its parameters; empty for the backend of the search that found the selection.
    other : str
        The kind of ranker that validation queries prefer on all features; empty if there is none.
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

    part: Part
    metric: str
    n_features: Annotated[int, Field(ge=0)]
    n_allowed: Annotated[int, Field(ge=1)]
    decision: Decision = "none"
    advice: str = ""
    ranker: str = ""
    against: str = ""
    other: str = ""
    rival: str = ""
    no_better_than_chance: bool = False

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
        everything = f"Keep all {self.n_allowed} features"
        loses = self.decision == "loss" or (self.finding == "loss" and not self.equivalent)
        has_all = self.n_features == self.n_allowed
        if self.decision == "keep" or (loses and has_all):
            return everything + self._ranked_by(self.against.partition("(")[0])
        if self.decision in ("use", "try") and has_all:
            return everything + self._ranked_by(self.ranker)
        if self.decision == "limits":
            return "Raise the limits"
        if self.decision == "other":
            return f"{self.other} with all {self.n_allowed} features ranks better"
        if loses:
            return f"{self._size} rank worse"
        if self.decision in ("use", "try"):
            return f"{self.decision.capitalize()} {self._size}{self._ranked_by(self.ranker)}"
        return self._size

    @staticmethod
    def _ranked_by(ranker: str) -> str:
        return f", ranked by {ranker}" if ranker else ""

    @property
    def title(self) -> str:
        """The decision and the finding as the title of a figure."""
        side = "above" if self.difference > 0 else "below"
        change = f"{short(abs(self.difference))} {side}" if self.difference else "the same as"
        if self.finding != "none":
            end = f", which is {self.grades[0]}"
        elif self.equivalent:
            end = f", which is within {short(self.margin)}"
        else:
            end = f"; {self.words.partition(';')[0]}"
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
    def _rival(self) -> str:
        """The ranker that the selection is compared with, its parameters with three digits."""
        return re.sub(r"\d\.\d{3,}(e[+-]?\d+)?", lambda m: f"{float(m[0]):.3g}", self.against)

    @property
    def outcome(self) -> str:
        """The result of the comparison, without the sizes of the two selections."""
        change = self.difference
        word = "difference"
        if change:
            word = "gain" if change > 0 else "loss"
        estimate = f"{word} {short(abs(change))} {self.metric}{self._interval_text(change)}"
        against = f" against {self._rival} with all of them" if self.against else ""
        optimistic = ""
        if self.part == "validation":
            allowance = "; interval and tests allow for it" if self.level < statistics.LEVEL else ""
            optimistic = f" (optimistic: these queries chose it{allowance})"
        return f"estimated {estimate}{against} on {self.query_text}: {self.words}{optimistic}"

    def with_rival(self, other: Self, name: str, validation_gains: ArrayLike) -> Self:
        """Return the verdict with a sentence about another ranker on all features, if that ranker is better.

        It decides if validation queries prefer that ranker by more than a paired standard error.

        Parameters
        ----------
        other : Verdict
            The verdict on the selection against that ranker.
        name : str
            The name of the ranker.
        validation_gains : array-like, shape (n_queries,)
            Its metric minus that of the selection on the validation queries, times their weights.
        """
        gain, error = statistics.mean_and_error(validation_gains)
        fields: dict[str, Any] = {}
        if other.finding == "loss":
            size = f"{short(-other.difference)}{other._interval_text(other.difference)}"
            fields["rival"] = f"{name} on all features is better by {size}"
        if gain > error:
            reason = f"On validation it is better by {short(gain)} ± {short(error)}"
            remedy = f'to select features for it, set rankers = "{name.lower()}" under [serve]'
            fields |= {"decision": "other", "other": name, "advice": f"{reason}; {remedy}"}
        return self.model_copy(update=fields)

    def with_chance(self, other: Self) -> Self:
        """Return the verdict with a remark if the selection is not detectably better than a random order.

        `other` is the verdict on the selection against the mean of random orders.
        """
        suffices = other.n_effective >= statistics.MIN_QUERIES
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
    too few to tell; between 370 and 1,300 test queries could
    """
    differences = statistics.paired_differences(selection, reference)
    if can_differ is None:
        can_differ = np.ones(len(differences), bool)
    differs = np.asarray(can_differ, bool)
    if weights is not None and differs.any():
        weights = weights / weights[differs].mean()
        differences = differences * weights.mean()
    statistics.weigh(differences, weights)
    return Verdict(
        part=part,
        metric=metric,
        n_queries=len(differences),
        differences=differences[differs],
        weights=None if weights is None else weights[differs],
        n_features=int(n_features),
        n_allowed=int(n_allowed),
        margin=margin,
        **fields,
    )


def judge_scores(
    data: RankingData,
    metric: Metric,
    scores: Matrix,
    n_features: int,
    n_allowed: int,
    **fields: Any,
) -> Verdict:
    """Compare the scores of a selection and those of its reference, shape (n_documents, 2), on test data.

    The verdict also tells whether the selection is better than chance, the mean of random orders. See `judge` for the
    other arguments.
    """
    values = data.weighted(metric.per_query(data, scores))
    orders = np.random.default_rng(0).random((data.n_documents, RANDOM_ORDERS))
    chance = data.weighted(metric.per_query(data, orders)).mean(axis=1)
    verdict, against_chance = (
        judge(
            values[:, 0],
            reference,
            "test",
            metric.name,
            n_features,
            n_allowed,
            can_differ=metric.can_differ(data),
            weights=data.query_weights,
            **fields,
        )
        for reference in (values[:, 1], chance)
    )
    return verdict.with_chance(against_chance)


def short(value: float) -> str:
    """Return a number to three decimal places, without the leading zero."""
    text = f"{value:.3f}"
    return text[1:] if text.startswith("0.") else text


def signed(value: float) -> str:
    """Return a number as `short` does, with a minus sign if it is negative."""
    sign = "−" if round(value, 3) < 0 else ""
    return f"{sign}{short(abs(value))}"
