"""Convergence: hypervolume of the front of each stage over the generations."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from moerank.figures.panels import boxed
from moerank.figures.style import GREY, LINES, WIDTH, put_note, put_ticks, put_title, widen
from moerank.studies.result import Convergence, Result


def convergence_figure(result: Result) -> Figure:
    """Draw the hypervolume over the generations, one panel per stage.

    The title of a panel says after which generation the hypervolume stayed within 1% of its last value. A result
    without generations raises a ValueError.
    """
    stages = result.convergence
    if not stages:
        raise ValueError(f"{result.solver} has no generations, so there is no convergence to draw")
    figure = Figure(figsize=(WIDTH, 0.9 + 1.0 * len(stages)), layout="constrained")
    panels = figure.subplots(len(stages), squeeze=False)[:, 0]
    for axes, (stage, history) in zip(panels, stages.items(), strict=True):
        axes.plot(history.generation, history.hypervolume, color=LINES["train"]["color"])
        axes.axvline(_settled(history), color=GREY, linewidth=0.7, linestyle=":")
        axes.set_title(f"{stage.replace('_', ' ').capitalize()}: within 1% after {_settled(history)}", loc="left")
        widen(axes)
        put_ticks(axes)
        put_ticks(axes, "y", 3, integer=False)
    panels[-1].set_xlabel("Generation")
    (stage, history), last = max(stages.items(), key=lambda item: _settled(item[1])), "its final hypervolume"
    when = f"{_settled(history)} of {history.generation[-1]} generations"
    put_title(figure, f"The slowest stage, {stage.replace('_', ' ')}, was within 1% of {last} after {when}")
    figure.supylabel("Hypervolume of the front", fontsize=8)
    put_note(figure, boxed(result, stages))
    return figure


def _settled(history: Convergence) -> int:
    """Return the first generation after which the hypervolume stays within 1% of its last value."""
    values = np.array(history.hypervolume)
    outside = np.flatnonzero(np.abs(values - values[-1]) > 0.01 * abs(values[-1]))
    return int(history.generation[outside[-1] + 1 if len(outside) else 0])
