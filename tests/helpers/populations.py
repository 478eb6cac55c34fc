"""Populations of bit searches put together by hand, and the selection of NSGA-II by pymoo."""

import numpy as np
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.operators.survival.rank_and_crowding.metrics import get_crowding_function
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting


def strings(*rows):
    """Bool rows from texts such as "0110"."""
    return np.array([[bit == "1" for bit in row] for row in rows])


def placed(algorithm, X, F, seed=0):
    """Set a search up with the population X of objectives F, as if it had been evaluated."""
    F = np.array(F, float)
    algorithm.setup(Problem(n_var=X.shape[1], n_obj=F.shape[1]), termination=("n_gen", 10), seed=seed)
    algorithm._hold(Population.new(X=X, F=F))
    algorithm.n_iter = 2
    return algorithm


def dominates(a, b):
    return all(x <= y for x, y in zip(a, b, strict=True)) and any(x < y for x, y in zip(a, b, strict=True))


def peeled(F):
    """The number of each point's front, by pymoo."""
    return NonDominatedSorting().do(np.asarray(F, float), return_rank=True)[1]


def crowded(F, front):
    """The crowding distance of each point, front by front, by pymoo, which divides it by the number of objectives."""
    distance = np.zeros(len(F))
    for number in set(front):
        rows = np.flatnonzero(front == number)
        distance[rows] = F.shape[1] * get_crowding_function("cd").do(np.asarray(F[rows], float))
    return distance


def hamming(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True))
