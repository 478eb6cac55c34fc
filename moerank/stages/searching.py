"""The search of a stage: the problem as it is asked, the algorithm with the stage's operators, journal and history."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.sampling import Sampling

from moerank.checks import check_room, unknown
from moerank.data import RankingData
from moerank.data.sharded_data import NOT_ON_SHARDS
from moerank.evolution import ALGORITHMS, BIT_SEARCHES, Factory, Journal, PackedProblem, SearchResult, make_algorithm
from moerank.stages.feature_selection import FeatureSelection
from moerank.stages.instance_selection import InstanceSelection
from moerank.stages.settings import StagePlan
from moerank.stages.stage import Stage

__all__ = [
    "check_algorithm",
    "check_on_shards",
    "digest_of",
    "history_of",
    "is_sparse_search",
    "journal_of_stage",
    "search_arguments",
]


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


def check_on_shards(backend: object, unit: str, refit: object = None) -> None:
    """Raise a ValueError for what cannot search on data in shards; None stands for the default backend.

    Examples
    --------
    >>> check_on_shards(None, "pair")
    Traceback (most recent call last):
        ...
    ValueError: unit="pair" lists the preference pairs, which data in shards do not; take "query" or "document"
    """
    if backend is not None and not getattr(backend, "on_shards", False):
        raise ValueError(f"the backend {type(backend).__name__} {NOT_ON_SHARDS}")
    if refit is not None:
        raise ValueError(f"refit {NOT_ON_SHARDS}; train that ranker on the chosen features of a sample")
    if unit == "pair":
        raise ValueError(
            'unit="pair" lists the preference pairs, which data in shards do not; take "query" or "document"'
        )


def search_arguments(
    name: str, stage: Stage, algorithm: str | Factory, plan: StagePlan[Any]
) -> tuple[Problem, Any, Any]:
    """Return the problem that a stage poses, a fresh pymoo algorithm for it, and when the search ends.

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
        operators["sampling"] = _checked(name, stage, plan.initial)
    elif isinstance(stage, InstanceSelection) and isinstance(algorithm, str):
        problem, operators = PackedProblem(stage), stage.packed_operators()
    return problem, make_algorithm(algorithm, population, operators, stage.n_obj), _end(algorithm, plan)


class _Checked(Sampling):  # type: ignore[misc]
    """A sampling of the user's, whose strings a stage refuses if they break its limits: it repairs none of them."""

    def __init__(self, sampling: Sampling, stage: Stage) -> None:
        super().__init__()
        self.sampling = sampling
        self.stage = stage

    def do(self, *args: Any, **kwargs: Any) -> Population:
        population = self.sampling.do(*args, **kwargs)
        self.stage.check(np.array([individual.X for individual in population]))
        return population


def _checked(name: str, stage: Stage, initial: Any) -> NDArray[Any] | Sampling:
    """Return an initial population, which a stage takes as it is or refuses."""
    if isinstance(initial, Sampling):
        return _Checked(initial, stage)
    X = np.asarray(initial)
    if X.ndim != 2 or X.shape[1] != stage.n_var:
        raise ValueError(f"{name}: initial must have shape (n_individuals, {stage.n_var}), not {X.shape}")
    try:
        stage.check(X)
    except ValueError as error:
        raise ValueError(f"{name}: initial: {error}") from None
    return X


def _end(algorithm: str | Factory, plan: StagePlan[Any]) -> Any:
    """Return when a search ends: as its plan has it, else after its generations.

    Those of a staircase search differ in size; it ends after as many evaluations as the plan's stand for.
    """
    if plan.termination is not None:
        return plan.termination
    settings = plan.settings
    if algorithm == "staircase":
        return "n_eval", settings.population * settings.generations
    return "n_gen", settings.generations


def history_of(result: SearchResult, stage: Stage) -> pd.DataFrame:
    """Return a row for each generation of a stage's search, as `MOFSRank.history_` has it.

    The box of the hypervolume is that of all features, whatever the strings are, so that stages can be compared.
    """
    train = stage.train
    least, largest = np.array([entry.bounds(train, train.n_features) for entry in stage.objectives], np.float64).T
    return pd.DataFrame(
        {
            "generation": [generation.n_gen for generation in result.history],
            "n_eval": [generation.n_eval for generation in result.history],
            "hypervolume": result.hypervolume(largest) / np.prod(largest - least),
            "seconds": [generation.elapsed for generation in result.history],
        }
    )


def journal_of_stage(path: str | Path, stage: str, configuration: Mapping[str, Any]) -> Journal:
    """Return the journal of one stage, beside those of the others, for a search with this configuration."""
    # A factory or a sampling of the user's shows its address, which is another in every process.
    stable = json.loads(re.sub(r" at 0x[0-9a-f]+", "", json.dumps(configuration)))
    return Journal(Path(path).with_name(f"{Path(path).name}.{stage}"), stable)


def digest_of(train: RankingData) -> str:
    """Return what tells data apart, one pass over them and no copy, and remembered with them."""

    def digest() -> str:
        costs = () if train.costs is None else (train.costs.own, train.costs.group, train.costs.shared)
        digests = train.map(_digest, costs)
        if len(digests) == 1:
            return digests[0]
        return hashlib.blake2b("".join(digests).encode(), digest_size=16).hexdigest()

    return train.remember("digest of the data", digest)


def _digest(data: RankingData, costs: Sequence[NDArray[Any]]) -> str:
    total = hashlib.blake2b(digest_size=16)
    for array in (data.X, data.y, data.offsets, *costs):
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()
