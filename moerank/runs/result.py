"""The result of a run as a file stores it, with enough values for every table and figure."""

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError

from moerank.arrays import Bounds
from moerank.checks import first_mistake
from moerank.data import Scaling
from moerank.data.folds import MAX_FOLDS
from moerank.data.preparation import QueryRule
from moerank.files import Json, escape_formula, read_text, replace_file
from moerank.mofsrank.objectives import FRONT
from moerank.rankers.model import Forest, Model
from moerank.rankers.shapes import Shape
from moerank.verdict import Verdict

MEMO = "search.memo"
RESULT = "result.json"
FRONT_TABLE = "front.csv"

# The files of a finished run, in the order in which they are written.
FILES = (RESULT, FRONT_TABLE, "model.json")

# Largest size of a result, or of any other file of a study.
MAX_BYTES = 256 * 2**20

# Number of the format of results and studies; it increases whenever older files can no longer be read.
FORMAT = 8

PARTS = ("train", "validation", "test")

Natural = Annotated[int, Field(ge=0)]
Names = Annotated[list[str], Field(min_length=1)]
Scores = dict[str, dict[str, float]]


class Stored(BaseModel):
    """The content of a file of a result or study: without unknown keys, without NaN, and with numbers as numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def to_json(self) -> str:
        """Return the text for its file."""
        try:
            return self.model_dump_json(indent=1) + "\n"
        except PydanticSerializationError as error:
            if "KeyboardInterrupt" in str(error):  # of Ctrl-C; pydantic tells no more of it
                raise KeyboardInterrupt from None
            raise

    def write(self, path: Path) -> None:
        """Write the file atomically; an OSError names it, the reason and the remedy."""
        replace_file(path, self.to_json().encode())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the text of a file; a ValueError names the first mistake, such as another format."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise ValueError(
                f"not written by this version of moerank ({first_mistake(error)})"
            ) from None

    @classmethod
    def read_file(cls, path: Path, advice: str = "") -> Self:
        """Parse a file; a ValueError names it and the first mistake, with the advice."""
        try:
            return cls.from_json(read_text(path, MAX_BYTES))
        except ValueError as error:
            raise ValueError(f"{path}: {str(error).removeprefix(f'{path}: ')}{advice}") from None


Format = Annotated[int, Field(ge=FORMAT, le=FORMAT)]


class Member(Stored):
    """A ranker with its metrics on each part of the fold: a member of the front, or a baseline.

    Attributes
    ----------
    name : str
    features : tuple of int
        Its columns, counted from 0, in ascending order.
    weights : tuple of float or None
        The weights of the features; None if the ranker does not score by wᵀx.
    trees : Forest or None
        The trees of the chosen member, if it scores by trees.
    parameters : dict
        Arguments of the estimator.
    ranker, source : str
        The kind of ranker, and what proposed the features, if rankers of several kinds were compared; else empty.
    objectives : dict
        The value of each objective on the training part, also for baselines.
    scores : dict
        The mean over queries by part ("train", "validation", "test"), then by metric.
    per_query : dict
        The same with the values of all queries, multiplied by query weights if there are any, so that their plain mean
        is the score. Empty for members that were not chosen.
    further : dict
        Means as in `scores` for all other metrics. Empty for members that were not chosen.
    instances : int or None
        How many units of instance selection its ranker, or the rankers of its sum, were trained on; None for all.
    difference_interval : (float, float) or None
        Ends of the 95 % interval of the difference from the baseline "all features" in the first metric on the test
        part, as in a verdict. None for baselines, without such a baseline, and if all queries differ by the same.
    """

    name: str
    features: tuple[Natural, ...]
    weights: tuple[float, ...] | None = None
    trees: Forest | None = None
    parameters: dict[str, str | bool | int | float] = {}
    ranker: str = ""
    source: str = ""
    objectives: dict[str, float]
    scores: Scores
    per_query: dict[str, dict[str, list[float]]] = {}
    further: Scores = {}
    instances: Natural | None = None
    difference_interval: Bounds | None = None

    @property
    def n_features(self) -> int:
        """The number of its features."""
        return len(self.features)

    def score(self, part: str, metric: str) -> float:
        """Return the mean of a metric over the queries of a part; only chosen members have the `further` metrics."""
        return (
            self.scores[part][metric] if metric in self.scores[part] else self.further[part][metric]
        )


class Certificate(Stored):
    """Proved bounds for the front of a run, for RankRLS on all preference pairs of the training part.

    The loss of a subset is the least loss of RankRLS with its features, see `moerank.selectors.best_subset.BestSubset`.
    Without features it is 1, so that 1 − loss is a reduction.

    Attributes
    ----------
    alpha : float
        The regularisation of RankRLS.
    sizes : list of int
        Numbers of features of the best subsets, or of groups.
    best, bounds : list of float
        The losses of the best subsets, and lower bounds for all subsets of these sizes. The two are equal if the best
        subset is proved.
    losses : list of float
        The loss of the features of each member of the front.
    least : list of float
        For each member, a lower bound for all subsets of its size.
    groups : list of int or None
        If bits stand for groups, the number of groups of each member, which is its size here: subsets of as many
        features may be better. A feature without a group counts as one.
    """

    alpha: Annotated[float, Field(gt=0)]
    sizes: list[Natural]
    best: list[float]
    bounds: list[float]
    losses: list[float]
    least: list[float]
    groups: list[Natural] | None = None

    @property
    def given_up(self) -> list[float]:
        """How far the loss of each member is above `least` at most, as a share of the largest loss reduction."""
        reduction = 1.0 - min(self.best)
        pairs = zip(self.losses, self.least, strict=True)
        return [(loss - bound) / reduction for loss, bound in pairs]

    @property
    def proved(self) -> list[int]:
        """The sizes whose best subset is proved."""
        rows = zip(self.sizes, self.best, self.bounds, strict=True)
        return [size for size, loss, bound in rows if bound == loss]

    def sentence(self, result: "Result") -> str:
        """Return what is proved, in words."""
        n_features = result.best.n_features
        rivals = str(n_features)
        if self.groups:
            n_groups = self.groups[result.chosen]
            rivals = "1 group" if n_groups == 1 else f"{n_groups} groups"
        sizes = "all sizes"
        if len(self.proved) < len(self.sizes):
            sizes = f"{len(self.proved)} of {len(self.sizes)} sizes"
        return (
            f"The {n_features} chosen features give up at most {self.given_up[result.chosen]:.1%} "
            "of the largest loss reduction that a selection may attain, compared with the best "
            f"{rivals} for RankRLS on all training pairs (best subsets are proved for {sizes})"
        )


class Convergence(Stored):
    """The course of a stage, generation by generation.

    `evaluations` counts the individuals that the search asked for, `trained` the distinct ones among them: the others
    train nothing. `hypervolume` is the share of the `box` of the result that the front dominates.
    """

    generation: list[Natural]
    evaluations: list[Natural]
    trained: list[Natural]
    hypervolume: list[float]

    @property
    def last_half(self) -> float:
        """The share of the final hypervolume that the second half of the evaluations added."""
        n_half = bisect_right(self.evaluations, self.evaluations[-1] / 2)
        total = self.hypervolume[-1]
        return 1.0 - self.hypervolume[n_half - 1] / total if n_half and total else 1.0


class Times(Stored):
    """Processor seconds of tuning and training, and clock seconds of each generation of each stage."""

    tuning: float
    solver: float
    stages: dict[str, list[float]]


class Explanation(Stored):
    """What explains trees that serve, which have no curves of their own.

    Attributes
    ----------
    worth : dict of str to float
        The loss of the first metric on the validation queries where the values of a feature are permuted.
    curves : (float, float)
        The difference that an additive ranker on the same features makes there, and its paired standard error.
    """

    worth: dict[str, float]
    curves: tuple[float, float]


class Result(Stored):
    """The result of one solver with one seed on one fold of a problem.

    Attributes
    ----------
    format : int
    problem : str
    fold : int
    solver : str
        The label of the solver: its name, with its given parameters in brackets.
    seed : int
        The number of the run among those that differ only in their random draws.
    random_state : int
        The seed of the random draws.
    metrics : list of str
        The metric of the error, then the second metric of the tables.
    objectives : list of str
        The names of the objectives.
    searched_by : str
        The metric by which the solver searched: that of the error, unless the study allows its own.
    box : dict of (float, float)
        The least and the largest value of each objective with all features of the table. Hypervolumes are shares of
        this box; its largest values are the reference point.
    configuration : dict
        All settings that determine the result.
    feature_names : list of str
    scaling : Scaling
        The scaling of the features of all parts.
    missing : float, str or None
        The rule for missing values.
    missing_values : tuple of float
        The raw values that count as missing.
    negative : list of str
        The features with raw values below 0 in the training part.
    instances : {"pair", "document", "query"} or None
        The unit of instance selection; None without it.
    n_instances : int or None
        How many units the training part has; None without instance selection.
    leaks : list of str
        Sentences about features that rank too well alone to be known before the ranking.
    verdict : Verdict or None
        The chosen member compared with the same ranker on all features, on the test queries; None if the solver selects
        no features.
    queries : dict of list
        The query ids of each part, in the order of the per-query values. Test queries of several folds with the same id
        are the same query, and tests count it once.
    query_weights : dict of list
        The weights of the queries of each part, over their mean; empty if all are equal.
    differing : list of int
        The numbers of the test queries that can differ by the metric of the error, from 0, in the order of the
        differences of the verdict.
    front : list of Member
        The solver's rankers by size: the non-dominated members of a search, the path of another selection, or the only
        ranker of a solver that selects no features.
    chosen : int
        The index of the chosen member in `front`, from 0.
    shapes : list of Shape
        What each feature of the chosen member adds to its score, if it adds up functions of one or two features.
    explanation : Explanation or None
        What the features of trees are worth that serve, and what curves would lose; None for other rankers.
    baselines : list of Member
        All features, the best single feature, and LambdaMART on all features.
    certificate : Certificate or None
        The bounds for the front that ``moerank certify`` has proved.
    convergence : dict of Convergence
        The course of each stage.
    n_evaluations, n_trained : int
        Individuals that all stages asked for, and the distinct ones among them, whose rankers were trained.
    times : Times
        Two runs of the same configuration differ only in `times` and `versions`. Processor seconds do not grow when
        other programs use the machine.
    versions : dict of str
        The versions of the libraries, and the "machine", which explains the times.
    """

    format: Format = FORMAT
    problem: str
    fold: Annotated[int, Field(ge=1, le=MAX_FOLDS)]
    solver: str
    seed: Natural
    random_state: Natural
    metrics: Names
    objectives: Names
    searched_by: str
    box: dict[str, Bounds]
    configuration: Json
    feature_names: Names
    scaling: Scaling
    missing: float | QueryRule | None
    missing_values: tuple[float, ...]
    negative: list[str]
    instances: Literal["pair", "document", "query"] | None
    n_instances: Natural | None
    leaks: list[str] = []
    verdict: Verdict | None
    queries: dict[str, list[int | float | str]]
    query_weights: dict[str, list[float]] = {}
    differing: list[Natural]
    front: Annotated[list[Member], Field(min_length=1)]
    chosen: Natural
    shapes: list[Shape]
    explanation: Explanation | None = None
    baselines: list[Member]
    certificate: Certificate | None = None
    convergence: dict[str, Convergence]
    n_evaluations: Natural
    n_trained: Natural
    times: Times
    versions: dict[str, str]

    @property
    def best(self) -> Member:
        """The chosen member of the front."""
        return self.front[self.chosen]

    @property
    def metric(self) -> str:
        """The metric of the error."""
        return self.metrics[0]

    @property
    def sizes(self) -> list[int]:
        """The number of features of each member of the front."""
        return [member.n_features for member in self.front]

    @property
    def n_allowed(self) -> int:
        """The number of features that rankers can use: those of the verdict, without it those of the table."""
        return len(self.feature_names) if self.verdict is None else self.verdict.n_allowed

    @property
    def goal(self) -> str:
        """What the solver minimised: its objectives, and the metric of the error."""
        return f"{', '.join(self.objectives)} by {self.searched_by}"

    @property
    def further_objectives(self) -> list[str]:
        """The objectives beyond the number of features and the error, which every table has."""
        return [name for name in self.objectives if name not in FRONT]

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of the image if the features are all of its pixels; else None."""
        grid = self.configuration["data"].get("grid")
        if grid is None or grid[0] * grid[1] != len(self.feature_names):
            return None
        return grid[0], grid[1]

    def names(self, features: Sequence[int]) -> list[str]:
        """Return the names of these columns."""
        return [self.feature_names[feature] for feature in features]

    def model(self, member: Member) -> Model:
        """Return a member with the names and the scaling of its features."""
        feature_mask = np.isin(np.arange(len(self.feature_names)), member.features)
        return Model(
            names=tuple(self.names(member.features)),
            columns=member.features,
            weights=member.weights,
            trees=member.trees,
            scaling=self.scaling.of_features(feature_mask),
            missing=self.missing,
            missing_values=self.missing_values,
            negative=tuple(name for name in self.names(member.features) if name in self.negative),
            parameters=member.parameters,
        )


def unfinished(folder: Path) -> list[Path]:
    """Return the memos of an interrupted run."""
    return sorted(folder.glob(MEMO + "*"))


def read_result(folder: Path) -> Result | None:
    """Return the finished result in a folder, or None if there is none.

    Raises
    ------
    ValueError
        If this version cannot read the result.json.
    OSError
        If result.json is not a file.
    """
    try:
        return Result.read_file(
            folder / RESULT, "; choose another folder with --out, or remove the file"
        )
    except (FileNotFoundError, NotADirectoryError):
        return None


def find_result(path: Path) -> Result:
    """Return the result in the folder of a run, or in the file of a cell of a study.

    Raises
    ------
    ValueError
        If this version cannot read the file as a result.
    OSError
        If there is no result; the message says where there is one, if the path has several.
    """
    if not path.is_dir():
        return Result.read_file(path)
    result = read_result(path)
    if result is not None:
        return result
    folds = [file.parent for file in path.glob(f"fold*/{RESULT}")]
    runs = sorted([*folds, *path.glob("cells/*.json")])
    if runs:
        raise FileNotFoundError(f"{path} holds several runs; name one of them, such as {runs[0]}")
    raise FileNotFoundError(f"{path} holds no finished run; moerank run makes one")


def write_result(result: Result, folder: Path) -> None:
    """Write result.json, front.csv and model.json.

    result.json comes first: if it exists, the run is finished, and the others can be made from it.
    """
    model = result.model(result.best).to_json(
        problem=result.problem, fold=result.fold, solver=result.solver
    )
    result.write(folder / RESULT)
    replace_file(folder / FRONT_TABLE, _front_table(result).encode())
    replace_file(folder / "model.json", model.encode())


def columns_of(scores: Scores) -> dict[str, float]:
    """Return means of metrics by the names of their columns."""
    return {
        f"{part} {metric}": value
        for part, means in scores.items()
        for metric, value in means.items()
    }


def _front_table(result: Result) -> str:
    """Return one row per member: size, further objectives, whether it was chosen, metrics on each part, features.

    Names that look like formulas to a spreadsheet begin with '.
    """
    rows = []
    for index, member in enumerate(result.front):
        row: Json = {"member": index + 1, "n_features": member.n_features}
        for name in result.further_objectives:
            row[escape_formula(name)] = member.objectives[name]
        if result.instances:
            row["instances"] = member.instances
        row["chosen"] = int(index == result.chosen)
        if member.ranker:
            row |= {"ranker": member.ranker, "source": member.source}
        row |= columns_of(member.scores)
        row["features"] = "; ".join(map(escape_formula, result.names(member.features)))
        rows.append(row)
    return str(pd.DataFrame(rows, dtype=object).to_csv(index=False))
