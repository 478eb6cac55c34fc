"""
Trees: features, time to score, error
=====================================

A search engine pays twice for trees: for the features that they need, and for the splits that each document passes.
`tree-front` searches the trade-offs of both with the error. A cascade pays less: a small forest ranks all documents,
and a large one orders the first of them anew.
"""

import matplotlib.pyplot as plt
import numpy as np

import moerank as mr

train, vali, test = mr.load_planted_fold(1)

solver = mr.make_solver("tree-front", n_trees=60, evaluations=60, reranked=5, random_state=0)
solver.fit(train, validation=vali)

# %%
# A member is one forest, or two in a cascade. The steps give the features and the trees of each. The error is out of
# fold: each half of the training queries is ranked by trees of the other half.

print(solver.front_.drop(columns="features").iloc[:: max(1, len(solver.front_) // 10)].round(3))

# %%
# The title says how many splits the cheapest member needs that is within .01 of the least error.

front, cascade = solver.front_, solver.front_rankers_.is_cascade
best = front.loc[front.error.idxmin()]
cheap = front[front.error <= best.error + 0.01].visits.min()

figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for kind, marker, label in ((~cascade, "o", "one forest"), (cascade, "^", "cascade")):
    shown = front[kind]
    points = axes.scatter(
        shown.visits, shown.error, c=shown.n_features, marker=marker, vmin=1, vmax=front.n_features.max(), label=label
    )
axes.set(xscale="log", xlabel="splits passed by a document", ylabel="1 − NDCG@10, out of fold")
axes.set_title(f"{cheap / best.visits:.0%} of the splits lose less than .01 NDCG@10", loc="left")
axes.legend(frameon=False)
figure.colorbar(points, label="features")

# %%
# Validation chooses a member of one forest, which the run measures and exports as any LambdaMART. Microseconds of this
# machine stand beside the splits, which any machine counts alike.

times = solver.front_rankers_.microseconds(test)
print(f"{solver.support_.sum()} features, {front.visits[solver.chosen_]:.0f} splits a document")
print(f"NDCG@10 {mr.NDCG(10).score(test, solver.predict(test)):.3f} on test queries")
print(f"rank correlation of splits and time: {np.corrcoef(front.visits.rank(), times.argsort().argsort())[0, 1]:.2f}")
