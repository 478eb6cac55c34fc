"""
Features to rely on
===================

Would other queries have given other features? The solver is trained on random halves of the training queries. Features
that most halves select can be relied on.
"""

import textwrap

import matplotlib.pyplot as plt

import moerank as mr

train, vali, _ = mr.load_planted_fold(1)

# %%
# The data have five relevant features, two noisy copies of each, and fifteen features of noise. Halves divide between a
# feature and its copies, so that few features reach a high threshold.

result = mr.stability("greedy-rankrls", train, vali, threshold=0.75)
for sentence in result.sentences():
    print(textwrap.fill(sentence, 88))

# %%
# The bound needs no knowledge of the truth: it holds for every solver and all data with independent queries.

order = result.order[9::-1]
figure, axes = plt.subplots(layout="constrained")
axes.barh(
    [result.feature_names[feature] for feature in order],
    [result.frequency[feature] for feature in order],
)
axes.axvline(result.threshold, color="black", linestyle="--")
axes.set(xlabel="Share of the halves that select the feature (dashed: the threshold)", xlim=(0, 1))
