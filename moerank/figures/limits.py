"""Limits of a y axis that panels share, so that a few poor values do not flatten all lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["beyond", "far_below", "limits_of"]

Values = Mapping[str, NDArray[np.float64]]

FAR = 3.0
"""Distances between the quartiles below the lower one where a solver would flatten all others."""

FEWEST = 9
"""Of fewer solvers each one counts, however poor."""


def far_below(best: Mapping[str, float]) -> dict[str, float]:
    """Return the solvers, with their value, that lie so far below the others that an axis cannot show both.

    They are below the lower quartile of the solvers by more than three times the distance of the quartiles, and would
    make the axis of the others longer by more than half.

    Parameters
    ----------
    best : mapping of str to float
        One value of each solver; larger is better.
    """
    if len(best) < FEWEST:
        return {}
    lower, upper = np.quantile(list(best.values()), (0.25, 0.75))
    least = lower - FAR * (upper - lower) if upper > lower else -np.inf
    others = [value for value in best.values() if value >= least]
    edge = min(others) - 0.5 * (max(others) - min(others))
    return {solver: value for solver, value in best.items() if value < min(least, edge)}


def limits_of(values: Values, always: Sequence[float] = ()) -> tuple[float, float]:
    """Return limits for values of which larger ones are better, with a margin.

    The poorest twentieth of the values, such as those of many solvers with a single feature, gets at most half of the
    axis; what is poorer still lies beyond. The best value of every solver is inside nevertheless, but for those
    `far_below`.

    Parameters
    ----------
    values : mapping of str to ndarray
        What is drawn of each solver, by number of features; NaN is not drawn.
    always : sequence of float
        Further values that must be inside.
    """
    best = {solver: float(np.nanmax(value)) for solver, value in values.items() if np.isfinite(value).any()}
    shown = best.keys() - far_below(best)
    drawn = np.concatenate([*(value for solver, value in values.items() if solver in shown), np.asarray(always, float)])
    drawn = drawn[np.isfinite(drawn)]
    poorest = np.quantile(drawn, 0.05)
    low = max(drawn.min(), poorest - (drawn.max() - poorest))
    low = min([low, *always, *(best[solver] for solver in shown)])
    margin = 0.05 * (drawn.max() - low) or 0.01
    return float(low - margin), float(drawn.max() + margin)


def beyond(values: Values, limits: tuple[float, float]) -> list[str]:
    """Return the solvers with values beyond the limits."""
    low, high = limits
    return [solver for solver, value in values.items() if ((value < low) | (value > high)).any()]
