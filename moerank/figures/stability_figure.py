"""Stability: how often halves of the training queries select each feature."""

from __future__ import annotations

from matplotlib.figure import Figure

from moerank.figures.panels import ROW, rows_figure
from moerank.figures.style import CHOSEN, GREY, finished, in_style
from moerank.studies.evidence import Stability

MOST_BARS = 20
"""Largest number of features in the figure, the most frequent ones."""


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

    Examples
    --------
    >>> import moerank as mr
    >>> train, vali, _ = mr.load_planted_fold(1)
    >>> len(stability_figure(mr.stability(mr.GreedyRankRLS(3), train, vali, pairs=2)).axes)
    1
    """
    order = stability.order[:MOST_BARS]
    colours = [CHOSEN if feature in stability.selected else "0.65" for feature in order]
    with in_style():
        figure, axes, rows = rows_figure([stability.feature_names[feature] for feature in order])
        axes.barh(rows, [stability.frequency[feature] for feature in order], color=colours, height=0.7 * ROW)
        axes.axvline(stability.threshold, color=GREY, linewidth=0.9, linestyle="--")
        axes.set(xlim=(0, 1), xlabel=f"Share of {2 * stability.pairs} halves, size at most {stability.size}")
        finding, *risk = stability.sentences()
        return finished(figure, axes, axes.get_ylim()[0], finding, "".join(f"{sentence}. " for sentence in risk))
