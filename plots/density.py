"""Densities of the best and of the worst feature by FS-ED, for each relevance label (Gupta and Rosso, 2012, Figure 3).

    python plots/density.py [PROBLEM] [--data DIR] [--out FOLDER]

Draws `density-PROBLEM.png` from the training queries of the first fold; by default of ohsumed. Constant features are
left out.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from moerank import FSED
from moerank.data import RankingData
from moerank.figures.panels import COLOURS, DASHES
from moerank.figures.style import WIDTH, in_style, put_title, save_figure
from moerank.runs.problem import load_problem


def density_figure(train: RankingData, features: list[int]) -> Figure:
    """Draw the density of each feature over the documents of each relevance label."""
    with in_style():
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        for axes, feature in zip(figure.subplots(2, 1), features, strict=True):
            values = train.X[:, feature]
            at = np.linspace(values.min(), values.max(), 200)
            for label, colour, dashes in zip(np.unique(train.y), COLOURS, DASHES, strict=False):
                sample = values[train.y == label]
                if np.ptp(sample) > 0:
                    look = {"color": colour, "linestyle": dashes, "label": f"relevance {label}"}
                    axes.plot(at, gaussian_kde(sample, "silverman")(at), **look)
            axes.set_xlabel(f"Feature {train.feature_names[feature]}")
            axes.set_ylabel("Density")
        first, second = (f"{train.feature_names[j]} {{}}by {shift(train, j):.2f}" for j in features)
        finding = f"Feature {first.format('separates the labels ')} standard deviations, feature {second.format('')}"
        put_title(figure, finding, figure.axes[0])
    return figure


def shift(train: RankingData, feature: int) -> float:
    """Return the distance between the means of the documents with the largest and with the smallest label."""
    values = train.X[:, feature]
    high, low = (values[train.y == label].mean() for label in (train.y.max(), train.y.min()))
    return float(abs(high - low) / values.std())


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument(
    "problem", nargs="?", default="ohsumed", help="problem file, or the name of a shipped one"
)
parser.add_argument("--data", type=Path, help="folder of the data")
parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the figure")
arguments = parser.parse_args()
problem = load_problem(arguments.problem)
train, validation, _ = problem.load_fold(1, arguments.data)
selector = FSED().fit(train, validation=validation)
best, worst = int(selector.order_[0]), int(selector.order_[-1])
save_figure(density_figure(train, [best, worst]), arguments.out / f"density-{problem.name}.png")
