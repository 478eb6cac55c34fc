"""AGE-MOEA and AGE-MOEA-II with kernels in plain Python: numba takes ten seconds for what runs for milliseconds."""

from types import SimpleNamespace

import numpy as np
from pymoo.algorithms.moo import age, age2

age.numba = age2.numba = SimpleNamespace(boolean=np.bool_, float64=np.float64, intp=np.intp)
age.find_corner_solutions = age.find_corner_solutions.py_func
age.point_2_line_distance = age.point_2_line_distance.py_func
age.AGEMOEASurvival.minkowski_distances = staticmethod(age.AGEMOEASurvival.minkowski_distances.py_func)
age2.project_on_manifold = age2.project_on_manifold.py_func
age2.AGEMOEA2Survival.pairwise_distances = staticmethod(age2.AGEMOEA2Survival.pairwise_distances.py_func)
