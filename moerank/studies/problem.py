"""Problem files: what is optimised, written down in a TOML file that is checked before any work begins."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

import moerank
from moerank.data import RankingData, load_digits_fold, load_fold, load_planted_fold, query_level_norm
from moerank.data.folds import N_FOLDS
from moerank.metrics import Metric, make_metric
from moerank.suggestions import unknown

__all__ = ["Problem", "load_problem", "shipped_problems"]

Fold = tuple[RankingData, RankingData, RankingData]


class Section(BaseModel):
    """A table of a problem file: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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
    grid: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] | None = None


class DigitsData(DataSection):
    """Query by example on handwritten digits; see `load_digits_fold`."""

    source: Literal["digits"]
    n_queries: int = 150
    n_documents: int = 100
    seed: int = 0

    def read(self, fold: int, search: Sequence[Path]) -> Fold:
        """Return the parts of a fold; nothing has to be found on disk."""
        return load_digits_fold(fold, n_queries=self.n_queries, n_documents=self.n_documents, seed=self.seed)


class PlantedData(DataSection):
    """Synthetic data with known relevant features; see `make_planted`."""

    source: Literal["planted"]
    n_queries: int = 100
    n_documents: int = 20
    n_relevant: int = 5
    n_redundant: int = 10
    n_noise: int = 15
    n_labels: int = 3
    noise: float = 0.1
    seed: int = 0

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
    missing: float | None = None

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
    parameters: dict[str, Any] = Field(default_factory=dict)
    tune: bool = True


class StageSection(Section):
    """The budget of a stage."""

    population: Annotated[int, Field(ge=2)] = 100
    generations: Annotated[int, Field(ge=1)] = 100


class InstanceSelectionSection(StageSection):
    """Settings of the first stage; see `InstanceSelectionSettings`."""

    generations: Annotated[int, Field(ge=1)] = 50
    density: tuple[float, float] = (0.05, 0.5)
    max_subsets: Annotated[int, Field(ge=1)] = 10
    include_all: bool = True


class FeatureSelectionSection(StageSection):
    """Settings of the second stage; see `FeatureSelectionSettings`."""

    form: Literal["additive", "convex", "product"] = "additive"
    decay: Literal["inverse", "exp", "geometric", "linear"] = "inverse"


class EnsembleSection(StageSection):
    """Settings of the third stage; see `EnsembleSettings`."""

    inject: bool = False


class SearchSection(Section):
    """What the stages share: pymoo's algorithm, and the rule that chooses the final member; see `MOFSRank`."""

    algorithm: str = "nsga2"
    final: Literal["auto", "train", "validation"] = "auto"

    @field_validator("algorithm")
    @classmethod
    def _exists(cls, algorithm: str) -> str:
        from moerank.evolution import ALGORITHMS

        if algorithm not in ALGORITHMS:
            raise ValueError(unknown("algorithm", algorithm, ALGORITHMS))
        return algorithm


class Published(Section):
    """A published result: means over the five test folds.

    Attributes
    ----------
    method : str
    features : float, optional
        Mean number of selected features.
    scores : dict of str to float
        Value of each published metric.
    source : str
    """

    method: str
    features: float | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    source: str


class Problem(Section):
    """A ranking problem: data, metric, backend, the budget of each stage, and published results."""

    name: str = Field(pattern=r"^[\w.-]+$")
    data: Annotated[DigitsData | PlantedData | LetorData, Field(discriminator="source")]
    metric: MetricSection = MetricSection()
    backend: BackendSection = BackendSection()
    search: SearchSection = SearchSection()
    instance_selection: InstanceSelectionSection = InstanceSelectionSection()
    feature_selection: FeatureSelectionSection = FeatureSelectionSection()
    ensemble: EnsembleSection = EnsembleSection()
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

    def configuration(self) -> dict[str, Any]:
        """Return all settings that decide results, defaults included, as plain JSON values."""
        settings = self.model_dump(mode="json", exclude={"name", "published"})
        settings["data"].pop("origin", None)
        return settings


def shipped_problems() -> dict[str, Path]:
    """Return the problem files that come with the package, by name.

    Examples
    --------
    >>> sorted(shipped_problems())
    ['digits', 'mq2008', 'ohsumed', 'planted']
    """
    package = Path(moerank.__file__).parent
    # The wheel carries the folder inside the package; in a checkout it stands beside it.
    folder = next(path for path in (package / "problems", package.parent / "problems") if path.is_dir())
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_problem(problem: str | Path, overrides: Mapping[str, Any] | None = None) -> Problem:
    """Read a problem file.

    Parameters
    ----------
    problem : str or Path
        The name of a shipped problem, or the path of a file.
    overrides : mapping of str to object, optional
        Values that replace the file's, as ``{"feature_selection.generations": 20}``.

    Raises
    ------
    FileNotFoundError
        If there is no such file or shipped problem.
    ValueError
        If the file is no TOML, or holds an unknown key or a wrong value. The message names file, table and key, and
        the nearest key that exists.

    Examples
    --------
    >>> load_problem("digits").metric.name
    'NDCG@10'
    >>> load_problem("digits", {"ensemble.generatons": 5})
    Traceback (most recent call last):
        ...
    ValueError: --set ensemble.generatons: unknown key [ensemble] generatons; did you mean generations?
    """
    path = _problem_path(problem)
    overrides = overrides or {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a TOML file: {error}") from None
    for key, value in overrides.items():
        _put(document, key, value)
    try:
        return Problem.model_validate(document)
    except ValidationError as error:
        raise ValueError(_sentence(error, str(path), overrides)) from None


def _problem_path(problem: str | Path) -> Path:
    shipped = shipped_problems()
    if str(problem) in shipped:
        return shipped[str(problem)]
    if Path(problem).is_file():
        return Path(problem)
    if Path(problem).suffix == ".toml":
        raise FileNotFoundError(f"there is no problem file {problem}; shipped problems are {', '.join(shipped)}")
    raise FileNotFoundError(unknown("problem", str(problem), shipped) + " (or give the path of a problem file)")


def _places(data: str | Path | None) -> list[Path]:
    """Return where data are looked for: only `data` if it is given."""
    if data is not None:
        return [Path(data)]
    named = os.environ.get("MOERANK_DATA")
    return [*([Path(named)] if named else []), Path("data")]


def _put(document: dict[str, Any], key: str, value: Any) -> None:
    """Set the value of a dotted key, making tables on the way."""
    *tables, last = key.split(".")
    for table in tables:
        document = document.setdefault(table, {})
        if not isinstance(document, dict):
            raise ValueError(f"--set {key}: {table} is a value, not a table")
    document[last] = value


def _sentence(error: ValidationError, file: str, overrides: Mapping[str, Any]) -> str:
    """Say where the most telling error is, and what would be right."""
    # A misspelt key comes first: it may be the reason why another is missing.
    problem = min(error.errors(), key=lambda entry: entry["type"] != "extra_forbidden")
    # Pydantic names the source in the location: data.digits.n_queries is data.n_queries here.
    location = [str(part) for i, part in enumerate(problem["loc"]) if not (i == 1 and problem["loc"][0] == "data")]
    key = ".".join(location)
    override = next((name for name in overrides if name == key or name.startswith(key + ".")), None)
    place = f"--set {override}" if override else file
    table = f"[{'.'.join(location[:-1])}] " if location[:-1] else ""
    if problem["type"] == "extra_forbidden":
        known = list(_section(problem["loc"][:-1]).model_fields)
        nearest = get_close_matches(location[-1], known, n=1)
        advice = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(known)}"
        return f"{place}: unknown key {table}{location[-1]}; {advice}"
    if problem["type"] == "missing":
        return f"{place}: the key {table}{location[-1]} is missing"
    if problem["type"].startswith("union_tag"):
        sources = (get_args(source.model_fields["source"].annotation)[0] for source in SOURCES)
        return f"{place}: [{key}] source: choose one of {', '.join(sources)}"
    if problem["type"] == "value_error":
        return f"{place}: {problem['ctx']['error']}"
    expected = problem["msg"].split(",")[0].removeprefix("Input ")
    given = f", not {problem['input']!r}" if isinstance(problem["input"], str | int | float) else ""
    return f"{place}: {table}{location[-1]}: {expected}{given}"


def _section(location: Sequence[int | str]) -> type[BaseModel]:
    """Return the model of the table at `location`: none is deeper than two steps."""
    match location:
        case ("data", source):
            return next(model for model in SOURCES if source in get_args(model.model_fields["source"].annotation))
        case ("published", _):
            return Published
        case (str(table),):
            return cast("type[BaseModel]", Problem.model_fields[table].annotation)
    return Problem
