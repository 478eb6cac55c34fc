"""The three stages of MOFSRank as pymoo problems."""
