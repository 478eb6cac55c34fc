"""
A front and what it says
========================

Which pixels tell handwritten digits apart? The front on training, validation and test queries.
"""

from moerank.figures.of_run import RUN_FIGURES
from moerank.studies.problem import load_problem
from moerank.studies.run_fold import run_fold

# %%
# The problem that ``moerank run digits`` solves, with fewer generations.

stages = ("instance_selection", "feature_selection", "ensemble")
problem = load_problem("digits", {f"{stage}.generations": 20 for stage in stages})
result = run_fold(problem, 1, seed=0)
print(result.verdict.sentence)

# %%
# The front rises on the training part alone. On the others it comes to an end: more features buy nothing there.

front = RUN_FIGURES["front"].draw(result)

# %%
# Each column is a member of the front, each row a pixel.

features = RUN_FIGURES["features"].draw(result)
