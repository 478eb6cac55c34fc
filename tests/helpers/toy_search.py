"""A toy problem on bits, and the algorithms that are fit for bool rows, each freshly made."""

from functools import partial

import numpy as np
from pymoo.algorithms.moo.age2 import AGEMOEA2
from pymoo.algorithms.moo.moead import MOEAD, ParallelMOEAD
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.algorithms.moo.nsga3 import NSGA3
from pymoo.algorithms.moo.rvea import RVEA
from pymoo.algorithms.moo.sms import SMSEMOA
from pymoo.algorithms.moo.spea2 import SPEA2, SPEA2Survival
from pymoo.core.problem import Problem
from pymoo.util.ref_dirs import get_reference_directions

from moerank.evolution import (
    BIT_SEARCHES,
    DensitySampling,
    DigestDuplicates,
    SparseBitFlip,
    UniformCrossover,
    make_algorithm,
)

POP_SIZE = 16


class WeighedBits(Problem):
    """min (number of ones, weight of what is missing): every count has its own best choice."""

    def __init__(self, n_var=60):
        super().__init__(n_var=n_var, n_obj=2)
        self.weight = np.random.default_rng(7).integers(1, 1000, n_var) / 1024  # sums are exact in any order

    def _evaluate(self, X, out, *args, **kwargs):
        out["F"] = np.column_stack([X.sum(axis=1), (~X) @ self.weight])


def operators():
    return dict(
        sampling=DensitySampling(),
        crossover=UniformCrossover(),
        mutation=SparseBitFlip(),
        eliminate_duplicates=DigestDuplicates(),
    )


def _without_duplicates(made):
    return {key: value for key, value in made.items() if key != "eliminate_duplicates"}


def directions():
    return get_reference_directions("uniform", 2, n_partitions=POP_SIZE - 1)


ALGORITHMS = {
    "NSGA2": lambda: NSGA2(POP_SIZE, **operators()),
    "NSGA2 in arrays": lambda: make_algorithm("nsga2", POP_SIZE, operators()),
    "NSGA3": lambda: NSGA3(directions(), **operators()),
    "SPEA2": lambda: SPEA2(POP_SIZE, survival=SPEA2Survival(normalize=True), **operators()),
    "AGEMOEA2": lambda: AGEMOEA2(POP_SIZE, **operators()),
    "SMSEMOA": lambda: SMSEMOA(POP_SIZE, **operators()),
    "RVEA": lambda: RVEA(directions(), **operators()),
    "ParallelMOEAD": lambda: ParallelMOEAD(directions(), n_neighbors=5, **_without_duplicates(operators())),
    "MOEAD": lambda: MOEAD(directions(), n_neighbors=5, **_without_duplicates(operators())),
}

FIRST = {"staircase": 4 * POP_SIZE}
"""The size that a population grows to, where it begins with another one."""

SPARSE = {name: partial(made, pop_size=FIRST.get(name, POP_SIZE)) for name, made in BIT_SEARCHES.items()}
"""The searches that are made for bits; the frame that they share is what an interruption could harm."""
