"""Limits of a y axis that panels share, so that a few poor values do not flatten all lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["beyond", "limits_of"]

Values = Mapping[str, NDArray[np.float64]]


def limits_of(values: Values, always: Sequence[float] = ()) -> tuple[float, float]:
    """Return limits for values of which larger ones are better, with a margin.

    The poorest twentieth of the values, such as those of many solvers with a single feature, gets at most half of the
    axis; what is poorer still lies beyond. The best value of every solver is inside nevertheless.

    Parameters
    ----------
    values : mapping of str to ndarray
        What is drawn of each solver, by number of features; NaN is not drawn.
    always : sequence of float
        Further values that must be inside.
    """
    drawn = np.concatenate([*values.values(), np.asarray(always, float)])
    drawn = drawn[np.isfinite(drawn)]
    poorest = np.quantile(drawn, 0.05)
    low = max(drawn.min(), poorest - (drawn.max() - poorest))
    low = min([low, *always, *(np.nanmax(value) for value in values.values() if np.isfinite(value).any())])
    margin = 0.05 * (drawn.max() - low) or 0.01
    return float(low - margin), float(drawn.max() + margin)


def beyond(values: Values, limits: tuple[float, float]) -> list[str]:
    """Return the solvers with values beyond the limits."""
    low, high = limits
    return [solver for solver, value in values.items() if ((value < low) | (value > high)).any()]
