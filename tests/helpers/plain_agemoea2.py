"""AGE-MOEA-II with its two kernels as plain Python: numba takes ten seconds to compile what runs for milliseconds."""

import numpy as np
from pymoo.algorithms.moo import age2

age2.numba = np  # for numba.float64
age2.project_on_manifold = age2.project_on_manifold.py_func
age2.AGEMOEA2Survival.pairwise_distances = staticmethod(age2.AGEMOEA2Survival.pairwise_distances.py_func)
