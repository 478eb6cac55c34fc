"""The command line: moerank run, study, report, plot, export, solvers and data describe."""

from moerank.cli.app import app, main

__all__ = ["app", "main"]
