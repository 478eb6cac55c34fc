"""Figures of one run, one file each; a new file adds a figure to every run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from moerank.figures.figure import FigureFolder, RunFigure

if TYPE_CHECKING:
    from moerank.studies.result import Result

__all__ = ["RUN_FIGURES", "draw_run_figures"]

RUN_FIGURES: Mapping[str, RunFigure] = FigureFolder(__name__, __path__)
"""The figures of one run by the names of their files."""


def draw_run_figures(result: Result, folder: Path) -> list[Path]:
    """Write all figures that have something to show of a run into a folder, as png, and return their paths."""
    from moerank.figures.style import save_figure

    shown = {name: figure for name, figure in RUN_FIGURES.items() if figure.shows(result)}
    return [save_figure(figure.draw(result), folder / f"{name}.png") for name, figure in shown.items()]
