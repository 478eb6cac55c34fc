"""moerank: feature selection for learning to rank by evolutionary multi-objective optimisation."""

__version__ = "0.1.0"
