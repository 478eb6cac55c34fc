"""
Features to rely on
===================

Would other queries have given other features? The solver is trained on random halves of the training queries. Features
that most halves select can be relied on.
"""

import textwrap

import moerank as mr
from moerank.figures.frequency_of_study import stability_figure

train, vali, _ = mr.load_planted_fold(1)

# %%
# The data have five relevant features, two noisy copies of each, and fifteen features of noise. Halves divide between a
# feature and its copies, so that few features reach a high threshold.

result = mr.stability("greedy-rankrls", train, vali, threshold=0.75)
for sentence in result.sentences():
    print(textwrap.fill(sentence, 88))

# %%
# No noise is among them. The bound needs no knowledge of that: it holds for every solver and all data with independent
# queries.

figure = stability_figure(result)
