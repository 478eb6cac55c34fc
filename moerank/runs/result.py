"""What one run found, in plain values: enough for every table and figure without running again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from moerank.data import PER_QUERY, UNSCALED, FittedScaling, MissingRule, Scaling
from moerank.rankers.model import Model
from moerank.runs.stored import FORMAT, PARTS, StoredRanker, check_format, read_stored
from moerank.stages.instance_units import Unit
from moerank.stages.objectives import FRONT
from moerank.verdict import Verdict

__all__ = ["FORMAT", "PARTS", "RunResult", "ScoredRanker", "check_format"]

_PLAIN: dict[str, Scaling] = {scaling.kind: scaling for scaling in (UNSCALED, PER_QUERY)}


@dataclass(frozen=True)
class ScoredRanker:
    """A ranker, and how it ranks each part of the fold.

    Attributes
    ----------
    name : str
    model : Model
        The ranker itself, as far as it can be stored.
    objectives : dict
        The value of each objective of the problem on the training part, also for rankers that no search found.
    scores : dict
        Part ("train", "validation", "test"), then metric, then the mean over queries.
    per_query : dict
        The same with the values of all queries; empty for members that were not chosen.
    further : dict
        Part, then each metric that is not in `scores`, then the mean over queries; empty for members that were not
        chosen, and in results of earlier versions.
    paired_error : float or None
        Standard error of the difference from the baseline "all features", query by query: of the first metric, on the
        test part. None where that baseline was not measured, and for baselines.
    """

    name: str
    model: Model
    objectives: dict[str, float]
    scores: dict[str, dict[str, float]]
    per_query: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    further: dict[str, dict[str, float]] = field(default_factory=dict, kw_only=True)
    paired_error: float | None = None

    @property
    def features(self) -> tuple[int, ...]:
        """The columns that it needs, ascending."""
        return self.model.columns

    @property
    def weights(self) -> tuple[float, ...] | None:
        """Their weights; None if the ranker does not score by wᵀx."""
        return self.model.weights

    def as_dict(self) -> dict[str, Any]:
        """Return the ranker as a result keeps it: names and scaling of the features are there once for all rankers."""
        return {
            "name": self.name,
            "features": self.features,
            "weights": self.weights,
            "trees": None if self.model.trees is None else asdict(self.model.trees),
            "parameters": self.model.parameters,
            "objectives": self.objectives,
            "scores": self.scores,
            "per_query": self.per_query,
            **({} if self.paired_error is None else {"paired_error": self.paired_error}),
            **({"further": self.further} if self.further else {}),
        }

    @classmethod
    def from_stored(
        cls, stored: StoredRanker, feature_names: Sequence[str], scaling: Scaling, missing: MissingRule | None
    ) -> ScoredRanker:
        """Read what `as_dict` returned, with the names of all columns, how they are scaled, and what was missing."""
        own = set(stored.features)
        model = Model(
            names=tuple(feature_names[feature] for feature in stored.features),
            columns=stored.features,
            weights=stored.weights,
            trees=stored.trees,
            scaling=scaling.of_features(np.array([column in own for column in range(len(feature_names))])),
            missing=missing,
            parameters=stored.parameters,
        )
        values = stored.objectives, stored.scores, stored.per_query, stored.paired_error
        return cls(stored.name, model, *values, further=stored.further)


@dataclass(frozen=True)
class RunResult:
    """The result of one solver with one seed on one fold of a problem.

    Attributes
    ----------
    problem : str
    fold : int
    solver : str
        The label of the solver: its name, with the parameters that were asked for in brackets.
    seed : int
        The number of the run among those that differ in their draws alone.
    random_state : int
        What the draws came from.
    metrics : list of str
        The metric of the error, then the second one of the tables.
    objectives : list of str
        The names of the objectives.
    configuration : dict
        All settings that decide the result.
    feature_names : list of str
    queries : dict of list
        The query ids of each part, in the order of the per-query values.
    front : list of ScoredRanker
        What the solver offers, by size: the non-dominated members of a search, the path of another selection, the
        only ranker of a solver that selects nothing.
    chosen : int
        Which of them was chosen.
    baselines : list of ScoredRanker
        All features, the best single feature, FSMRank.
    convergence : dict
        For each stage the lists "generation", "evaluations" and "hypervolume".
    n_evaluations : int
    times : dict
        Seconds of each step; under "processor" those that the processor worked, which do not grow when others use the
        machine; under "stages" those of each generation. With `versions` all that differs between two runs of the same
        configuration.
    versions : dict of str
        Of the libraries; and the "machine", for the sake of the times.
    scaling : Scaling
        How the features of all parts were scaled.
    missing : float, str or None
        The rule for missing values.
    instances : {"pair", "document", "query"} or None
        What instance selection chose among; None without it.
    verdict : Verdict or None
        The chosen member against the same ranker on all features, on the test queries; None of what selects nothing.
    """

    problem: str
    fold: int
    solver: str
    seed: int
    random_state: int
    metrics: list[str]
    objectives: list[str]
    configuration: dict[str, Any]
    feature_names: list[str]
    queries: dict[str, list[Any]]
    front: list[ScoredRanker]
    chosen: int
    baselines: list[ScoredRanker]
    convergence: dict[str, dict[str, list[float]]]
    n_evaluations: int
    times: dict[str, Any]
    versions: dict[str, str]
    scaling: Scaling = UNSCALED
    missing: MissingRule | None = None
    instances: Unit | None = None
    verdict: Verdict | None = None

    @property
    def best(self) -> ScoredRanker:
        """The chosen member of the front."""
        return self.front[self.chosen]

    @property
    def further_objectives(self) -> list[str]:
        """The objectives beyond the number of features and the error, which every table has."""
        return [name for name in self.objectives if name not in FRONT]

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of the image whose pixels the features are, if they are, and none is left out."""
        grid = self.configuration["data"]["grid"]
        return None if grid is None or grid[0] * grid[1] != len(self.feature_names) else (grid[0], grid[1])

    def names(self, features: Sequence[int]) -> list[str]:
        """Return the names of columns."""
        return [self.feature_names[feature] for feature in features]

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON keeps it, keys always in the same order."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        rankers = {key: [ranker.as_dict() for ranker in values[key]] for key in ("front", "baselines")}
        if values.pop("instances") not in (None, "pair"):  # as it always was
            values["instances"] = self.instances
        if (verdict := values.pop("verdict")) is not None:
            values["verdict"] = verdict.as_dict()
        if values.pop("missing") is not None:
            values["missing"] = self.missing
        if values.pop("scaling").kind != self.configuration["data"]["normalize"]:
            values["scaling"] = {"kind": self.scaling.kind}
        if isinstance(self.scaling, FittedScaling):
            values["scaling"] = {"kind": self.scaling.kind, **asdict(self.scaling)}
        return {"format": FORMAT, **values, **rankers}

    def to_json(self) -> str:
        """Return the text of result.json."""
        return json.dumps(self.as_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> RunResult:
        """Read the text of a result.json.

        Raises
        ------
        ValueError
            If it is not one, or one of another format; the message names the place.
        """
        try:
            stored = read_stored(text)
            scaling = _PLAIN.get(stored.configuration["data"]["normalize"], UNSCALED)
            if stored.scaling is not None:
                scaling = stored.scaling.read()
            shared = stored.feature_names, scaling, stored.missing
            values: dict[str, Any] = {name: getattr(stored, name) for name in type(stored).model_fields}
            del values["format"]
            values["scaling"] = scaling
            if stored.instances is None and "instance_selection" in stored.convergence:
                values["instances"] = "pair"
            values["convergence"] = {stage: columns.model_dump() for stage, columns in stored.convergence.items()}
            values["times"] = stored.times.model_dump()
            values["verdict"] = None if stored.verdict is None else stored.verdict.read()
            for key in ("front", "baselines"):
                values[key] = [ScoredRanker.from_stored(ranker, *shared) for ranker in values[key]]
            return cls(**values)
        except ValueError as error:
            raise ValueError(f"not a result of this version of moerank ({error})") from None
