"""
Features that cost
==================

This example searches for fronts of cost against error. Some features are computed together, and a limit holds.
"""

import matplotlib.pyplot as plt

import moerank as mr

train, vali, test = mr.load_planted_fold(1)

# %%
# Each of the first fifteen features costs 2, and 10 are paid once if any of them is used. The others cost .5 each.

costs = {
    "costs": [2.0] * 15 + [0.5] * 15,
    "groups": ["index"] * 15 + [None] * 15,
    "group_costs": {"index": 10.0},
}
search = {
    "feature_selection": {"generations": 200},
    "instance_selection": False,
    "ensemble": False,
    "random_state": 0,
}
free = mr.MOFSRank(objectives=("cost", "error"), limits=mr.Limits(**costs), **search).fit(
    train, validation=vali
)

# %%
# Every subset that the second search evaluates keeps the limit. A limit is not a penalty.

limits = mr.Limits(max_cost=16.0, **costs)
limited = mr.MOFSRank(objectives=("cost", "error"), limits=limits, **search).fit(
    train, validation=vali
)
fronts = [
    solver.front_.sort_values("cost")[["cost", "error"]].reset_index(drop=True)
    for solver in (free, limited)
]
print("costs up to", *(front["cost"].max() for front in fronts))
print("the same front up to the limit:", fronts[0].query("cost <= 16").equals(fronts[1]))

# %%
# The cost that is paid once shows as a gap.

figure, axes = plt.subplots(layout="constrained")
for front, label, style in zip(fronts, ("no limit", "at most 16"), ("o-", "s--"), strict=True):
    axes.plot(front["cost"], 1 - front["error"], style, drawstyle="steps-post", label=label)
axes.set(xlabel="Cost", ylabel="NDCG@10, training")
axes.legend()
