"""FSMRank against sub-gradients on its problem: the objective over processor seconds (Lai et al., 2013, Figure 5).

    python plots/fsmrank_descent.py [PROBLEM …] [--data DIR] [--out DIR]

Draws `fsmrank-descent-PROBLEM.png` from the first fold's training queries, at lambda1 = lambda2 = 1e-3. The
sub-gradients take the best of three first steps. Each point is a training that ends after 1, 2, 4, … 512 steps, the
fastest of three. The preference pairs, importances and similarities are there before.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from moerank import FSMRankSubgradient
from moerank.data import RankingData
from moerank.figures.style import LINES, WIDTH, in_style, put_title, save_figure
from moerank.rankers import FSMRank
from moerank.runs.problem import load_problem

PROBLEMS = ("mq2008", "ohsumed", "mslr")
STEPS = tuple(2**k for k in range(10))
LAMBDA = 1e-3
ETA0 = (0.3, 1.0, 3.0)

Curve = tuple[list[float], list[float]]


def curve(train: RankingData, solver: Callable[[int], FSMRank | FSMRankSubgradient]) -> Curve:
    """Return the seconds and the least objective of trainings of more and more steps."""
    solver(1)._learn(train)
    seconds, objectives = [], []
    for steps in STEPS:
        taken = []
        for _ in range(3):
            start = time.process_time()
            fitted = solver(steps)._learn(train)
            taken.append(time.process_time() - start)
        seconds.append(min(taken))
        objectives.append(float(fitted.objectives_.min()))
    return seconds, objectives


def descent_figure(curves: Mapping[str, Curve]) -> Figure:
    """Draw the objective over the seconds, on a logarithmic scale; at most three curves, by the names in the legend."""
    with in_style():
        figure = Figure(figsize=(WIDTH, 2.4), layout="constrained")
        axes = figure.subplots()
        for (name, points), look in zip(curves.items(), LINES.values(), strict=False):
            axes.plot(
                *points, label=name, color=look["color"], linestyle=look["linestyle"], marker="."
            )
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("Processor seconds of training")
        axes.set_ylabel("Training objective")
        put_title(figure, soonest(curves), axes)
    return figure


def soonest(curves: Mapping[str, Curve]) -> str:
    """Say after how many seconds each method is within 5 % and .1 % of the least objective of all."""
    least = min(min(objectives) for _, objectives in curves.values())
    parts = []
    for name, points in curves.items():
        times = [
            [t for t, value in zip(*points, strict=True) if value <= near * least]
            for near in (1.05, 1.001)
        ]
        when = [
            f"after {first[0]:.2g} s" if first else f"not in {points[0][-1]:.2g} s"
            for first in times
        ]
        parts.append(f"{name.partition(',')[0]} {' and '.join(when)}")
    return f"Within 5 % and 0.1 % of the least objective: {'; '.join(parts)}"


def others(eta0: float) -> Callable[[int], FSMRankSubgradient]:
    """Return the sub-gradients of a first step, as a function of the number of steps."""
    return lambda steps: FSMRankSubgradient(LAMBDA, LAMBDA, eta0, steps)


def main() -> None:
    """Draw every problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "problems", nargs="*", default=PROBLEMS, metavar="PROBLEM", help="by default %(default)s"
    )
    parser.add_argument(
        "--data", type=Path, help="folder with MQ2008/, OHSUMED/ and MSLR/, else MOERANK_DATA"
    )
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent, help="folder of the figures"
    )
    arguments = parser.parse_args()
    for name in arguments.problems:
        problem = load_problem(name)
        train, _, _ = problem.load_fold(1, arguments.data)
        ours = curve(train, lambda steps: FSMRank(LAMBDA, LAMBDA, steps, tol=0.0))
        eta0 = min(ETA0, key=lambda eta0: others(eta0)(STEPS[-1])._learn(train).objectives_.min())
        curves = {"FSMRank": ours, f"Sub-gradient, first step {eta0:g}": curve(train, others(eta0))}
        save_figure(descent_figure(curves), arguments.out / f"fsmrank-descent-{problem.name}.png")


if __name__ == "__main__":
    main()
