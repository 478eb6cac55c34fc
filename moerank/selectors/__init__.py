"""Comparison solvers: the published feature-selection methods, one file each."""
