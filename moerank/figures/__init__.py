"""Figures of a run, drawn from its result alone."""

from moerank.figures.convergence import convergence_figure
from moerank.figures.descent import descent_figure
from moerank.figures.features import features_figure
from moerank.figures.front import front_figure
from moerank.figures.style import save_figure

__all__ = ["convergence_figure", "descent_figure", "features_figure", "front_figure", "save_figure"]
