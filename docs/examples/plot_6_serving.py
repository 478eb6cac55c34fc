"""
Serving trees on the front of a linear search
=============================================

RankRLS searches, LambdaMART is trained on the members of its front, and the chosen member becomes a Python function.
"""

import tempfile
from pathlib import Path

import numpy as np

import moerank as mr

train, vali, test = mr.load_planted_fold(1)
budget = {"generations": 15, "population": 40}
stages = dict.fromkeys(("instance_selection", "feature_selection", "ensemble"), budget)

# %%
# Forty trees suffice for this example. By default validation chooses the number of trees of each member, up to 1,000.

refit = mr.LambdaMART(n_trees=40, n_leaves=4)
solver = mr.MOFSRank(refit=refit, tune=False, random_state=0, **stages).fit(train, validation=vali)
print(solver.verdict(test).sentence)

# %%
# The file needs only Python, and scores a document as the model does.

path = Path(tempfile.mkdtemp()) / "score.py"
mr.export(solver, "python", path)
served = {}
exec(path.read_text(encoding="utf-8"), served)
scores = [served["score"](dict(zip(train.feature_names, row, strict=True))) for row in test.X]
print(np.abs(np.array(scores) - solver.predict(test.X)).max() < 1e-12)
