"""Comparison solvers: the published feature-selection methods, a file for each family; `moerank` has their names."""

import moerank.rankers  # noqa: F401 (first, because it loads scikit-learn without scipy.stats)
