"""
Features that cost
==================

This example searches for fronts of cost against error. Some features are computed together, and a limit holds.
"""

import matplotlib.pyplot as plt
import numpy as np

import moerank as mr
from moerank.figures.style import in_style

train, vali, test = mr.load_digits_fold(1, n_queries=60, n_documents=50)

# %%
# A pixel of the upper half of the image costs 2, and the upper half costs 10 once if any of its pixels is used. A
# pixel of the lower half costs .5.

costs = {"costs": [2.0] * 32 + [0.5] * 32, "groups": ["upper"] * 32 + [None] * 32, "group_costs": {"upper": 10.0}}
budget = {"generations": 20, "population": 50}
stages = dict.fromkeys(("instance_selection", "feature_selection", "ensemble"), budget)
free = mr.MOFSRank(objectives=("cost", "error"), limits=mr.Limits(**costs), **stages, random_state=0)
free.fit(train, validation=vali)

# %%
# Every subset that is evaluated keeps the limit. A limit is not a penalty.

limits = mr.Limits(max_cost=25.0, **costs)
limited = mr.MOFSRank(objectives=("cost", "error"), limits=limits, **stages, random_state=0)
limited.fit(train, validation=vali)
print(f"largest cost of a member: {free.front_['cost'].max():g} without a limit, {limited.front_['cost'].max():g} with")

# %%
# The cost of the upper half, which is paid once, shows as a gap in the front.

with in_style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.5, 2.8), layout="constrained")
    for solver, label in ((free, "no limit"), (limited, "at most 25")):
        front = solver.front_.sort_values("cost")
        left.plot(front["cost"], front["error"], marker="o", drawstyle="steps-post", label=label)
    left.set(xlabel="Cost", ylabel="1 − NDCG@10, training")
    left.legend()
    right.imshow(np.abs(limited.coef_).reshape(8, 8), cmap="Greys")
    right.set(title="Weights with the limit", xticks=[], yticks=[])
