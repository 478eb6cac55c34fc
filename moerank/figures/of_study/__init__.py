"""Figures of a study, one file each; a new file adds a figure to plots and reports."""

from collections.abc import Mapping

from moerank.figures.figure import FigureFolder, StudyFigure

__all__ = ["FIGURES"]

FIGURES: Mapping[str, StudyFigure] = FigureFolder(__name__, __path__)
"""The figures of a study by name, for the command line, reports, recipes and tests."""
