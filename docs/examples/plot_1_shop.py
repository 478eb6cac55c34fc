"""
A shop
======

Which signals of a product help to rank it? In the bundled shop we know, because its data are synthetic: eight of fifty.
"""

import textwrap

import moerank as mr
from moerank.figures import RUN_FIGURES
from moerank.runs.run_fold import run_fold

# %%
# This is ``moerank run shop``. A medium price sells best, and new products have an advantage, which no weight of a
# linear ranker can express. So the ranker is a sum of step functions, one for each feature.

result = run_fold(mr.load_problem("shop"), 1, "mofsrank-staircase", baselines=False)
print(textwrap.fill(", ".join(result.names(result.best.features)), 88))
print(textwrap.fill(result.verdict.sentence, 88))

# %%
# LambdaMART with all fifty features, on the same test queries:

train, vali, test = mr.load_shop_fold(1)
trees = mr.LambdaMART(200).fit(train, validation=vali)
print(f"chosen features {result.best.scores['test']['NDCG@10']:.3f}")
print(f"LambdaMART {mr.NDCG(10).score(test, trees.predict(test)):.3f}")

# %%
# The front shows what each further feature buys.

front = RUN_FIGURES["front"].draw(result)
