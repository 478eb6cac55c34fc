"""Problem files: the data, features, metric and search budgets of a ranking problem."""

import json
import re
from collections.abc import Container, Mapping
from contextlib import AbstractContextManager
from difflib import get_close_matches
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from moerank.checks import Parameters, check_at_least, unknown
from moerank.data import Fold, fit_scaling
from moerank.data.folds import data_folders
from moerank.data.read.cost_table import read_cost_table
from moerank.data.read.table import reader_of
from moerank.files import Json, read_toml
from moerank.metrics import Metric, make_metric
from moerank.mofsrank.limits import allowed_features
from moerank.mofsrank.settings import (
    STAGES,
    EnsembleSettings,
    FeatureSelectionSettings,
    InstanceSelectionSettings,
    LimitsSection,
    SearchSettings,
    Section,
    ServeSettings,
    pydantic_errors_as_value_errors,
)
from moerank.runs.sources import (
    Data,
    DataFolder,
    Folders,
    InMemory,
    MemoryData,
    change_parts,
    find_data,
    read_memory,
    shipped_folder,
)
from moerank.solvers import find_solver, format_argument, read_solver

# Parameters of an estimator that every run sets; results do not depend on them.
SET_BY_RUN = ("memo", "progress", "resume", "workers")

# Parameters that do not count when two estimators are compared.
IGNORED = (*SET_BY_RUN, "verbose")

# Arguments of solvers that belong to a run, not to a method; files must not set them.
RUN_ARGUMENTS = (*IGNORED, "random_state")


def check_parameters(parameters: Parameters) -> Parameters:
    """Return the parameters; refuse `RUN_ARGUMENTS` and values that JSON cannot store."""
    for name in parameters:
        if name in RUN_ARGUMENTS:
            raise ValueError(
                f"{name} belongs to a run, not to a method; "
                "options such as --seed and --workers set it"
            )
        try:
            json.dumps(parameters[name], allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{name} must be a text, true or false, a finite number, "
                f"or a table or list of these ({error})"
            ) from None
    return parameters


PlainParameters = Annotated[Parameters, AfterValidator(check_parameters)]


def parse_solver(text: str) -> tuple[str, Parameters]:
    """Return the name and the parameters of a solver, checked; see `moerank.solvers.read_solver`."""
    name, parameters = read_solver(text)
    try:
        check_parameters(parameters)
    except ValueError as error:
        raise ValueError(f"solver {text!r}: {error}") from None
    find_solver(name, parameters)
    return name, parameters


def solver_label(name: str, parameters: Parameters) -> str:
    """Return the name of a solver, with its parameters in brackets."""
    text = ",".join(f"{key}={format_argument(value)}" for key, value in parameters.items())
    return f"{name}[{text}]" if text else name


class FeaturesSection(LimitsSection):
    """The costs of the features, and limits on their selection.

    Attributes
    ----------
    include : sequence of int or str
        Columns or names of features that belong to every selection.
    exclude : sequence of int or str
        Columns, counted from 0, or names of features that are removed from the data before anything else.
    max_features : int, optional
        Largest number of features in a selection.
    max_cost : float, optional
        Largest total cost of a selection.
    table : str, optional
        A CSV file with the columns name and cost and, for features that are computed together, group and group_cost. It
        is searched for in the same folders as the data. The objective "cost" is the sum of these costs.
    other : float, optional
        The cost of each feature that the table does not name; by default every feature needs a row.
    """

    table: Annotated[str, Field(min_length=1)] | None = None
    other: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.other is not None and self.table is None:
            raise ValueError(
                "other is the cost of features that a table does not name; give table, too"
            )
        return self

    def applied(self, fold: Fold, folders: Folders) -> tuple[Fold, Parameters]:
        """Return the parts of a fold with these costs and without the excluded features, and the limits.

        The limits refer to features by name, because excluded features shift the columns of others.

        Raises
        ------
        FileNotFoundError
            If the table does not exist.
        ValueError
            If the table is malformed or has other features, a feature does not exist or is both included and excluded,
            or all features are excluded.
        """
        names = fold[0].feature_names
        for path in self.files(folders):
            costs = read_cost_table(path, names, self.other)
            fold = change_parts(fold, methodcaller("with_costs", costs))
        try:
            allowed, limits = allowed_features(fold[0], self)
        except ValueError as error:
            raise ValueError(f"[features] {error}") from None
        train, validation, test = change_parts(fold, lambda part: part.with_features(allowed))
        return (train.within_table(fold[0].table_names), validation, test), limits

    def files(self, folders: Folders) -> list[Path]:
        """Return the table, if there is one."""
        if self.table is None:
            return []
        return [
            find_data(self.table, [*folders, shipped_folder()], "put it beside the problem file")
        ]


class MetricSection(Section):
    """The metric of all objectives, see `make_metric`, with its conventions, see `NDCG`.

    Attributes
    ----------
    tuning : str, optional
        The metric by which validation queries choose parameters of rankers; by default the metric itself. LETOR's
        published rows were tuned by MAP.
    """

    name: str = "NDCG@10"
    gain: str | None = None
    convention: str | None = None
    discount: str | None = None
    short_queries: str | None = None
    ties: str | None = None
    tuning: str | None = None

    def make(self) -> Metric:
        """Return the metric."""
        conventions = self.model_dump(exclude={"name", "tuning"}, exclude_none=True)
        try:
            return make_metric(self.name, **conventions)
        except TypeError:
            raise ValueError(
                f"{self.name} does not have all the conventions {', '.join(conventions)}"
            ) from None

    def for_tuning(self) -> Metric:
        """Return the metric by which parameters are chosen."""
        return self.make() if self.tuning is None else make_metric(self.tuning)

    @model_validator(mode="after")
    def _exists(self) -> Self:
        self.make()
        self.for_tuning()
        return self


class BackendSection(Section):
    """The ranker that evaluates each individual, by its name in the table of solvers.

    Attributes
    ----------
    parameters : dict
        Arguments of the ranker.
    tune : bool
        Whether validation queries choose from the ranker's published grid before the search.
    """

    name: str = "rankrls"
    parameters: PlainParameters = Field(default_factory=dict)
    tune: bool = True


class ComparisonSection(Section):
    """The baselines to compare the solver with.

    Attributes
    ----------
    trees : int
        Largest number of trees of the baseline LambdaMART; validation chooses how many of them to use. 0 leaves the
        baseline out.
    """

    trees: Annotated[int, Field(ge=0)] = 100


class SolverSection(BackendSection):
    """The default solver of a problem, and settings for every solver that runs on it.

    Attributes
    ----------
    name : str
        The solver of ``moerank run``, with its parameters in brackets: "mofsrank-staircase[ensemble=false]".
    parameters : dict
        Arguments of the solver; validation data do not choose those that are given here.
    tune : bool
        Whether validation queries choose from the solver's published grid.
    """

    name: Annotated[str, AfterValidator(lambda text: solver_label(*parse_solver(text)))] = (
        "mofsrank"
    )


class Published(Section):
    """A published result: means over the five test folds.

    Attributes
    ----------
    method : str
    solver : str, optional
        The name of the method in the table of solvers.
    features : float, optional
        Mean number of selected features.
    scores : dict of str to float
        Value of each published metric.
    source : str
    """

    method: str
    solver: str | None = None
    features: float | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    source: str

    def value(self, metric: str) -> float | None:
        """Return the published value of a metric, or None. Published values follow LETOR's conventions."""
        return self.scores.get(metric.removesuffix(" (letor)"))


class Problem(Section):
    """A ranking problem: data, features, metric, backend, budget of each stage, and published results."""

    name: str = Field(pattern=r"^[\w.-]+$", max_length=200)
    data: Data
    features: FeaturesSection = FeaturesSection()
    metric: MetricSection = MetricSection()
    backend: BackendSection = BackendSection()
    comparison: ComparisonSection = ComparisonSection()
    solver: SolverSection = SolverSection()
    search: SearchSettings = SearchSettings()
    serve: ServeSettings = ServeSettings()
    instance_selection: InstanceSelectionSettings = InstanceSelectionSettings()
    feature_selection: FeatureSelectionSettings = FeatureSelectionSettings()
    ensemble: EnsembleSettings = EnsembleSettings()
    published: tuple[Published, ...] = ()

    _folder: Path | None = PrivateAttr(default=None)

    @field_validator("search", "serve", *STAGES)
    @classmethod
    def _is_plain(cls, settings: Section) -> Section:
        check_parameters(dict(settings))
        return settings

    def located_in(self, folder: Path) -> Self:
        """Return the same problem, whose data are searched for in the folder of its file first."""
        problem = self.model_copy()
        problem._folder = folder
        return problem

    def with_backend(self, name: str) -> Self:
        """Return the same problem with another ranker that evaluates each individual."""
        backend = self.backend.model_copy(update={"name": name})
        return self.model_copy(update={"backend": backend})

    def n_folds(self, data: DataFolder = None) -> int:
        """Return how many folds the data have.

        Parameters
        ----------
        data : path, optional
            As in `load_fold`.

        Raises
        ------
        FileNotFoundError
            If the data do not exist.
        """
        return self.data.n_folds(self.folders(data))

    def load_fold(self, fold: int, data: DataFolder = None) -> Fold:
        """Return the training, validation and test part of a fold, scaled by values from the training part.

        Parameters
        ----------
        fold : int
            From 1 to `n_folds`.
        data : path, optional
            The folder with the data; by default that in the environment variable ``MOERANK_DATA``, then ``data`` in the
            working directory. The folder of the problem file is always searched first.

        Raises
        ------
        FileNotFoundError
            If the data do not exist; the message says what to download and where to put it.
        ValueError
            If the data are malformed, or a setting of the data is out of range.
        """
        return self.load_limited_fold(fold, data)[0]

    def load_limited_fold(self, fold: int, data: DataFolder = None) -> tuple[Fold, Parameters]:
        """Return the parts of a fold as `load_fold` does, and the limits on features by argument name."""
        folders = self.folders(data)
        check_at_least(1, self.data.n_folds(folders), fold=fold)
        parts, limits = self.features.applied(self.data.read(fold, folders), folders)
        scaled = self.data.scaled
        if scaled is not None:
            return change_parts(parts, lambda part: part.mark_scaled(scaled)), limits
        train = parts[0]
        _ = train.is_extreme  # of raw values
        return change_parts(parts, fit_scaling(train, self.data.normalize).apply), limits

    def search_settings(self, stages: Container[str]) -> Parameters:
        """Return the settings of the search, and those of these stages, by argument name."""
        settings = self.search.model_dump()
        settings |= {"refit": self.serve.rankers, "proposals": self.serve.proposals}
        for stage in STAGES:
            if stage in stages:
                settings[stage] = getattr(self, stage).model_dump()
        return settings

    def published_value(self, solver: str, metric: str) -> float | None:
        """Return the first published value of a solver, or None."""
        values = (entry.value(metric) for entry in self.published if entry.solver == solver)
        return next((value for value in values if value is not None), None)

    def configuration(self) -> Json:
        """Return all settings of the problem that can change results, with defaults, as plain JSON values."""
        settings = self.model_dump(mode="json", exclude={"name", "data", "solver", "published"})
        return {"data": self.data.settings(), **settings}

    def files(self, fold: int, data: DataFolder = None) -> list[Path]:
        """Return the files of a fold, and the table of costs; arguments as in `load_fold`."""
        folders = self.folders(data)
        return [*self.data.files(fold, folders), *self.features.files(folders)]

    def folders(self, data: DataFolder) -> Folders:
        """Return the folders to search for data: that of the problem file, then `data` or else the default ones."""
        return [*filter(None, [self._folder]), *(data_folders() if data is None else [Path(data)])]


def shipped_problems() -> dict[str, Path]:
    """Return the problem files that come with the package, by name.

    Examples
    --------
    >>> sorted(shipped_problems())[:4]
    ['digits', 'hp2004', 'mq2007', 'mq2008']
    """
    return {path.stem: path for path in sorted(shipped_folder().glob("*.toml"))}


def load_problem(problem: str | Path, overrides: Mapping[str, Any] | None = None) -> Problem:
    """Read a problem file.

    Parameters
    ----------
    problem : str or Path
        The name of a shipped problem, or the path of a file.
    overrides : mapping of str to object, optional
        Values that replace those in the file, such as ``{"feature_selection.generations": 20}``.

    Raises
    ------
    FileNotFoundError
        If there is no such file or shipped problem.
    ValueError
        If the file is not TOML, or has an unknown key or a wrong value. The message names the file, the table and the
        key, and the most similar key that exists.

    Examples
    --------
    >>> load_problem("digits").metric.name
    'NDCG@10'
    >>> load_problem("digits", {"ensemble.generatons": 5})
    Traceback (most recent call last):
        ...
    ValueError: --set ensemble.generatons: unknown key [ensemble] generatons; did you mean generations?
    """
    shipped = shipped_problems()
    path = shipped.get(str(problem), Path(problem))
    if not path.is_file():
        raise FileNotFoundError(
            unknown("problem", str(problem), shipped) + " (or give the path of a problem file)"
        )
    if reader_of(path) is not None:
        raise ValueError(f"{path} is a table, not a problem file; moerank init {path} writes one")
    overrides = overrides or {}
    with _explained(str(path), overrides):
        content = Problem.model_validate(_changed(read_toml(path), overrides))
    return content if str(problem) in shipped else content.located_in(path.parent)


def make_problem(name: str, data: InMemory, settings: Mapping[str, Any] | None = None) -> Problem:
    """Return a problem whose data are in memory.

    Parameters
    ----------
    name : str
    data : RankingData, (RankingData, RankingData, RankingData) or a sequence of such tuples
        The training, validation and test part of each fold; or one table. A fifth of the queries of a table becomes
        validation queries and another fifth test queries, unless the setting ``data.split`` says something else.
    settings : mapping of str to object, optional
        Settings of a problem file, such as ``{"metric.name": "NDCG@5", "ensemble.generations": 20}``.

    Raises
    ------
    ValueError
        If the data or the settings are invalid.

    Examples
    --------
    >>> from moerank.data import load_planted_fold
    >>> problem = make_problem("mine", load_planted_fold(1), {"metric.name": "MAP"})
    >>> problem.metric.name, problem.n_folds()
    ('MAP', 1)
    """
    settings = settings or {}
    document = _changed({"name": name}, settings)
    with _explained(f"problem {name!r}", settings):
        document["data"] = read_memory(data, document.get("data", {}))
        return Problem.model_validate(document)


def with_settings(problem: Problem, settings: Mapping[str, object]) -> Problem:
    """Return a problem with other settings, as `load_problem` takes them.

    Raises
    ------
    ValueError
        If a key is unknown or a value wrong, or if settings of the data are given for data in memory; give those to
        `make_problem`.

    Examples
    --------
    >>> with_settings(load_problem("digits"), {"metric.name": "MAP"}).metric.name
    'MAP'
    """
    if not settings:
        return problem
    document = _changed(problem.model_dump(exclude_unset=True), settings)
    if isinstance(problem.data, MemoryData):
        for key in settings:
            if key.startswith("data."):
                raise ValueError(
                    f"{key}: the data of {problem.name} are in memory; pass their settings to "
                    "make_problem"
                )
        document["data"] = problem.data
    with _explained(f"problem {problem.name!r}", settings):
        changed = Problem.model_validate(document)
    return changed.located_in(problem._folder) if problem._folder else changed


def _explained(file: str, overrides: Mapping[str, object]) -> AbstractContextManager[None]:
    """Turn an error of pydantic into a ValueError that tells the place of the mistake, and what is right there."""
    return pydantic_errors_as_value_errors(partial(_sentence, file=file, overrides=overrides))


def _changed(document: Json, settings: Mapping[str, object]) -> Json:
    """Put settings into a document under their dotted keys, create missing tables, and return the document."""
    for key, value in settings.items():
        *tables, name = key.split(".")
        section = document
        for table in tables:
            section = section.setdefault(table, {})
            if not isinstance(section, dict):
                raise ValueError(f"--set {key}: {table} is a value, not a table")
        section[name] = value
    return document


def _keys_like(location: list[str]) -> list[str]:
    """Return the key of a problem file that is most similar, or with each table that has it, or the table itself."""
    key, schema = location[-1], Problem.model_json_schema()
    models = {name: model.get("properties", {}).keys() for name, model in schema["$defs"].items()}
    tables = {}
    for name, part in schema["properties"].items():
        kinds = re.findall(r"#/\$defs/(\w+)", str(part))
        tables[name] = set().union(*(models[kind] for kind in kinds))
    keys = {*tables}.union(*models.values())
    if key not in keys:
        return get_close_matches(key, keys, n=1)
    if tables.get(key):
        return [f"[{key}]"]
    return [f"[{name}] {key}" for name in tables if key in tables[name] and name != location[0]]


def _sentence(error: ValidationError, file: str, overrides: Mapping[str, object]) -> str:
    """Describe the most helpful error: its place, and what is right there."""
    # A misspelt key comes first, because it may be the reason why another key is missing.
    problem = min(error.errors(), key=lambda entry: entry["type"] != "extra_forbidden")
    # Pydantic adds the source to the location: it calls data.n_queries data.digits.n_queries.
    location = [
        str(part)
        for i, part in enumerate(problem["loc"])
        if not (i == 1 and problem["loc"][0] == "data")
    ]
    key = ".".join(location)
    override = next((name for name in overrides if name == key or name.startswith(key + ".")), None)
    origin = f"--set {override}" if override else file
    table = f"[{'.'.join(location[:-1])}] " if location[:-1] else ""
    if problem["type"] == "extra_forbidden":
        message = f"{origin}: unknown key {table}{location[-1]}"
        likely = " or ".join(_keys_like(location))
        return f"{message}; did you mean {likely}?" if likely else message
    if problem["type"] == "value_error":
        if location in (["data"], ["data", "split"]):  # the error concerns several keys together
            table = f"[{'.'.join(location)}] "
        if location[-1:] == ["parameters"]:
            table += "parameters: "
        return f"{origin}: {table}{problem['ctx']['error']}"
    return f"{origin}: {table}{location[-1]}: {problem['msg'].removeprefix('Input ')}"
