"""Many runs: cells that several processes share, results side by side, studies of searches, and evidence."""
