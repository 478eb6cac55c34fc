"""The command line: moerank run, study, merge, report, plot, export, solvers and data describe."""

from moerank.cli.app import app, main

__all__ = ["app", "main"]
