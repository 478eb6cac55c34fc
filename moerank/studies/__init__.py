"""Studies: problem files, the run of one fold, and results on disk."""
