"""
An ablation
===========

What does each part of MOFSRank contribute? The search runs with all parts, and without one of them, on the same random
numbers.
"""

import tempfile

import moerank as mr

# %%
# Few generations, so that this page is quick. ``moerank study planted --ablate mofsrank`` does the same with the whole
# budget.

stages = ("instance_selection", "feature_selection", "ensemble")
budget = {
    f"{stage}.{key}": n
    for stage in stages
    for key, n in {"population": 30, "generations": 10}.items()
}
variants = {"all parts": "mofsrank"}
for part in ("instance_selection", "adaptive_mutation", "ensemble"):
    variants[f"without {part.replace('_', ' ')}"] = f"mofsrank[{part}=false]"
folder = tempfile.mkdtemp()
study = mr.Study(
    ["planted"], (), folder, folds=[1, 2, 3], seeds=2, ablate=variants, settings=budget
).run()
print(study.frame().groupby("solver")[["n_features", "test NDCG@10"]].mean().round(3))

# %%
# The fronts on the training queries, over folds and seeds.

ablation = study.plot("ablation")
