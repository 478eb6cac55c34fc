"""Problem files, runs and studies: what to run, where it runs, and the results that are stored and compared."""

import moerank.rankers  # noqa: F401 (first, because it loads scikit-learn without scipy.stats)
