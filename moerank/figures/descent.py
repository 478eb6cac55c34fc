"""Descent: how fast optimisation methods come down to the minimum of the objective they share."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import ArrayLike

from moerank.figures.style import LINES, WIDTH, in_style

__all__ = ["descent_figure"]


def descent_figure(histories: Mapping[str, ArrayLike], minimum: float) -> Figure:
    """Draw the relative gap to the minimum after each step, on a logarithmic scale.

    Parameters
    ----------
    histories : mapping of str to array-like
        For each method, by the name in the legend, its objective at the start and after each step: ``objectives_`` of
        `FSMRank` and `FSMRankSubgradient`, for instance. At most three.
    minimum : float
        The least objective there is, positive. Points that have reached it cannot be drawn, and are left out.
    """
    with in_style():
        figure = Figure(figsize=(WIDTH, 2.4), layout="constrained")
        axes = figure.subplots()
        for (name, history), look in zip(histories.items(), LINES.values(), strict=False):
            gap = np.asarray(history, dtype=float) / minimum - 1.0
            steps = np.flatnonzero(gap > 0.0)
            axes.plot(steps, gap[steps], label=name, color=look["color"], linestyle=look["linestyle"])
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(_power_of_ten))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("Step")
        axes.set_ylabel("Gap to the minimum, relative")
        figure.legend(loc="outside upper center", ncols=len(histories))
    return figure


def _power_of_ten(value: float, _: object) -> str:
    return "10" + f"{np.log10(value):.0f}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
