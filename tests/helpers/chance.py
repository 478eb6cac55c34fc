"""Whether counts are what chance gives."""

import numpy as np
from scipy import stats


def plausible(observed, expected):
    """Whether counts fit their expectations; at a fixed seed this never changes."""
    return stats.chisquare(observed, np.asarray(expected) * np.sum(observed) / np.sum(expected)).pvalue > 1e-3
