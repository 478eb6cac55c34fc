"""
A shop
======

Which signals of a product help to rank it? In this made shop we know: eight of fifty.
"""

import textwrap

import numpy as np
import pandas as pd

import moerank as mr

# %%
# 500 queries with 20 products each. A middling price sells best, and the gain from sales and stars levels off.

rng = np.random.default_rng(0)
n_queries, n_products = 500, 20
n = n_queries * n_products
signals = {
    "title_match": rng.normal(8, 3, n),
    "price": np.exp(rng.normal(3, 1, n)),
    "sales": np.exp(rng.normal(2, 1, n)),
    "stars": rng.uniform(1, 5, n),
    "age_days": rng.exponential(300, n),
    "delivery_days": rng.integers(1, 10, n),
    "in_stock": rng.integers(0, 2, n),
    "returns": rng.beta(1, 20, n),
}
utility = np.tanh((signals["title_match"] - 8) / 4) - 0.8 * np.minimum(np.abs(np.log(signals["price"] / 25)), 2)
utility += 0.3 * np.log(signals["sales"]) - 0.3 * (signals["stars"] - 5) ** 2 / 4 + 0.5 * (signals["age_days"] < 60)
utility -= 0.05 * signals["delivery_days"] - 0.8 * signals["in_stock"] + 6 * signals["returns"]
y = np.digitize(utility + rng.normal(0, 0.4, n), [0.4, 1.0, 1.6])
signals |= {f"signal_{number}": rng.normal(size=n) for number in range(1, 43)}
shop, qid = pd.DataFrame(signals), np.repeat(np.arange(n_queries), n_products)
parts = qid < 250, (qid >= 250) & (qid < 350), qid >= 350
train, vali, test = (mr.RankingData(shop[part], y[part], qid[part]) for part in parts)

# %%
# The ranker adds a step function of each feature. The smallest member within a standard error of the best is chosen.

budget = {"termination": ("n_eval", 1000)}
solver = mr.MOFSRank("additive", algorithm="staircase", feature_selection=budget, ensemble=False, final="one-se")
solver.set_params(random_state=0).fit(train, validation=vali)
print(textwrap.fill(", ".join(solver.get_feature_names_out()), 88))
print(textwrap.fill(solver.verdict(test).sentence, 88))

# %%
# The chosen ranker beside rankers with all fifty features.

rivals = mr.RankRLS().tune(train, vali).fit(train), mr.LambdaMART(100, n_leaves=16).fit(train, validation=vali)
for ranker in (solver, *rivals):
    print(f"{type(ranker).__name__:10} NDCG@10 {mr.NDCG(10).score(test, ranker.predict(test)):.3f}")

# %%
# The front shows what each further feature buys.

axes = solver.plot()
