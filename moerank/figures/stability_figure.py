"""Frequencies of features on halves of the training queries, and how they change with the number of features."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.figures.style import CHOSEN, GREY, WIDTH, finished, in_style
from moerank.studies.evidence import Stability

MOST_BARS = 20
"""Largest number of features on a page; the most frequent are shown."""

LETTERS = 24
"""Of a name; a longer one is cut."""


def stability_figure(stability: Stability) -> Figure:
    """Draw the frequency of each feature at the size that is judged, and a map of features × sizes beside it.

    The title is the finding. Features that reach the threshold are orange. In the map, black is all halves and white is
    none; lines enclose the size that is judged.

    Parameters
    ----------
    stability : Stability

    Returns
    -------
    Figure
        The most frequent features, at most 20, with further sentences below.

    Examples
    --------
    >>> import moerank as mr
    >>> train, vali, _ = mr.load_planted_fold(1)
    >>> len(stability_figure(mr.stability(mr.GreedyRankRLS(3), train, vali, pairs=2)).axes)
    2
    """
    order = stability.order[:MOST_BARS]
    colours = [CHOSEN if feature in stability.selected else "0.65" for feature in order]
    rows = np.arange(len(order))
    with in_style():
        figure = Figure(figsize=(WIDTH, WIDTH), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        left.barh(rows, [stability.frequency[feature] for feature in order], color=colours, height=0.7)
        left.axvline(stability.threshold, color=GREY, linewidth=0.9, linestyle="--")
        left.set_yticks(rows, [f"{stability.feature_names[feature]:.{LETTERS}}" for feature in order], fontsize=6)
        left.set(xlim=(0, 1), ylim=(len(order) - 0.5, -0.5))
        left.set_xlabel(f"Share of {2 * stability.pairs} halves,\nsize at most {stability.size}")
        frequencies = np.array(stability.frequencies)[:, order].T
        extent = (0.5, len(stability.frequencies) + 0.5, len(order) - 0.5, -0.5)
        right.imshow(frequencies, cmap="Greys", vmin=0, vmax=1, aspect="auto", extent=extent)
        for edge in (stability.size - 0.5, stability.size + 0.5):
            right.axvline(edge, color=CHOSEN, linewidth=0.9)
        right.set_xlabel("Share (grey) by largest\nnumber of features")
        right.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        for axes in (left, right):
            axes.tick_params(axis="y", length=0)
        finding, *risk = stability.sentences()
        note = "".join(f"{sentence}. " for sentence in risk)
        return finished(figure, left, 0.3 + 0.12 * len(order), finding, note)
