"""How many features, and how many of noise, does each rule choose from the same fronts, and how well do they rank?

    python tests/benchmarks/choice.py [--problems planted web mq2008 ohsumed shop.toml] [--seeds 11] [--data DIR]

A problem is the name of a shipped one or a problem file. Each seed makes other data, or deals the queries of all parts
anew (60 % for training, 20 % each for validation and test), and searches once: RankRLS, the staircase search, no
instance selection. All rules choose from this front. Differences from "validation" are paired by seed, with their
standard errors. Never fails a build.
"""

from __future__ import annotations

import frame
import numpy as np
from rich.table import Table

from moerank.data import RankingData
from moerank.data.folds import split_queries
from moerank.mofsrank import MOFSRank
from moerank.mofsrank.objectives import choose_member, values_of
from moerank.runs.problem import load_problem
from moerank.statistics import mean_and_error

RULES = ("validation", "half-se", "one-se", "knee", "train")
NOISE = ("noise", "uniform", "tail", "count", "query", "ab_signal")
"""How the names of features that do not matter begin, in synthetic data."""


def parts_of(name, seed, folder):
    """Return the training, validation and test part of one draw of a problem, and its metric."""
    settings = {"planted": {"data.n_queries": 300}, "web": {"data.queries": 150}}.get(name, {})
    drawn = load_problem(name, settings | {"data.seed": seed} if settings else {})
    parts = drawn.load_fold(1, folder)
    if not settings:
        X, y, qid = (np.concatenate([getattr(part, field) for part in parts]) for field in ("X", "y", "qid"))
        parts = split_queries(RankingData(X, y, qid, parts[0].feature_names), seed=seed)
    return parts, drawn.metric.make()


def chosen(name, seed, folder):
    """Return for each rule the number of features, of noise features, and the test metric of its choice."""
    (train, vali, test), metric = parts_of(name, seed, folder)
    solver = MOFSRank(metric=metric, algorithm="staircase", instance_selection=False, random_state=seed)
    solver.fit(train, validation=vali)
    noise = np.array([str(feature).startswith(NOISE) for feature in train.feature_names])
    sizes, rankers = solver.front_["n_features"].to_numpy(), solver.front_rankers_
    by_part = {part: values_of(rows, metric, rankers) for part, rows in (("train", train), ("validation", vali))}
    rows = []
    for rule in RULES:
        values = by_part["train" if rule == "train" else "validation"]
        member = choose_member(rule, sizes, values.mean(axis=0), values)
        scores = rankers.take(np.array([member])).scores(test.X)
        support = solver.front_support_[member]
        rows.append((support.sum(), support[noise].sum(), metric.score(test, scores)[0]))
    print(name, seed, np.round(rows, 4).tolist(), flush=True)
    return rows


def main():
    arguments = frame.arguments(__doc__, problems=["planted", "web", "mq2008", "ohsumed"], seeds=11)
    table = Table("problem", "rule", "features", "noise", "test", "− validation")
    for name in arguments.problems:
        runs = np.array([chosen(name, seed, arguments.data) for seed in range(arguments.seeds)], float)
        for i, rule in enumerate(RULES):
            features, noise, test = runs[:, i].mean(axis=0)
            difference, error = mean_and_error(runs[:, i, 2] - runs[:, 0, 2])
            against = f"{difference:+.4f} ± {error:.4f}" if i else ""
            table.add_row("" if i else name, rule, f"{features:.1f}", f"{noise:.1f}", f"{test:.4f}", against)
    frame.show(table, 100)


if __name__ == "__main__":
    main()
