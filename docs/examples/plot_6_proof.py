"""
A proof
=======

How far is each member of a front from the best subset of its size? Best subsets are found and proved for the training
loss of RankRLS.
"""

import moerank as mr
from moerank.figures import RUN_FIGURES
from moerank.runs.run_fold import run_fold
from moerank.studies.evidence import certify

# %%
# ``moerank certify`` does this for a finished run. It searches the tree of subsets by leaps and bounds.

budget = {"feature_selection.population": 40, "feature_selection.generations": 15}
problem = mr.load_problem("planted", budget)
result = run_fold(problem, 1, "mofsrank[instance_selection=false,ensemble=false]", seed=0)
certificate = certify(result)
print(f"best subsets are proved for {len(certificate.proved)} of {len(certificate.sizes)} sizes")

# %%
# The loss of each member, and the smallest possible loss of its size. This says nothing about the metric, or about
# other queries.

proof = RUN_FIGURES["certificate"].draw(result.model_copy(update={"certificate": certificate}))
