"""Accuracy of RankNystrom and RankFourier against the number of components (Chen et al., 2017, Figure 2).

    python plots/kernel_accuracy.py [PROBLEM] [--data DIR] [--out FOLDER]

Draws `kernel-accuracy-PROBLEM.png` from the test queries of the first fold, by default of mq2008: means and ranges of
five draws of the map, and the linear RankSVM as a dotted line. C and gamma have their defaults.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from moerank.figures.panels import solver_style
from moerank.figures.style import WIDTH, in_style, put_title, save_figure
from moerank.metrics import MAP, NDCG, MeanNDCG
from moerank.rankers import RankFourier, RankNystrom, RankSVM
from moerank.studies.problem import load_problem

SIZES = (10, 20, 50, 100, 200, 500)
SEEDS = 5
RANKERS = {"RankNystrom": RankNystrom, "RankFourier": RankFourier}

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("problem", nargs="?", default="mq2008", help="problem file, or the name of a shipped one")
parser.add_argument("--data", type=Path, help="folder of the data")
parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the figure")
arguments = parser.parse_args()
problem = load_problem(arguments.problem)
train, _, test = problem.load_fold(1, arguments.data)
kept = train.X.max(axis=0) > train.X.min(axis=0)
train, test = train.with_features(kept), test.with_features(kept)
convention = problem.metric.convention or "usual"
metrics = {
    "NDCG@1": NDCG(1, convention=convention),
    "NDCG@3": NDCG(3, convention=convention),
    "MeanNDCG": MeanNDCG(convention=convention),
    "MAP": MAP(),
}
scores = {
    name: [[maker(size, random_state=seed).fit(train).predict(test) for seed in range(SEEDS)] for size in SIZES]
    for name, maker in RANKERS.items()
}
linear = RankSVM().fit(train).predict(test)
exceeding = set()
with in_style():
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    for axes, (title, metric) in zip(figure.subplots(2, 2, sharex=True).ravel(), metrics.items(), strict=True):
        for number, (name, by_size) in enumerate(scores.items()):
            values = np.array([[metric.score(test, predicted) for predicted in draws] for draws in by_size])
            look = solver_style(number)
            low, high = values.min(axis=1), values.max(axis=1)
            exceeding |= {title} if low[-1] > metric.score(test, linear) else set()
            axes.fill_between(SIZES, low, high, color=look["color"], alpha=0.15, linewidth=0)
            axes.plot(SIZES, values.mean(axis=1), label=name, **look)
        axes.axhline(metric.score(test, linear), color="0.3", linestyle=":", label="linear RankSVM")
        axes.set_xscale("log")
        axes.set_xticks([10, 50, 100, 500], ["10", "50", "100", "500"])
        axes.minorticks_off()
        axes.set_title(title, loc="left", fontsize=8)
    figure.supxlabel("Components", fontsize=8)
    what = f"{' and '.join(sorted(exceeding)) or 'no metric'} exceed{'s' if len(exceeding) < 2 else ''}"
    finding = f"With {SIZES[-1]} components {what} the linear ranker's value in all draws of a map"
    put_title(figure, finding, figure.axes[0])
save_figure(figure, arguments.out / f"kernel-accuracy-{problem.name}.png")
