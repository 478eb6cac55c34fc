"""The command line: moerank and its commands."""

from moerank.cli.app import app, main

__all__ = ["app", "main"]
