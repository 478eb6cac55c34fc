"""Figures: what each needs from results, and how it is drawn."""
