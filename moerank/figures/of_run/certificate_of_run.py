"""Certificate: the members of a front beside the best subsets of their size."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from moerank.figures.figure import RunFigure
from moerank.figures.style import CHOSEN, GREY, LINES, WIDTH, in_style
from moerank.studies.result import Result


def certificate_figure(result: Result) -> Figure:
    """Draw the training loss of the members' features above the proved optimum, and their metric below the best one.

    A grey band, where there is one, reaches from the best loss known down to its bound.
    """
    certificate, metric = result.certificate, result.metrics[0]
    assert certificate is not None
    sizes = np.array([len(member.features) for member in result.front])
    values = np.array([member.scores["train"][metric] for member in result.front])
    look = {"marker": "o", "linestyle": "none", "markersize": 3, "color": LINES["train"]["color"]}
    with in_style():
        figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot(certificate.sizes, certificate.best, color="black", linewidth=1, label="best subset")
        if len(certificate.proved) < len(certificate.sizes):
            left.fill_between(certificate.sizes, certificate.bounds, certificate.best, color="0.8", label="not proved")
        left.plot(sizes, certificate.losses, label="members", **look)
        left.set_ylabel("Training loss of RankRLS")
        right.plot(sizes, values, label="_members", **look)
        best = 1.0 - np.array(certificate.errors)
        right.step(np.arange(1, len(best) + 1), best, where="post", color=GREY, linewidth=0.9, linestyle="--")
        right.plot(np.arange(1, len(best) + 1), best, "_", color="black", markersize=9, label="best of all subsets")
        right.set_ylabel(f"{metric} (training)")
        chosen = result.chosen
        for axes, value in ((left, certificate.losses[chosen]), (right, values[chosen])):
            ring = {"marker": "o", "markersize": 7, "fillstyle": "none", "color": CHOSEN, "linestyle": "none"}
            axes.plot([sizes[chosen]], [value], label="chosen" if axes is left else "_chosen", **ring)
            axes.set_xlabel("Number of features")
            axes.locator_params(axis="x", nbins=5, integer=True, steps=[1, 2, 5, 10])
        figure.legend(loc="outside upper center", ncols=3, columnspacing=1.0)
    return figure


FIGURE = RunFigure(certificate_figure, lambda result: result.certificate is not None)
