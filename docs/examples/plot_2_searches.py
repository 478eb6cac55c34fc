"""
Two searches side by side
=========================

This example compares how fast NSGA-II and the staircase search find a good front of feature subsets.
"""

import matplotlib.pyplot as plt

import moerank as mr
from moerank.evolution import BIT_SEARCHES, make_algorithm, search
from moerank.figures.style import in_style
from moerank.statistics import hypervolume

# %%
# Both search the same pymoo problem: number of features against training error, where RankRLS trains each subset.

train, vali, _ = mr.load_digits_fold(1)
backend = mr.RankRLS().tune(train, vali)
stage = mr.FeatureSelection(train, backend=backend, metric=mr.NDCG(10))

histories = {}
for name in ("nsga2", "staircase"):
    operators = stage.operators()
    if name in BIT_SEARCHES:
        del operators["sampling"]  # it starts from subsets of its own
    result = search(stage, make_algorithm(name, 50, operators), ("n_eval", 2000), seed=1)
    histories[name] = [(step.n_eval, hypervolume(step.front, (65, 1.0))) for step in result.history]

# %%
# The hypervolume is the area that the front dominates. The staircase search keeps a member of each size and changes
# it by a few bits, which helps while there are few evaluations.

with in_style():
    figure, axes = plt.subplots(figsize=(5, 2.8), layout="constrained")
    for name, steps in histories.items():
        axes.plot(*zip(*steps, strict=True), label=name)
    axes.set(xlabel="Evaluations", ylabel="Hypervolume of the front")
    axes.legend()
