"""
A small study
=============

This study compares a search, a filter, an embedded method and a ranker on all features, on three folds of a problem
whose relevant features are known.
"""

import tempfile

import moerank as mr

# %%
# A study is a folder; if you run it again, it runs only the missing cells.

budget = {"feature_selection.generations": 15, "feature_selection.population": 40}
solvers = [
    "mofsrank-staircase[instance_selection=false,ensemble=false]",
    "gas-e",
    "fsmrank",
    "ranksvm-primal",
]
study = mr.Study(["planted"], solvers, tempfile.mkdtemp(), folds=[1, 2, 3], settings=budget).run()

# %%
# The table has a row for each run. These are means over the folds.

print(study.frame().groupby("solver")[["n_features", "test NDCG@10"]].mean().round(3))

# %%
# The test accuracy of the best selection up to each number of features:

accuracy = study.plot("accuracy")

# %%
# The features that each solver chose over the folds. Of the thirty features five were planted, and ten are made from
# these.

frequency = study.plot("frequency")
