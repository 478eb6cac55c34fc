"""Convergence: hypervolume of the front of each stage over the generations."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.figures.figure import RunFigure
from moerank.figures.style import LINES, WIDTH, in_style
from moerank.studies.result import Result

__all__ = ["FIGURE"]


def convergence_figure(result: Result) -> Figure:
    """Draw the hypervolume over the generations, one panel per stage; a solver without generations is a ValueError."""
    stages = result.convergence
    if not stages:
        raise ValueError(f"{result.solver} has no generations, and so no convergence to draw")
    with in_style():
        figure = Figure(figsize=(WIDTH, 0.6 + 1.0 * len(stages)), layout="constrained")
        panels = figure.subplots(len(stages), squeeze=False)[:, 0]
        for axes, (stage, history) in zip(panels, stages.items(), strict=True):
            axes.plot(history.generation, history.hypervolume, color=LINES["train"]["color"])
            axes.set_title(stage.replace("_", " ").capitalize(), loc="left")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
            axes.yaxis.set_major_locator(MaxNLocator(nbins=3))
        panels[-1].set_xlabel("Generation")
        figure.supylabel("Hypervolume of the front", fontsize=8)
    return figure


FIGURE = RunFigure(convergence_figure, shows=lambda result: bool(result.convergence))
