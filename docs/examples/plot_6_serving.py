"""
Serving trees on the front of a linear search
=============================================

RankRLS searches, LambdaMART is trained on the members of its front, and the chosen member becomes a Python function.
"""

import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import moerank as mr
from moerank.figures.style import in_style

train, vali, test = mr.load_planted_fold(1)
budget = {"generations": 15, "population": 40}
stages = dict.fromkeys(("instance_selection", "feature_selection", "ensemble"), budget)

# %%
# Forty trees suffice for this example. By default validation chooses the number of trees of each member, up to 1,000.

refit = mr.LambdaMART(n_trees=40, n_leaves=4)
solver = mr.MOFSRank(refit=refit, tune=False, random_state=0, **stages).fit(train, validation=vali)
print(textwrap.fill(solver.verdict(test).sentence, 88))

# %%
# LambdaMART ranks with the features of each member. The line marks the chosen one.

with in_style():
    figure, axes = plt.subplots(figsize=(5, 2.8), layout="constrained")
    front = solver.front_.sort_values("n_features")
    axes.plot(front["n_features"], front["validation"], marker="o")
    axes.axvline(solver.support_.sum(), color="0.7", linewidth=0.8, zorder=0)
    axes.set(xlabel="Number of features", ylabel="NDCG@10 of LambdaMART, validation")
    axes.set_title(f"{solver.support_.sum()} of {train.n_features} features serve", loc="left", fontweight="bold")

# %%
# The file needs only Python, and scores a document as the model does.

path = Path(tempfile.mkdtemp()) / "score.py"
mr.export(solver, "python", path)
served = {}
exec(path.read_text(encoding="utf-8"), served)
scores = [served["score"](dict(zip(train.feature_names, row, strict=True))) for row in test.X]
print(np.abs(np.array(scores) - solver.predict(test.X)).max() < 1e-12)
