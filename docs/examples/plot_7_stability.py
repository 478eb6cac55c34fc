"""
Features to rely on
===================

Would other queries have given other features? The solver is trained on random halves of the training queries. Features
that most halves select can be relied on. Other features take each other's place.
"""

import textwrap

import moerank as mr
from moerank.figures.stability_figure import stability_figure

train, vali, _ = mr.load_planted_fold(1)

# %%
# The data have five relevant features, two noisy copies of each, and fifteen features of noise. A feature and its
# copies are alike, so that halves divide between them. Few features reach the threshold alone, but their sets do.

found = mr.stability("greedy-rankrls", train, vali, threshold=0.9)
for sentence in found.sentences():
    print(textwrap.fill(sentence, 88))

# %%
# No noise is among them. The bound needs no knowledge of that: it holds for every solver and all data with independent
# queries.

figure = stability_figure(found)
