"""A ranking problem: what is optimised, table by table as a problem file holds it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from moerank.checks import unknown
from moerank.data import fit_scaling
from moerank.data.sharded_data import NOT_ON_SHARDS
from moerank.evolution import ALGORITHMS
from moerank.metrics import Metric, make_metric
from moerank.runs.data_section import Fold
from moerank.runs.features import FeaturesSection
from moerank.runs.given_solver import AnySolver
from moerank.runs.places import Places
from moerank.runs.section import Parameters, Section
from moerank.runs.sharding import load_sharded_fold
from moerank.runs.sources import Data, read_data
from moerank.solvers import make_backend
from moerank.stages.choice import Final
from moerank.stages.objectives import FRONT, read_objectives
from moerank.stages.refit import read_refit
from moerank.stages.searching import check_on_shards
from moerank.stages.settings import STAGES, EnsembleSettings, FeatureSelectionSettings, InstanceSelectionSettings
from moerank.verdict import MARGIN

if TYPE_CHECKING:
    from moerank.cluster import DaskCluster

__all__ = ["BackendSection", "MetricSection", "Problem", "Published", "SearchSection", "SolverSection"]


SHARDS = 8
"""Of a problem that is to be in shards and does not say in how many: results depend on it, not on who holds them."""


class MetricSection(Section):
    """The metric of all objectives, see `make_metric`, with its conventions, see `NDCG`: LETOR's by default."""

    name: str = "NDCG@10"
    gain: str | None = None
    discount: str | None = None
    short_queries: str | None = None

    def make(self) -> Metric:
        """Return the metric."""
        conventions = self.model_dump(exclude={"name"}, exclude_none=True)
        try:
            return make_metric(self.name, **conventions)
        except TypeError:
            raise ValueError(f"{self.name} has not all of the conventions {', '.join(conventions)}") from None

    @model_validator(mode="after")
    def _exists(self) -> MetricSection:
        self.make()
        return self


class BackendSection(Section):
    """The ranker that judges each individual, by its name in the table of solvers.

    Attributes
    ----------
    parameters : dict
        Arguments of the ranker.
    tune : bool
        Whether validation MAP chooses among the ranker's published grid before the search.
    """

    name: str = "rankrls"
    parameters: Parameters = Field(default_factory=dict)
    tune: bool = True


class SolverSection(Section):
    """What a file gives to whichever solver is run on the problem; it is read into the `SolverSpec` of the run.

    Attributes
    ----------
    parameters : dict
        Arguments of the solver; what is given here is not chosen by validation data.
    tune : bool
        Whether validation MAP chooses among the solver's published grid.
    """

    parameters: Parameters = Field(default_factory=dict)
    tune: bool = True


class SearchSection(Section):
    """What the stages share: algorithm, objectives, the rule for the final member, the ranker that serves, the margin.

    See `MOFSRank`. The margin is that of other selections' verdicts, too.
    """

    algorithm: str = "nsga2"
    objectives: tuple[str, ...] = FRONT
    final: Final = "auto"
    refit: str | Parameters | None = None
    margin: Annotated[float, Field(gt=0)] = MARGIN

    @field_validator("algorithm")
    @classmethod
    def _exists(cls, algorithm: str) -> str:
        if algorithm not in ALGORITHMS:
            raise ValueError(unknown("algorithm", algorithm, ALGORITHMS))
        return algorithm

    @field_validator("refit")
    @classmethod
    def _is_ranker(cls, refit: str | Parameters | None) -> str | Parameters | None:
        read_refit(refit)
        return refit

    @field_validator("objectives")
    @classmethod
    def _exist(cls, objectives: tuple[str, ...]) -> tuple[str, ...]:
        read_objectives(objectives)
        return objectives


class Published(Section):
    """A published result: means over the five test folds.

    Attributes
    ----------
    method : str
    solver : str, optional
        Its name in the table of solvers.
    features : float, optional
        Mean number of selected features.
    scores : dict of str to float
        Value of each published metric.
    folds : dict of str to list of float
        The values of the single folds, where they are known.
    source : str
    """

    method: str
    solver: str | None = None
    features: float | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    folds: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    source: str


class Problem(Section):
    """A ranking problem: data, features, metric, backend, the budget of each stage, and published results."""

    name: str = Field(pattern=r"^[\w.-]+$", max_length=200)
    data: Data
    features: FeaturesSection = FeaturesSection()
    metric: MetricSection = MetricSection()
    backend: BackendSection = BackendSection()
    solver: SolverSection = SolverSection()
    search: SearchSection = SearchSection()
    instance_selection: InstanceSelectionSettings = InstanceSelectionSettings()
    feature_selection: FeatureSelectionSettings = FeatureSelectionSettings()
    ensemble: EnsembleSettings = EnsembleSettings()
    published: tuple[Published, ...] = ()

    _beside: Path | None = PrivateAttr(default=None)

    @property
    def folder(self) -> Path | None:
        """The folder of the problem's file; None of a problem that has no file, or comes with the package."""
        return self._beside

    def beside(self, folder: Path) -> Self:
        """Return the same problem, whose data are looked for in the folder of its file first."""
        problem = self.model_copy()
        problem._beside = folder
        return problem

    def n_folds(self, data: str | Path | None = None) -> int:
        """Return how many folds the data have.

        Parameters
        ----------
        data : path, optional
            As in `load_fold`.

        Raises
        ------
        FileNotFoundError
            If the data are not there.
        """
        return self.data.n_folds(self._places(data))

    def load_fold(self, fold: int, data: str | Path | None = None) -> Fold:
        """Return the training, validation and test part of a fold.

        A scaling that has to be fitted is fitted on the training part.

        Parameters
        ----------
        fold : int
            From 1 to `n_folds`.
        data : path, optional
            Where files and folders of data are; by default the environment variable ``MOERANK_DATA``, then ``data`` in
            the working directory. The folder of the problem's file comes before all of them.

        Raises
        ------
        FileNotFoundError
            If the data are not there; the message says what to download and where to put it.
        ValueError
            For malformed data, arguments of the data that are out of range, and a grid that does not fit the features.
        """
        return self.load_limited_fold(fold, data)[0]

    def load_limited_fold(
        self, fold: int, data: str | Path | None = None, cluster: DaskCluster | None = None
    ) -> tuple[Fold, dict[str, Any]]:
        """Return the parts of a fold as `load_fold` does, and the limits on features, by the names of arguments.

        The shards of the training part, where it is in some, are held by the workers of `cluster`, or here.
        """
        places = self._places(data)
        if self.data.shards is None:
            train, vali, test = read_data(self.data, fold, places)
        else:
            train, vali, test = load_sharded_fold(self.data, fold, places, cluster)
        rows, columns = self.data.grid or (1, train.n_features)
        if rows * columns != train.n_features:
            raise ValueError(
                f"problem {self.name}: the grid {rows} × {columns} has {rows * columns} pixels, but the data have "
                f"{train.n_features} features; correct [data] grid"
            )
        (train, vali, test), limits = self.features.applied((train, vali, test), places)
        if self.data.scaled is not None:
            scaled = self.data.scaled
            return (train.declared(scaled), vali.declared(scaled), test.declared(scaled)), limits
        if self.data.normalize == "none":
            return (train, vali, test), limits
        scaling = fit_scaling(train, self.data.normalize)
        return (scaling.apply(train), scaling.apply(vali), scaling.apply(test)), limits

    def in_shards(self) -> Self:
        """Return the same problem with its training part in shards: as many as it says, or `SHARDS`."""
        if self.data.shards is not None:
            return self
        problem = self.model_copy(update={"data": self.data.model_copy(update={"shards": SHARDS})})
        problem._beside = self._beside
        return problem

    def spec(self, solver: AnySolver) -> AnySolver:
        """Return a solver with what the problem's file gives to it.

        Raises
        ------
        ValueError
            If the solver cannot keep the limits on features that the file sets.
        """
        spec = solver.beneath(self.solver.parameters, tune=self.solver.tune)
        foreign = [name for name in self.features.limits if name not in spec.takes()]
        if foreign:
            raise ValueError(
                f"{spec.label} cannot keep [features] {', '.join(foreign)}: it selects by rules of its own; take "
                "mofsrank or another search of its family, or leave the limits out"
            )
        if self.data.shards is not None:
            for estimator in (spec.plain(), make_backend(self.backend.name)):
                if not getattr(estimator, "on_shards", False):
                    raise ValueError(f"{type(estimator).__name__} {NOT_ON_SHARDS}; or leave [data] shards out")
            check_on_shards(None, self.instance_selection.unit, self.search.refit)
        return spec

    def offers(self) -> dict[str, Any]:
        """Return the arguments that the problem has for a solver, by the names of those who take them."""
        return {**self.search.model_dump(), **{stage: getattr(self, stage).model_dump() for stage in STAGES}}

    def configuration(self) -> dict[str, Any]:
        """Return all settings of the problem that can decide results, defaults included, as plain JSON values.

        One that came later is there where it is not as it always was: what was computed before still counts.
        """
        settings = self.model_dump(mode="json", exclude={"name", "data", "solver", "published"})
        if settings["instance_selection"]["unit"] == "auto":
            del settings["instance_selection"]["unit"]
        for later in ("refit", "margin"):
            if getattr(self.search, later) == SearchSection.model_fields[later].default:
                del settings["search"][later]
        settings["features"] = self.features.configuration()
        if not settings["features"]:
            del settings["features"]
        if not settings["feature_selection"]["by_group"]:
            del settings["feature_selection"]["by_group"]
        return {"data": self.data.settings(), **settings}

    def _places(self, data: str | Path | None) -> Places:
        """Return where data are looked for: beside the file, and then only in `data` if it is given."""
        if data is not None:
            return Places(self._beside, [Path(data)])
        named = os.environ.get("MOERANK_DATA")
        return Places(self._beside, [*([Path(named)] if named else []), Path("data")])
