"""Stability: how often halves of the training queries select each feature."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from moerank.figures.style import CHOSEN, GREY, WIDTH, finished, in_style
from moerank.studies.evidence import Stability

MOST_BARS = 20
"""Largest number of features in the figure, the most frequent ones."""

LETTERS = 24
"""Longest name of a feature, in letters; a longer one is cut."""


def stability_figure(stability: Stability) -> Figure:
    """Draw the frequency of each feature, with the threshold as a dashed line.

    The title is the finding. Features that reach the threshold are orange.

    Parameters
    ----------
    stability : Stability
        The result of `moerank.studies.evidence.stability`.

    Returns
    -------
    Figure
        The most frequent features, at most 20, with the further sentences of `Stability.sentences` in a note below. The
        figure is as wide as a column of text, `WIDTH` inches, and its height grows with the number of bars.

    Notes
    -----
    Features that no half selects, and those that a limit includes in every selection, have no bar.
    Names with more than 24 letters are cut.

    Examples
    --------
    >>> import moerank as mr
    >>> train, vali, _ = mr.load_planted_fold(1)
    >>> len(stability_figure(mr.stability(mr.GreedyRankRLS(3), train, vali, pairs=2)).axes)
    1
    """
    order = stability.order[:MOST_BARS]
    colours = [CHOSEN if feature in stability.selected else "0.65" for feature in order]
    rows = np.arange(len(order))
    with in_style():
        figure = Figure(figsize=(WIDTH, WIDTH), layout="constrained")
        axes = figure.subplots()
        axes.barh(rows, [stability.frequency[feature] for feature in order], color=colours, height=0.7)
        axes.axvline(stability.threshold, color=GREY, linewidth=0.9, linestyle="--")
        axes.set_yticks(rows, [f"{stability.feature_names[feature]:.{LETTERS}}" for feature in order], fontsize=6)
        axes.set(xlim=(0, 1), ylim=(len(order) - 0.5, -0.5))
        axes.set_xlabel(f"Share of {2 * stability.pairs} halves, size at most {stability.size}")
        axes.tick_params(axis="y", length=0)
        finding, *risk = stability.sentences()
        note = "".join(f"{sentence}. " for sentence in risk)
        return finished(figure, axes, 0.3 + 0.12 * len(order), finding, note)
