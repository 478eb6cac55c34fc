"""Arrays as kernels get them from a RankingData."""

import numpy as np


def read_only(array):
    """Return a view that cannot be written to; with one that can, a kernel would be compiled once more."""
    view = np.asarray(array)[...]
    view.setflags(write=False)
    return view
