"""Figures, drawn from results alone: of one run in `of_run`, of a study in `of_study`, a file for each."""
