"""
What each feature adds
======================

Is a low price better than a high one? In this made shop neither sells: buyers take a middling price for the best, which
no weight of a linear ranker can say. An additive ranker has a step function of each feature instead.
"""

import numpy as np

import moerank as mr

# %%
# A hundred queries with 40 products each. Relevance rises with the match of the text, falls with the distance of the
# price from 25, and new products have an advantage. Stars count little where few buyers gave them.

rng = np.random.default_rng(0)
n_queries, n_products = 150, 40
n = n_queries * n_products
match, price = rng.normal(8, 3, n), np.exp(rng.normal(3, 1.2, n))
reviews = np.floor(np.exp(rng.normal(2, 1.4, n)))
stars, age = np.clip(rng.normal(4, 0.7, n), 1, 5).round(1), np.floor(rng.exponential(300, n))
utility = np.tanh((match - 8) / 4) - 0.9 * np.minimum(np.abs(np.log(price / 25)), 2.5) + 0.7 * (age < 45)
utility += 1.4 * (stars - 4) * reviews / (reviews + 8) + rng.normal(0, 0.6, n)
y = np.digitize(utility, np.quantile(utility, [0.6, 0.8, 0.95]))
noise = rng.normal(size=(n, 5))
names = ["match", "price", "reviews", "stars", "age", *(f"noise {i}" for i in range(1, 6))]
X, qid = np.column_stack([match, price, reviews, stars, age, noise]), np.repeat(np.arange(n_queries), n_products)
train, vali, test = (
    mr.RankingData(X[rows], y[rows], qid[rows], feature_names=names)
    for rows in (qid < 90, (qid >= 90) & (qid < 120), qid >= 120)
)

# %%
# The ranker takes raw values, whatever their scales. Validation chooses how far its functions may depart from lines.

for ranker in (mr.RankRLS(), mr.AdditiveRLS()):
    tuned = ranker.tune(train, vali, metric="NDCG@10").fit(train)
    print(f"{type(tuned).__name__:11} NDCG@10 {mr.NDCG(10).score(test, tuned.predict(test)):.3f}")

# %%
# A search with this ranker finds few features that suffice, and its chosen member shows what it does with them. Look at
# the price. The fall of the age ends at 45 days.

solver = mr.MOFSRank(backend="additive", algorithm="staircase", ensemble=False, random_state=0).fit(
    train, validation=vali
)
shapes = solver.plot("shapes")

# %%
# The same as numbers: every fourth bin, with its share of the training documents.

print(solver.shapes_.query("feature == 'price'")[::4].round(2).to_string(index=False))

# %%
# Stars count where many buyers gave them. No sum of single features says so; the chosen features with interactions do.
# Their path shows how many help, and the map what stars and reviews add together.

chosen = solver.support_
ranker = solver.backend_.set_params(interactions=3)
ranker.fit(train.with_features(chosen), validation=vali.with_features(chosen))
print(ranker.interactions_.round(4).to_string(index=False))
print(f"NDCG@10 {mr.NDCG(10).score(test, ranker.predict(test.with_features(chosen))):.3f}")
interactions = ranker.plot()
