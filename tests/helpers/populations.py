"""Populations of bit searches put together by hand, and the selection of NSGA-II in slow words."""

import numpy as np
from pymoo.core.population import Population
from pymoo.core.problem import Problem


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
    """The number of each point's front: what nothing left dominates is taken away, again and again."""
    numbers, left, number = {}, set(range(len(F))), 0
    while left:
        first = {i for i in left if not any(dominates(F[j], F[i]) for j in left)}
        numbers |= dict.fromkeys(first, number)
        left, number = left - first, number + 1
    return np.array([numbers[i] for i in range(len(F))])


def crowded(F, front):
    """The crowding distance of each point, front by front."""
    distance = np.zeros(len(F))
    for number in set(front):
        members = [i for i in range(len(F)) if front[i] == number]
        for k in range(F.shape[1]):
            rows = sorted(members, key=lambda i, k=k: F[i, k])
            low, high = F[rows[0], k], F[rows[-1], k]
            distance[rows[0]] = distance[rows[-1]] = np.inf
            for before, i, after in zip(rows, rows[1:], rows[2:], strict=False):
                if high > low:
                    distance[i] += (F[after, k] - F[before, k]) / (high - low)
    return distance


def hamming(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True))
