"""Accuracy of RankNystrom and RankFourier against the number of components (Chen et al., 2017, Figure 2).

    python plots/kernel_accuracy.py [PROBLEM] [--data DIR] [--sizes 10,20,50,100,200,500] [--out FOLDER]

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
from moerank.runs.problem import load_problem

SEEDS = 5
RANKERS = {"RankNystrom": RankNystrom, "RankFourier": RankFourier}


def title(components, comparisons):
    """Say for each ranker in which metrics all draws are above the linear ranker, and in which all are below it.

    `comparisons` has the values of the draws and the value of the linear ranker by the name of the ranker and metric.
    """
    parts = []
    for name, by_metric in comparisons.items():
        above = [metric for metric, (draws, linear) in by_metric.items() if min(draws) > linear]
        below = [metric for metric, (draws, linear) in by_metric.items() if max(draws) < linear]
        where = [
            f"{word} in {', '.join(metrics)}"
            for word, metrics in (("above", above), ("below", below))
            if metrics
        ]
        parts.append(f"{name} {' and '.join(where) or 'on both sides in each metric'}")
    return f"With {components} components, all draws against the linear ranker: {'; '.join(parts)}"


def main():
    """Train and draw what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "problem", nargs="?", default="mq2008", help="problem file, or the name of a shipped one"
    )
    parser.add_argument("--data", type=Path, help="folder of the data")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent, help="folder of the figure"
    )
    parser.add_argument("--sizes", default="10,20,50,100,200,500", help="numbers of components")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    problem = load_problem(arguments.problem)
    train, _, test = problem.load_fold(1, arguments.data)
    varying = train.X.max(axis=0) > train.X.min(axis=0)
    train, test = train.with_features(varying), test.with_features(varying)
    convention = problem.metric.convention or "usual"
    metrics = {
        "NDCG@1": NDCG(1, convention=convention),
        "NDCG@3": NDCG(3, convention=convention),
        "MeanNDCG": MeanNDCG(convention=convention),
        "MAP": MAP(),
    }
    scores = {
        name: [
            [maker(size, random_state=seed).fit(train).predict(test) for seed in range(SEEDS)]
            for size in sizes
        ]
        for name, maker in RANKERS.items()
    }
    linear = RankSVM().fit(train).predict(test)
    comparisons = {name: {} for name in scores}
    with in_style():
        figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
        for axes, (name_of_metric, metric) in zip(
            figure.subplots(2, 2, sharex=True).ravel(), metrics.items(), strict=True
        ):
            of_linear = metric.score(test, linear)
            for number, (name, by_size) in enumerate(scores.items()):
                values = np.array(
                    [[metric.score(test, predicted) for predicted in draws] for draws in by_size]
                )
                comparisons[name][name_of_metric] = (values[-1], of_linear)
                look = solver_style(number)
                axes.fill_between(
                    sizes,
                    values.min(axis=1),
                    values.max(axis=1),
                    color=look["color"],
                    alpha=0.15,
                    linewidth=0,
                )
                axes.plot(sizes, values.mean(axis=1), label=name, **look)
            axes.axhline(of_linear, color="0.3", linestyle=":", label="linear RankSVM")
            axes.set_xscale("log")
            axes.set_xticks([10, 50, 100, 500], ["10", "50", "100", "500"])
            axes.minorticks_off()
            axes.set_title(name_of_metric, loc="left", fontsize=8)
        figure.supxlabel("Components, on a logarithmic axis", fontsize=8)
        put_title(figure, title(sizes[-1], comparisons), figure.axes[0])
    save_figure(figure, arguments.out / f"kernel-accuracy-{problem.name}.png")


if __name__ == "__main__":
    main()
