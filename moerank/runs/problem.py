"""A ranking problem: what is optimised, table by table as a problem file holds it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from moerank.checks import check_at_least, unknown
from moerank.data import RankingData, load_digits_fold, load_fold, load_planted_fold, query_level_norm
from moerank.data.folds import N_FOLDS
from moerank.data.planted import MOST_LABELS
from moerank.evolution import ALGORITHMS
from moerank.metrics import Metric, make_metric
from moerank.runs.solver_spec import SolverSpec, check_parameters
from moerank.stages.objectives import FRONT, read_objectives
from moerank.stages.settings import (
    STAGES,
    EnsembleSettings,
    FeatureSelectionSettings,
    Final,
    InstanceSelectionSettings,
    at_least,
)

__all__ = ["SOURCES", "Problem", "Published", "Section"]

Fold = tuple[RankingData, RankingData, RankingData]

MOST_SEED = 2**64 - 1


class Section(BaseModel):
    """A table of a problem file: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _checked(parameters: dict[str, Any]) -> dict[str, Any]:
    check_parameters(parameters)
    return parameters


Parameters = Annotated[dict[str, Any], AfterValidator(_checked)]


class DataSection(Section):
    """What all sources of data share.

    Attributes
    ----------
    normalize : {"none", "query"}
        "query" scales every feature to [0, 1] in every query, as LETOR's QueryLevelNorm files are.
    grid : (rows, columns), optional
        The features are the pixels of an image, row by row; figures then show the image.
    """

    normalize: Literal["none", "query"] = "none"
    grid: tuple[Annotated[int, Field(strict=True, ge=1)], Annotated[int, Field(strict=True, ge=1)]] | None = None


class DigitsData(DataSection):
    """Query by example on handwritten digits; see `load_digits_fold`."""

    source: Literal["digits"]
    n_queries: Annotated[int, at_least(5)] = 150
    n_documents: Annotated[int, at_least(2)] = 100
    seed: Annotated[int, at_least(0, MOST_SEED)] = 0

    def read(self, fold: int, search: Sequence[Path]) -> Fold:
        """Return the parts of a fold; nothing has to be found on disk."""
        return load_digits_fold(fold, n_queries=self.n_queries, n_documents=self.n_documents, seed=self.seed)


class PlantedData(DataSection):
    """Synthetic data with known relevant features; see `make_planted`."""

    source: Literal["planted"]
    n_queries: Annotated[int, at_least(1)] = 100
    n_documents: Annotated[int, at_least(2)] = 20
    n_relevant: Annotated[int, at_least(1)] = 5
    n_redundant: Annotated[int, at_least(0)] = 10
    n_noise: Annotated[int, at_least(0)] = 15
    n_labels: Annotated[int, at_least(2, MOST_LABELS)] = 3
    noise: Annotated[float, Field(strict=True, ge=0)] = 0.1
    seed: Annotated[int, at_least(0, MOST_SEED)] = 0

    def read(self, fold: int, search: Sequence[Path]) -> Fold:
        """Return the parts of a fold; nothing has to be found on disk."""
        return load_planted_fold(fold, **self.model_dump(exclude={"source", "normalize", "grid"}))


class LetorData(DataSection):
    """Folders Fold1 … Fold5 of LETOR files.

    Attributes
    ----------
    folder : str
        The folder that holds them, below a place where data are looked for.
    origin : str
        What to download where the folder is missing.
    missing : float, optional
        What the value NULL stands for; without it NULL is an error.
    """

    source: Literal["letor"]
    folder: str
    origin: str = "the data set"
    missing: Annotated[float, Field(strict=True)] | None = None

    @field_validator("folder")
    @classmethod
    def _is_below(cls, folder: str) -> str:
        """Refuse what leads elsewhere: a file that somebody else wrote must not say where to read."""
        path = PureWindowsPath(folder)  # which takes both kinds of slashes, and knows drives
        if path.anchor or ".." in path.parts or "\0" in folder:
            raise ValueError(
                f"folder must lie below the place of the data, not {folder!r}; name that place by --data or by the "
                "environment variable MOERANK_DATA"
            )
        return folder

    def read(self, fold: int, search: Sequence[Path]) -> Fold:
        """Return the parts of a fold from the first place that has the folder."""
        folders = [folder for place in search for folder in (place / self.folder, place)]
        found = next((folder for folder in folders if (folder / "Fold1").is_dir()), None)
        if found is None:
            raise FileNotFoundError(
                f"no folder {self.folder} with Fold1 … Fold{N_FOLDS} in {', '.join(map(str, search))}; download "
                f"{self.origin}, and name the folder that holds {self.folder} by --data or by the environment "
                "variable MOERANK_DATA"
            )
        return load_fold(found / f"Fold{fold}", missing=self.missing)


SOURCES = (DigitsData, PlantedData, LetorData)

Data = Annotated[DigitsData | PlantedData | LetorData, Field(discriminator="source")]


class MetricSection(Section):
    """The metric of all objectives, with its conventions (LETOR's by default); see `make_metric`."""

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
    """What the stages share: pymoo's algorithm, the objectives, and the rule for the final member; see `MOFSRank`."""

    algorithm: str = "nsga2"
    objectives: tuple[str, ...] = FRONT
    final: Final = "auto"

    @field_validator("algorithm")
    @classmethod
    def _exists(cls, algorithm: str) -> str:
        if algorithm not in ALGORITHMS:
            raise ValueError(unknown("algorithm", algorithm, ALGORITHMS))
        return algorithm

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
    """A ranking problem: data, metric, backend, the budget of each stage, and published results."""

    name: str = Field(pattern=r"^[\w.-]+$", max_length=200)
    data: Data
    metric: MetricSection = MetricSection()
    backend: BackendSection = BackendSection()
    solver: SolverSection = SolverSection()
    search: SearchSection = SearchSection()
    instance_selection: InstanceSelectionSettings = InstanceSelectionSettings()
    feature_selection: FeatureSelectionSettings = FeatureSelectionSettings()
    ensemble: EnsembleSettings = EnsembleSettings()
    published: tuple[Published, ...] = ()

    def load_fold(self, fold: int, data: str | Path | None = None) -> Fold:
        """Return the training, validation and test part of a fold.

        Parameters
        ----------
        fold : int
            From 1 to 5.
        data : path, optional
            Where LETOR folders are; by default the environment variable ``MOERANK_DATA``, then ``data`` in the
            working directory.

        Raises
        ------
        FileNotFoundError
            If the data are not there; the message says what to download and where to put it.
        ValueError
            For malformed data, arguments of the data that are out of range, and a grid that does not fit the features.
        """
        check_at_least(1, N_FOLDS, fold=fold)
        train, vali, test = self.data.read(fold, _places(data))
        rows, columns = self.data.grid or (1, train.n_features)
        if rows * columns != train.n_features:
            raise ValueError(
                f"problem {self.name}: the grid {rows} × {columns} has {rows * columns} pixels, but the data have "
                f"{train.n_features} features; correct [data] grid"
            )
        if self.data.normalize == "query":
            return query_level_norm(train), query_level_norm(vali), query_level_norm(test)
        return train, vali, test

    def spec(self, solver: SolverSpec) -> SolverSpec:
        """Return a solver with what the problem's file gives to it."""
        return solver.beneath(self.solver.parameters, tune=self.solver.tune)

    def offers(self) -> dict[str, Any]:
        """Return the arguments that the problem has for a solver, by the names of those who take them."""
        return {**self.search.model_dump(), **{stage: getattr(self, stage).model_dump() for stage in STAGES}}

    def configuration(self) -> dict[str, Any]:
        """Return all settings of the problem that can decide results, defaults included, as plain JSON values."""
        settings = self.model_dump(mode="json", exclude={"name", "solver", "published"})
        settings["data"].pop("origin", None)
        return settings


def _places(data: str | Path | None) -> list[Path]:
    """Return where data are looked for: only `data` if it is given."""
    if data is not None:
        return [Path(data)]
    named = os.environ.get("MOERANK_DATA")
    return [*([Path(named)] if named else []), Path("data")]
