"""Studies: many cells in one folder, their claims, and where they run."""
