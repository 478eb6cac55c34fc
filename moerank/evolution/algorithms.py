"""The pymoo algorithms that work on bit strings, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from moerank.checks import unknown

__all__ = ["ALGORITHMS", "make_algorithm"]


def _nsga2(population: int, operators: dict[str, Any]) -> Any:
    from pymoo.algorithms.moo.nsga2 import NSGA2

    return NSGA2(pop_size=population, **operators)


def _nsga3(population: int, operators: dict[str, Any]) -> Any:
    from pymoo.algorithms.moo.nsga3 import NSGA3

    return NSGA3(_directions(population), pop_size=population, **operators)


def _spea2(population: int, operators: dict[str, Any]) -> Any:
    from pymoo.algorithms.moo.spea2 import SPEA2, SPEA2Survival

    # The survival in SPEA2's default argument is shared by all its instances and remembers earlier runs.
    return SPEA2(pop_size=population, survival=SPEA2Survival(normalize=True), **operators)


def _agemoea2(population: int, operators: dict[str, Any]) -> Any:
    from pymoo.algorithms.moo.age2 import AGEMOEA2, AGEMOEA2Survival

    def pairwise_distances(front: Any, p: float) -> Any:
        # A front that is one point is at its own ideal point, and pymoo divides by the distance from there.
        at_ideal = ~front.any(axis=1, keepdims=True)
        return AGEMOEA2Survival.pairwise_distances(np.where(at_ideal, 1e-9, front), p)

    algorithm = AGEMOEA2(pop_size=population, **operators)
    algorithm.survival.pairwise_distances = pairwise_distances
    return algorithm


def _smsemoa(population: int, operators: dict[str, Any]) -> Any:
    from pymoo.algorithms.moo.sms import SMSEMOA

    return SMSEMOA(pop_size=population, **operators)


def _rvea(population: int, operators: dict[str, Any]) -> Any:
    from pymoo.algorithms.moo.rvea import RVEA

    return RVEA(_directions(population), pop_size=population, **operators)


def _moead(population: int, operators: dict[str, Any]) -> Any:
    from pymoo.algorithms.moo.moead import ParallelMOEAD

    # MOEA/D replaces neighbours one by one and has no elimination of duplicates.
    kept = {name: operator for name, operator in operators.items() if name != "eliminate_duplicates"}
    algorithm = ParallelMOEAD(_directions(population), n_neighbors=min(20, population), **kept)
    # All other algorithms tell their operators whom they work for, which adaptive mutation needs to know.
    algorithm.mating.do = partial(algorithm.mating.do, algorithm=algorithm)
    return algorithm


def _directions(population: int) -> Any:
    from pymoo.util.ref_dirs import get_reference_directions

    return get_reference_directions("uniform", 2, n_partitions=population - 1)


ALGORITHMS: dict[str, Callable[[int, dict[str, Any]], Any]] = {
    "nsga2": _nsga2,
    "nsga3": _nsga3,
    "spea2": _spea2,
    "agemoea2": _agemoea2,
    "smsemoa": _smsemoa,
    "rvea": _rvea,
    "moead": _moead,
}


def make_algorithm(
    algorithm: str | Callable[[int, dict[str, Any]], Any], population: int, operators: dict[str, Any]
) -> Any:
    """Return a new pymoo algorithm for a stage.

    Parameters
    ----------
    algorithm : str or callable
        A name from `ALGORITHMS`, or your own factory ``(population, operators) -> algorithm``.
    population : int, at least 2
    operators : dict
        What a stage's ``operators()`` returns.

    Raises
    ------
    ValueError
        For an unknown name; the nearest one is suggested.
    """
    if population < 2:
        raise ValueError(f"population must be at least 2, not {population}")
    if callable(algorithm):
        return algorithm(population, operators)
    if algorithm not in ALGORITHMS:
        raise ValueError(unknown("algorithm", algorithm, ALGORITHMS))
    return ALGORITHMS[algorithm](population, operators)
