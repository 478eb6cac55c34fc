"""Which search a stage is given: the problem as it is asked, and the algorithm with the stage's operators."""

from __future__ import annotations

from typing import Any

from pymoo.core.problem import Problem

from moerank.checks import check_room, unknown
from moerank.evolution import ALGORITHMS, BIT_SEARCHES, Factory, PackedProblem, make_algorithm
from moerank.stages.feature_selection import FeatureSelection
from moerank.stages.instance_selection import InstanceSelection
from moerank.stages.settings import StagePlan
from moerank.stages.stage import Stage

__all__ = ["budget", "check_algorithm", "is_sparse_search", "problem_and_algorithm"]


def is_sparse_search(algorithm: str | Factory) -> bool:
    """Whether an algorithm is one of `BIT_SEARCHES`, which search the feature strings of the second stage alone."""
    return isinstance(algorithm, str) and algorithm in BIT_SEARCHES


def check_algorithm(algorithm: object, population: int, n_objectives: int) -> None:
    """Raise a ValueError for what cannot search the second stage, before the first one begins.

    Examples
    --------
    >>> check_algorithm("mffs", population=100, n_objectives=3)
    Traceback (most recent call last):
        ...
    ValueError: MFFS is made for 2 objectives, not for 3; choose another algorithm, such as nsga2
    """
    if isinstance(algorithm, str):
        if algorithm not in ALGORITHMS:
            raise ValueError(unknown("algorithm", algorithm, ALGORITHMS))
        if is_sparse_search(algorithm):
            make_algorithm(algorithm, population, {}, n_objectives)
    elif not callable(algorithm):
        raise ValueError(f"algorithm must be a name or a factory of pymoo algorithms, not {algorithm!r}")


def problem_and_algorithm(
    name: str, stage: Stage, algorithm: str | Factory, plan: StagePlan[Any]
) -> tuple[Problem, Any]:
    """Return the problem that a stage poses, and a fresh pymoo algorithm for it.

    Sparse searches are given the feature strings; the other stages are searched by NSGA-II in their place.

    Raises
    ------
    ValueError
        If the population does not fit in memory; the message calls the stage by `name`.
    """
    population = plan.settings.population
    check_room(f"{name}: a population of {population:,} strings of {stage.n_var:,}", population * stage.n_var)
    problem, operators = stage, stage.operators()
    if is_sparse_search(algorithm):
        if isinstance(stage, FeatureSelection):
            del operators["sampling"]  # the start of the search itself comes in its place
        else:
            algorithm = "nsga2"
    if plan.initial is not None:
        operators["sampling"] = plan.initial
    elif isinstance(stage, InstanceSelection) and isinstance(algorithm, str):
        problem, operators = PackedProblem(stage), stage.packed_operators()
    return problem, make_algorithm(algorithm, population, operators, stage.n_obj)


def budget(stage: Stage, algorithm: str | Factory, plan: StagePlan[Any]) -> Any:
    """Return when a stage ends: as its plan has it, else after its generations.

    The generations of a staircase search differ in size; it ends after as many evaluations as they stand for.
    """
    settings = plan.settings
    if algorithm == "staircase" and isinstance(stage, FeatureSelection):
        return plan.termination or ("n_eval", settings.population * settings.generations)
    return plan.termination or ("n_gen", settings.generations)
