"""The verdict on a selection: the loss of the chosen ranker against the same ranker on all features."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, Field, computed_field, model_validator

from moerank.statistics import compare_paired, equivalence_p

__all__ = ["LEVEL", "MARGIN", "Part", "Verdict", "detected", "judge"]

Part: TypeAlias = Literal["test", "validation"]

Finding: TypeAlias = Literal["loss", "gain", "none"]

MARGIN = 0.005
"""Default of the largest difference of a metric that does not matter in practice."""

LEVEL = 0.05
"""Level of the tests."""

ENOUGH = 30
"""A verdict on fewer queries says that they are too few."""


class Verdict(BaseModel):
    """A selection against the same ranker on all features that were allowed, query by query.

    Attributes
    ----------
    part : {"test", "validation"}
        The queries. Validation queries chose the selection, so their verdict is optimistic.
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
        An objection of the validation queries to the choice; empty without one. Test queries never advise.
    against : str
        The ranker on all features, with its parameters; empty for the backend of the search that found the selection.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    part: Part
    metric: str
    n_queries: Annotated[int, Field(ge=1)]
    n_features: Annotated[int, Field(ge=0)]
    n_allowed: Annotated[int, Field(ge=1)]
    difference: float
    error: Annotated[float, Field(ge=0)] | None
    p: Annotated[float, Field(ge=0, le=1)]
    margin: Annotated[float, Field(gt=0)]
    p_equivalent: Annotated[float, Field(ge=0, le=1)]
    advice: str = ""
    against: str = ""

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, values: Any, read: Any) -> Any:
        """Check the stored finding and sentence, which follow from the numbers, against them."""
        if not isinstance(values, dict):
            return read(values)
        said = {name: values[name] for name in ("finding", "sentence") if name in values}
        verdict = read({name: value for name, value in values.items() if name not in said})
        for name, text in said.items():
            if text != getattr(verdict, name):
                raise ValueError(f"{name} is {text!r}, but the numbers say {getattr(verdict, name)!r}")
        return verdict

    @computed_field  # type: ignore[prop-decorator]
    @property
    def finding(self) -> Finding:
        """The result of the t test at the level of .05."""
        return detected(self.difference, self.p)

    @property
    def equivalent(self) -> bool:
        """Whether the difference is shown to lie within the margin, at the level of .05."""
        return self.p_equivalent < LEVEL

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sentence(self) -> str:
        """The verdict in words."""
        return (
            f"{self.n_features} of {self.n_allowed} features; {self.outcome}{'. ' + self.advice if self.advice else ''}"
        )

    @property
    def outcome(self) -> str:
        """The result of the comparison, without the sizes of the two selections."""
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
