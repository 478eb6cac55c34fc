"""
A small study
=============

This study compares a search, a filter, an embedded method and a ranker on all features, on three folds of a problem
whose relevant features are known.
"""

import tempfile
from pathlib import Path

import moerank as mr
from moerank.figures import FIGURES
from moerank.studies.results import Results

# %%
# The problem file asks for few generations. A study is a folder; if you run it again, it runs only the missing cells.

folder = Path(tempfile.mkdtemp())
budget = "generations = 15\npopulation = 40\n"
problem = folder / "small.toml"
problem.write_text(
    'name = "small"\n[data]\nsource = "planted"\n'
    + "".join(f"[{stage}]\n{budget}" for stage in ("instance_selection", "feature_selection", "ensemble")),
    encoding="utf-8",
)
solvers = ["mofsrank-staircase", "gas-e", "fsmrank", "ranksvm-primal"]
study = mr.Study([problem], solvers, folder / "study", folds=[1, 2, 3]).run()

# %%
# The table has a row for each run. These are means over the folds.

frame = study.frame()
print(frame.groupby("solver")[["n_features", "test NDCG@10"]].mean().round(3))

# %%
# This figure shows the test accuracy of the best selection up to each number of features.

results = Results(study.results())
accuracy = FIGURES["accuracy"].draw(results, study.problems[0])

# %%
# This figure shows which features each solver chose over the folds. Of the thirty features five were planted, and ten
# are made from these.

frequency = FIGURES["frequency"].draw(results, study.problems[0])
