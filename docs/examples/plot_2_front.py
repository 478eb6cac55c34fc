"""
A front
=======

Which pixels tell handwritten digits apart? This example draws the front on training, validation and test queries.
"""

import textwrap

import moerank as mr
from moerank.figures import RUN_FIGURES
from moerank.studies.run_fold import run_fold

# %%
# This is the problem of ``moerank run digits``, with fewer generations.

stages = ("instance_selection", "feature_selection", "ensemble")
problem = mr.load_problem("digits", {f"{stage}.generations": 20 for stage in stages})
result = run_fold(problem, 1, seed=0)
print(textwrap.fill(result.verdict.sentence, 88))

# %%
# On the training part the front never falls. On the other parts it levels off: further features gain nothing there.

front = RUN_FIGURES["front"].draw(result)

# %%
# The darker a pixel, the more members of the front use it. Frames mark the pixels of the chosen member.

features = RUN_FIGURES["features"].draw(result)
