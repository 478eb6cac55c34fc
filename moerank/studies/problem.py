"""Problem files: the data, features, metric and budgets of a ranking problem."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, PrivateAttr, ValidationError, field_validator, model_validator

from moerank.checks import Parameters, check_at_least, unknown
from moerank.data import fit_scaling
from moerank.data.costs import read_cost_table
from moerank.data.read.table import reader_of
from moerank.files import Json, read_text, read_toml
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
    StageSettings,
)
from moerank.studies.solver import PlainParameters, Solver
from moerank.studies.sources import (
    Data,
    Fold,
    Folders,
    InMemory,
    MemoryData,
    find_data,
    read_memory,
    shipped_folder,
)

MOST_BYTES_OF_COSTS = 2**24
"""Of a table of features."""


class FeaturesSection(LimitsSection):
    """What is known of the features beside their values.

    Attributes
    ----------
    include : sequence of int or str
        Columns or names of features that belong to every selection.
    exclude : sequence of int or str
        Columns, counted from 0, or names of features that leave the data before anything looks at them.
    max_features : int, optional
        Most features of a selection.
    max_cost : float, optional
        Most that the features of a selection cost together.
    table : str, optional
        A CSV file with the columns name and cost and, where features are computed together, group and group_cost; it is
        looked for where data are. The objective "cost" adds these up.
    other : float, optional
        The cost of each feature that the table does not name; by default every feature needs a row.
    """

    table: Annotated[str, Field(min_length=1)] | None = None
    other: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.other is not None and self.table is None:
            raise ValueError("other is the cost of features that a table does not name; give table, too")
        return self

    def applied(self, fold: Fold, folders: Folders) -> tuple[Fold, Parameters]:
        """Return the parts of a fold with these costs, without the features that are left out, and the limits.

        The limits call features by name, as columns have other numbers where some are left out.

        Raises
        ------
        FileNotFoundError
            If the table is not there.
        ValueError
            For a table that is malformed or has other features, and for features that are not there, that are both
            in and out, or that are all.
        """
        train, validation, test = fold
        for path in self.files(folders):
            text = read_text(path, MOST_BYTES_OF_COSTS)
            costs = read_cost_table(text, str(path), train.feature_names, self.other)
            train, validation, test = train.with_costs(costs), validation.with_costs(costs), test.with_costs(costs)
        try:
            allowed, limits = allowed_features(train, self)
        except ValueError as error:
            raise ValueError(f"[features] {error}") from None
        parts = train.with_features(allowed), validation.with_features(allowed), test.with_features(allowed)
        return parts, limits

    def files(self, folders: Folders) -> list[Path]:
        """Return the table, if there is one."""
        if self.table is None:
            return []
        return [find_data(self.table, [*folders, shipped_folder()], "put it beside the problem file")]


class MetricSection(Section):
    """The metric of all objectives, see `make_metric`, with its conventions, see `NDCG`."""

    name: str = "NDCG@10"
    gain: str | None = None
    convention: str | None = None
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
    parameters: PlainParameters = Field(default_factory=dict)
    tune: bool = True


class ComparisonSection(Section):
    """Measurements beside those of the solver.

    Attributes
    ----------
    trees : int
        Largest number of trees of the baseline LambdaMART, of which validation MAP chooses; 0 leaves it out.
    """

    trees: Annotated[int, Field(ge=0)] = 100


class SolverSection(BackendSection):
    """What a file gives to whichever solver is run on the problem; it is read into the `Solver` of the run.

    Attributes
    ----------
    name : str
        The solver of ``moerank run``, with its parameters in brackets, as "mofsrank-staircase[ensemble=false]".
    parameters : dict
        Arguments of the solver; what is given here is not chosen by validation data.
    tune : bool
        Whether validation MAP chooses among the solver's published grid.
    """

    name: Annotated[str, AfterValidator(lambda name: Solver.parse(name).label)] = "mofsrank"


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
    source : str
    """

    method: str
    solver: str | None = None
    features: float | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    source: str

    @property
    def label(self) -> str:
        """The name in tables and figures."""
        return f"{self.method}, published"

    def value(self, metric: str) -> float | None:
        """Return the published value of a metric, None without one; published values follow LETOR's conventions."""
        return self.scores.get(metric.removesuffix(" (letor)"))


class Problem(Section):
    """A ranking problem: data, features, metric, backend, the budget of each stage, and published results."""

    name: str = Field(pattern=r"^[\w.-]+$", max_length=200)
    data: Data
    features: FeaturesSection = FeaturesSection()
    metric: MetricSection = MetricSection()
    backend: BackendSection = BackendSection()
    comparison: ComparisonSection = ComparisonSection()
    solver: SolverSection = SolverSection()
    search: SearchSettings = SearchSettings()
    instance_selection: InstanceSelectionSettings = InstanceSelectionSettings()
    feature_selection: FeatureSelectionSettings = FeatureSelectionSettings()
    ensemble: EnsembleSettings = EnsembleSettings()
    published: tuple[Published, ...] = ()

    _folder: Path | None = PrivateAttr(default=None)

    @field_validator("search", *STAGES)
    @classmethod
    def _is_plain(cls, settings: SearchSettings | StageSettings) -> SearchSettings | StageSettings:
        settings.check_plain()
        return settings

    def located_in(self, folder: Path) -> Self:
        """Return the same problem, whose data are looked for in the folder of its file first."""
        problem = self.model_copy()
        problem._folder = folder
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
        return self.data.n_folds(self.folders(data))

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
            For malformed data, and arguments of the data that are out of range.
        """
        return self.load_limited_fold(fold, data)[0]

    def load_limited_fold(self, fold: int, data: str | Path | None = None) -> tuple[Fold, Parameters]:
        """Return the parts of a fold as `load_fold` does, and the limits on features, by the names of arguments."""
        folders = self.folders(data)
        check_at_least(1, self.data.n_folds(folders), fold=fold)
        train, vali, test = self.data.read(fold, folders)
        (train, vali, test), limits = self.features.applied((train, vali, test), folders)
        if self.data.scaled is not None:
            scaled = self.data.scaled
            return (train.declared(scaled), vali.declared(scaled), test.declared(scaled)), limits
        scaling = fit_scaling(train, self.data.normalize)
        return (scaling.apply(train), scaling.apply(vali), scaling.apply(test)), limits

    def spec(self, solver: Solver) -> Solver:
        """Return a solver with what the problem's file gives to it.

        Raises
        ------
        ValueError
            If the solver cannot keep the limits on features that the file sets.
        """
        if solver.given is None:  # an object stays as it is
            solver = solver.model_copy(update={"defaults": self.solver.parameters, "tune": self.solver.tune})
        taken = solver.takes()
        foreign = [] if "limits" in taken else [name for name in self.features.given if name not in (*taken, "exclude")]
        if foreign:
            raise ValueError(
                f"{solver.label} cannot keep [features] {', '.join(foreign)}: it selects by rules of its own; take "
                "mofsrank or another search of its family, or leave the limits out"
            )
        return solver

    def offers(self) -> Parameters:
        """Return the arguments that the problem has for a solver, by the names of those who take them."""
        return {**self.search.model_dump(), **{stage: getattr(self, stage).model_dump() for stage in STAGES}}

    def published_value(self, solver: str, metric: str) -> float | None:
        """Return the first published value of a solver; None without one."""
        values = (entry.value(metric) for entry in self.published if entry.solver == solver)
        return next((value for value in values if value is not None), None)

    def configuration(self) -> Json:
        """Return all settings of the problem that can decide results, defaults included, as plain JSON values."""
        settings = self.model_dump(mode="json", exclude={"name", "data", "solver", "published"})
        return {"data": self.data.settings(), **settings}

    def files(self, fold: int, data: str | Path | None = None) -> list[Path]:
        """Return the files of a fold and of the features; arguments as in `load_fold`."""
        folders = self.folders(data)
        return [*self.data.files(fold, folders), *self.features.files(folders)]

    def folders(self, data: str | Path | None) -> Folders:
        """Return where data are looked for: beside the file, and then only in `data` if it is given."""
        named = os.environ.get("MOERANK_DATA")
        roots = [Path(root) for root in (named, "data") if root] if data is None else [Path(data)]
        return [*filter(None, [self._folder]), *roots]


MOST_BYTES_OF_PROBLEM_FILES = 2**20


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
    document = _changed(_document(path), overrides)
    with _sentences(str(path), overrides):
        read = Problem.model_validate(document)
    return read if str(problem) in shipped_problems() else read.located_in(path.parent)


def make_problem(name: str, data: InMemory, settings: Mapping[str, Any] | None = None) -> Problem:
    """Return a problem whose data are in memory.

    Parameters
    ----------
    name : str
    data : RankingData, (RankingData, RankingData, RankingData) or a sequence of such
        Training, validation and test part of each fold; or one table, of whose queries a fifth each is drawn for
        validation and test, unless the setting ``data.split`` says something else.
    settings : mapping of str to object, optional
        What a problem file would say, as ``{"metric.name": "NDCG@5", "ensemble.generations": 20}``.

    Raises
    ------
    ValueError
        For data or settings that cannot be.

    Examples
    --------
    >>> from moerank.data import load_planted_fold
    >>> problem = make_problem("mine", load_planted_fold(1), {"metric.name": "MAP"})
    >>> problem.metric.name, problem.n_folds()
    ('MAP', 1)
    """
    settings = settings or {}
    document = _changed({"name": name}, settings)
    with _sentences(f"problem {name!r}", settings):
        return Problem.model_validate({**document, "data": read_memory(data, document.get("data", {}))})


def with_settings(problem: Problem, settings: Mapping[str, object]) -> Problem:
    """Return a problem with other settings, as `load_problem` takes them.

    Raises
    ------
    ValueError
        For an unknown key or a wrong value, and for settings of the data of a problem in memory, which is made with
        them.

    Examples
    --------
    >>> with_settings(load_problem("digits"), {"metric.name": "MAP"}).metric.name
    'MAP'
    """
    if not settings:
        return problem
    document = _changed(problem.model_dump(exclude_unset=True), settings)
    if isinstance(problem.data, MemoryData):
        if of_data := [key for key in settings if key.startswith("data.")]:
            raise ValueError(
                f"{of_data[0]}: the data of {problem.name} are in memory; make_problem takes their settings"
            )
        document["data"] = problem.data
    with _sentences(f"problem {problem.name!r}", settings):
        changed = Problem.model_validate(document)
    return changed.located_in(problem._folder) if problem._folder else changed


def _document(path: Path) -> Json:
    """Return what stands in a TOML file."""
    if reader_of(path) is not None:
        raise ValueError(f"{path} is a table, not a problem file; moerank init {path} writes one")
    return read_toml(path, MOST_BYTES_OF_PROBLEM_FILES)


def _problem_path(problem: str | Path) -> Path:
    shipped = shipped_problems()
    if str(problem) in shipped:
        return shipped[str(problem)]
    if Path(problem).exists() and not Path(problem).is_dir():
        return Path(problem)
    raise FileNotFoundError(unknown("problem", str(problem), shipped) + " (or give the path of a problem file)")


@contextmanager
def _sentences(file: str, settings: Mapping[str, object]) -> Iterator[None]:
    """Turn what pydantic says of a problem into a ValueError of one sentence."""
    try:
        yield
    except ValidationError as error:
        raise ValueError(_sentence(error, file, settings)) from None


def _changed(document: Json, settings: Mapping[str, object]) -> Json:
    """Return a document, into which settings are put under dotted keys; tables are made on the way."""
    for key, value in settings.items():
        *tables, last = key.split(".")
        section = document
        for table in tables:
            section = section.setdefault(table, {})
            if not isinstance(section, dict):
                raise ValueError(f"--set {key}: {table} is a value, not a table")
        section[last] = value
    return document


def _sentence(error: ValidationError, file: str, overrides: Mapping[str, object]) -> str:
    """Say where the most telling error is, and what would be right."""
    # A misspelt key comes first: it may be the reason why another is missing.
    problem = min(error.errors(), key=lambda entry: entry["type"] != "extra_forbidden")
    # Pydantic names the source in the location: data.digits.n_queries is data.n_queries here.
    location = [str(part) for i, part in enumerate(problem["loc"]) if not (i == 1 and problem["loc"][0] == "data")]
    key = ".".join(location)
    override = next((name for name in overrides if name == key or name.startswith(key + ".")), None)
    origin = f"--set {override}" if override else file
    table = f"[{'.'.join(location[:-1])}] " if location[:-1] else ""
    if problem["type"] == "extra_forbidden":
        schema = Problem.model_json_schema()
        keys = {key for model in (schema, *schema["$defs"].values()) for key in model.get("properties", ())}
        nearest = get_close_matches(location[-1], keys, n=1)
        return f"{origin}: unknown key {table}{location[-1]}{f'; did you mean {nearest[0]}?' if nearest else ''}"
    if problem["type"] == "value_error":
        if location in (["data"], ["data", "split"]):  # of several keys together
            table = f"[{'.'.join(location)}] "
        within = "parameters: " * (location[-1:] == ["parameters"])
        return f"{origin}: {table}{within}{problem['ctx']['error']}"
    return f"{origin}: {table}{location[-1]}: {problem['msg'].removeprefix('Input ')}"
