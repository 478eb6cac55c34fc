"""Problem files, runs and studies: what to run, where it runs, and the results that are stored and compared."""
