"""Figures, drawn from results alone: of one run, and of a study."""

from moerank.figures.ablation import ablation_figure
from moerank.figures.accuracy import accuracy_figure
from moerank.figures.attainment import attainment_figure
from moerank.figures.convergence import convergence_figure
from moerank.figures.cost import cost_figure
from moerank.figures.descent import descent_figure
from moerank.figures.features import features_figure
from moerank.figures.frequency import frequency_figure
from moerank.figures.front import front_figure
from moerank.figures.fronts import fronts_figure
from moerank.figures.hypervolume import hypervolume_figure
from moerank.figures.ranks import ranks_figure
from moerank.figures.style import save_figure

__all__ = [
    "ablation_figure",
    "accuracy_figure",
    "attainment_figure",
    "convergence_figure",
    "cost_figure",
    "descent_figure",
    "features_figure",
    "frequency_figure",
    "front_figure",
    "fronts_figure",
    "hypervolume_figure",
    "ranks_figure",
    "save_figure",
]
