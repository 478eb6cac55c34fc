"""Comparison solvers: the published feature-selection methods, a file for each family; `moerank` has their names."""
