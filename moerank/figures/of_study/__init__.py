"""The figures of a study, each in its file: a new file here is a new figure everywhere."""

from collections.abc import Mapping

from moerank.figures.figure import FigureFolder, StudyFigure

__all__ = ["FIGURES"]

FIGURES: Mapping[str, StudyFigure] = FigureFolder(__name__, __path__, StudyFigure)
"""The figures of a study by name, for the command line, reports, recipes and tests."""
