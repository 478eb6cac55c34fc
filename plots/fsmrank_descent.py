"""FSMRank against sub-gradients on its problem: how fast both come down (Lai et al., 2013, Figure 5).

    python plots/fsmrank_descent.py [--data DIR]

Draws `fsmrank-descent-mq2008.png` and `fsmrank-descent-ohsumed.png` beside this file, from the first fold's training
queries, at lambda1 = lambda2 = 1e-3. The sub-gradients take the best of three first steps.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import ArrayLike

from moerank.figures.style import LINES, WIDTH, in_style, save_figure
from moerank.rankers import FSMRank
from moerank.selectors import FSMRankSubgradient
from moerank.studies.problem import load_problem

STEPS = 400
LAMBDA = 1e-3
ETA0 = (0.3, 1.0, 3.0)


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


def main() -> None:
    """Draw both data sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with MQ2008/ and OHSUMED/, else MOERANK_DATA")
    data = parser.parse_args().data
    for name in ("mq2008", "ohsumed"):
        train, _, _ = load_problem(name).load_fold(1, data)
        given = dict(X=train.X, y=train.y, qid=train.qid)
        minimum = FSMRank(LAMBDA, LAMBDA, tol=1e-13, max_iter=20_000).fit(**given).objectives_.min()
        ours = FSMRank(LAMBDA, LAMBDA, tol=0.0, max_iter=STEPS).fit(**given)
        others = [FSMRankSubgradient(LAMBDA, LAMBDA, eta0, STEPS).fit(**given) for eta0 in ETA0]
        best = min(others, key=lambda solver: solver.objectives_.min())
        curves = {"FSMRank": ours.objectives_, f"Sub-gradient, first step {best.eta0:g}": best.objectives_}
        save_figure(descent_figure(curves, minimum), Path(__file__).with_name(f"fsmrank-descent-{name}.png"))


if __name__ == "__main__":
    main()
