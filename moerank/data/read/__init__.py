"""Readers of files: one file for each kind, from a path to ranking data."""
