"""
What each feature adds
======================

Is a low price better than a high one? In the bundled shop a medium price sells best, which no weight of a linear ranker
can express. An additive ranker has a step function of each feature instead.
"""

import moerank as mr

train, vali, test = mr.load_shop_fold(1)

# %%
# The ranker takes raw values, whatever their scales. Validation chooses how far its functions may depart from lines.

for ranker in (mr.RankRLS(), mr.AdditiveRLS()):
    tuned = ranker.tune(train, vali, metric="NDCG@10").fit(train)
    print(f"{type(tuned).__name__:11} NDCG@10 {mr.NDCG(10).score(test, tuned.predict(test)):.3f}")

# %%
# A search with this ranker finds few features that suffice, and its chosen member shows what it does with them.

search = {
    "algorithm": "staircase",
    "ensemble": False,
    "feature_selection": {"population": 40, "generations": 20},
}
solver = mr.MOFSRank("additive", final="one-se", random_state=0, **search).fit(
    train, validation=vali
)
shapes = solver.plot("shapes")

# %%
# The same as numbers: every fourth bin of the price, with its share of the training documents.

print(solver.shapes_.query("feature == 'price'")[::4].round(2).to_string(index=False))
