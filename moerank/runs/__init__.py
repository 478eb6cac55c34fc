"""Runs: problem files, the run of one solver on one fold, and its results on disk."""
