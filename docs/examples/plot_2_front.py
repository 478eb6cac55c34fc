"""
A front
=======

Which pixels tell handwritten digits apart? This example draws the front on training, validation and test queries.
"""

import textwrap

import moerank as mr
from moerank.figures import RUN_FIGURES
from moerank.runs.run_fold import run_fold

# %%
# This is ``moerank run digits``.

result = run_fold(mr.load_problem("digits"), 1, seed=0)
print(textwrap.fill(result.verdict.sentence, 88))

# %%
# On the training part the front never falls. On the other parts it levels off: further features gain nothing there.

front = RUN_FIGURES["front"].draw(result)

# %%
# The darker a pixel, the more members of the front use it. Dots mark the pixels of the chosen member.

features = RUN_FIGURES["features"].draw(result)
