"""Certificate: the members of a front beside the best subsets of their size."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from moerank.figures.style import GREY, LINES, RING, WIDTH, put_ticks
from moerank.studies.result import Result


def certificate_figure(result: Result) -> Figure:
    """Draw the training loss of the members' features above the proved optimum, and their metric below the best one.

    A grey band, where there is one, reaches from the least loss down to its bound.
    """
    certificate, metric = result.certificate, result.metrics[0]
    assert certificate is not None
    sizes = np.array([len(member.features) for member in result.front])
    values = np.array([member.scores["train"][metric] for member in result.front])
    look = {"marker": "o", "linestyle": "none", "markersize": 3, "color": LINES["train"]["color"]}
    figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(certificate.sizes, certificate.best, color="black", linewidth=1, label="best subset")
    if len(certificate.proved) < len(certificate.sizes):
        left.fill_between(certificate.sizes, certificate.bounds, certificate.best, color="0.8", label="not proved")
    left.plot(sizes, certificate.losses, label="members", **look)
    right.plot(sizes, values, label="_members", **look)
    best, k = 1.0 - np.array(certificate.errors), np.arange(1, len(certificate.errors) + 1)
    right.step(k, best, where="post", color=GREY, linewidth=0.9, linestyle="--")
    right.plot(k, best, "_", color="black", markersize=9, label="best of all subsets")
    for axes, y, label in (
        (left, certificate.losses, "Training loss of RankRLS"),
        (right, values, f"{metric} (training)"),
    ):
        axes.plot(sizes[[result.chosen]], [y[result.chosen]], label="chosen" if axes is left else "_chosen", **RING)
        axes.set(xlabel="Number of features", ylabel=label)
        put_ticks(axes, nbins=5)
    figure.legend(loc="outside upper center", ncols=3, columnspacing=1.0)
    return figure
