"""
The choice of a member
======================

Four rules choose a member of one front: training error, validation, one standard error, and the bend of the front. The
test queries, which took no part, judge each choice.
"""

import textwrap

import matplotlib.pyplot as plt

import moerank as mr
from moerank.figures.style import in_style

train, vali, test = mr.load_digits_fold(2)
budget = {"generations": 20, "population": 60}
stages = {"instance_selection": False, "feature_selection": budget, "ensemble": False}

# %%
# The same seed gives the same front. Only the rule differs.

chosen = {}
for rule in ("train", "validation", "one-se", "knee"):
    solver = mr.MOFSRank(final=rule, random_state=0, **stages).fit(train, validation=vali)
    chosen[rule] = (int(solver.support_.sum()), solver.front_)
    print(textwrap.fill(f"{rule}: {solver.verdict(test).sentence}", 88))

# %%
# The training metric rises to the end of the front. The validation metric stops rising earlier.

with in_style():
    figure, axes = plt.subplots(figsize=(5, 2.8), layout="constrained")
    front = chosen["train"][1]
    axes.plot(front["n_features"], 1 - front["error"], marker="o", markersize=3, label="training")
    axes.plot(front["n_features"], front["validation"], marker="s", markersize=3, label="validation")
    for (rule, (size, _)), height in zip(chosen.items(), (0.39, 0.27, 0.15, 0.03), strict=True):
        axes.axvline(size, color="0.7", linewidth=0.8, zorder=0)
        axes.text(size, height, f"{rule} ", transform=axes.get_xaxis_transform(), fontsize=7, ha="right")
    axes.set(xlabel="Number of features", ylabel="NDCG@10")
    figure.legend(loc="outside upper center", ncols=2)
