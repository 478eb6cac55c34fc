"""
Features that cost
==================

The front of cost against error, where some features are computed together and a limit holds.
"""

import matplotlib.pyplot as plt
import numpy as np

import moerank as mr
from moerank.figures.style import in_style

train, vali, test = mr.load_digits_fold(1, n_queries=60, n_documents=50)

# %%
# The upper half of the image costs 2 a pixel, and 10 once as soon as any of it is used; the lower half .5 a pixel.

costs = {"costs": [2.0] * 32 + [0.5] * 32, "groups": ["upper"] * 32 + [None] * 32, "group_costs": {"upper": 10.0}}
budget = {"generations": 20, "population": 50}
stages = dict.fromkeys(("instance_selection", "feature_selection", "ensemble"), budget)
free = mr.MOFSRank(objectives=("cost", "error"), **costs, **stages, random_state=0).fit(train, validation=vali)

# %%
# A limit is kept by every subset that is evaluated; it is no penalty.

limited = mr.MOFSRank(objectives=("cost", "error"), max_cost=25.0, **costs, **stages, random_state=0)
limited.fit(train, validation=vali)
print(f"most that a member costs: {free.front_['cost'].max():g} without a limit, {limited.front_['cost'].max():g} with")

# %%
# The entrance fee of the upper half shows as a gap in the front.

with in_style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.5, 2.8), layout="constrained")
    for solver, label in ((free, "no limit"), (limited, "at most 25")):
        left.plot(solver.front_["cost"], solver.front_["error"], marker="o", markersize=3, label=label)
    left.set(xlabel="Cost", ylabel="1 − NDCG@10, training")
    left.legend()
    right.imshow(np.abs(limited.coef_).reshape(8, 8), cmap="Greys")
    right.set(title="Weights with the limit", xticks=[], yticks=[])
