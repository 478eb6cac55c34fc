"""Figures drawn from results: of one run in `of_run`, of a study in `of_study`, one file per figure."""
