"""The verdict on a selection: what the ranker that will serve loses against the same ranker on all features."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from moerank.statistics import compare_paired, equivalence_p

__all__ = ["LEVEL", "MARGIN", "Part", "Verdict", "detected", "judge"]

Part: TypeAlias = Literal["test", "validation"]

Finding: TypeAlias = Literal["loss", "gain", "none"]

MARGIN = 0.005
"""A difference of a metric below which two rankers are alike in practice, unless the user names another."""

LEVEL = 0.05
"""The chance that is taken of finding a loss, a gain or an equivalence where there is none."""

ENOUGH = 30
"""Queries below which a verdict says that they are too few."""


@dataclass(frozen=True)
class Verdict:
    """A selection against the same ranker on all features that were allowed, query by query.

    Attributes
    ----------
    part : {"test", "validation"}
        The queries. Those of the validation part chose the selection, and so flatter it.
    metric : str
    n_queries : int
    n_features, n_allowed : int
        Features of the selection, and of the reference.
    difference : float
        Mean difference of the metric, selection − reference.
    error : float or None
        Its standard error; None for a single query.
    p : float
        Of the two-sided paired t test of no difference.
    margin : float
        Differences below it do not matter.
    p_equivalent : float
        Of the two one-sided t tests that the difference lies within ± margin, the larger.
    advice : str
        What validation says against the choice; empty if it says nothing. Test queries never have a say in it.
    against : str
        The ranker on all features, with its parameters; empty for the backend of the search that found the selection.
    """

    part: Part
    metric: str
    n_queries: int
    n_features: int
    n_allowed: int
    difference: float
    error: float | None
    p: float
    margin: float
    p_equivalent: float
    advice: str = ""
    against: str = ""

    @property
    def finding(self) -> Finding:
        """What the t test detects at the level of .05."""
        return detected(self.difference, self.p)

    @property
    def equivalent(self) -> bool:
        """Whether the difference is shown to lie within the margin, at the level of .05."""
        return self.p_equivalent < LEVEL

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        return (
            f"{self.n_features} of {self.n_allowed} features; {self.outcome}{'. ' + self.advice if self.advice else ''}"
        )

    @property
    def outcome(self) -> str:
        """What the comparison says, without what was compared."""
        spread = "" if self.error is None else f" ± {_short(self.error)}"
        found = {
            "loss": "a loss is detected",
            "gain": "a gain is detected",
            "none": "no detectable loss" if self.difference < 0 else "no detectable difference",
        }[self.finding]
        shown = "equivalent" if self.equivalent else "not shown equivalent"
        other = f" against {self.against} with all of them," if self.against else ""
        change = f"{_signed(self.difference)}{spread}"
        return (
            f"{self.metric} {change}{other} on {self.n_queries} {self.part} queries: {found}, {shown} within "
            f"{_short(self.margin)}{self._caution}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all that is known as plain values, the sentence among them."""
        return {**asdict(self), "sentence": self.sentence}

    @property
    def _caution(self) -> str:
        few = self.n_queries < ENOUGH
        if self.part == "validation":
            return f" (optimistic: these queries chose it{', and they are too few' if few else ''})"
        return " (too few queries to tell)" if few else ""


def detected(difference: float, p: float) -> Finding:
    """Return what a t test of no difference detects at the level of .05.

    Examples
    --------
    >>> detected(-0.01, 0.03), detected(0.01, 0.2)
    ('loss', 'none')
    """
    if p >= LEVEL or difference == 0:
        return "none"
    return "loss" if difference < 0 else "gain"


def judge(
    selection: ArrayLike,
    reference: ArrayLike,
    part: Part,
    metric: str,
    n_features: int,
    n_allowed: int,
    *,
    margin: float = MARGIN,
    advice: str = "",
    against: str = "",
) -> Verdict:
    """Compare a selection with its reference by the same queries.

    Parameters
    ----------
    selection, reference : array-like, shape (n_queries,)
        The metric of each query.
    part, metric, n_features, n_allowed, margin, advice, against
        See `Verdict`.

    Examples
    --------
    >>> verdict = judge(
    ...     [0.50, 0.70, 0.61, 0.2], [0.52, 0.70, 0.60, 0.2], "test", "NDCG@10", n_features=6, n_allowed=45
    ... )
    >>> verdict.sentence[:83]
    '6 of 45 features; NDCG@10 −.003 ± .006 on 4 test queries: no detectable loss, not s'
    """
    test = compare_paired(selection, reference)
    return Verdict(
        part=part,
        metric=metric,
        n_queries=len(np.atleast_1d(np.asarray(selection))),
        n_features=n_features,
        n_allowed=n_allowed,
        difference=test.difference,
        error=test.error if np.isfinite(test.error) else None,
        p=test.p,
        margin=margin,
        p_equivalent=equivalence_p(selection, reference, margin),
        advice=advice,
        against=against,
    )


def _short(value: float) -> str:
    """Return a number to three places without the zero in front."""
    text = f"{value:.3f}"
    return text[1:] if text.startswith("0.") else text


def _signed(value: float) -> str:
    sign = "−" if value < 0 else "+"
    return f"{sign}{_short(abs(value))}"
