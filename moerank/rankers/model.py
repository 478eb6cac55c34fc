"""A trained ranker in the form that is stored, printed and exported: named features with weights or trees."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Strict, ValidationError, model_validator

from moerank.arrays import Array, Integers, Matrix
from moerank.checks import first_mistake
from moerank.data import PER_QUERY, UNSCALED, FittedScaling, RankingData, Scaling
from moerank.data.inputs import as_table, column_names, without_values
from moerank.data.preparation import QueryRule
from moerank.files import read_json
from moerank.kernels.compiled import read_only
from moerank.kernels.scores import linear_scores, tree_scores
from moerank.training.bins import in_single, middles

Integer: TypeAlias = Annotated[int, Strict()]
# Strict, because pydantic would otherwise read "1" and true in JSON as numbers.
Number: TypeAlias = Annotated[float, Strict()]
Tree: TypeAlias = "float | tuple[int, float, Tree, Tree]"


@dataclass(frozen=True)
class Forest:
    """Regression trees, all in the same flat lists; the score of a document is the sum of the leaves it falls into.

    A split or leaf is named by one number: split s by s, leaf l by −1 − l.

    Attributes
    ----------
    columns : tuple of int, one per split
        The column of the table, from 0, whose values the split compares.
    thresholds : tuple of float, one per split
        A value that is at most the threshold goes left, a larger one right.
    left, right : tuple of int, one per split
        The splits or leaves below each split; a split comes before those below it.
    leaves : tuple of float
        What each leaf adds to the score.
    roots : tuple of int, one per tree
        The split or leaf that each tree begins with, in the order in which the leaves are added up.

    Raises
    ------
    ValueError
        If the lists do not fit together, or a split or leaf is not reached exactly once.

    Examples
    --------
    >>> children = {"left": (-1,), "right": (-2,), "leaves": (0.0, 2.0)}
    >>> forest = Forest(columns=(1,), thresholds=(0.5,), roots=(0,), **children)
    >>> forest.scores(np.array([[9.0, 0.5], [9.0, 0.6]])).tolist()
    [0.0, 2.0]
    """

    # For reading from JSON.
    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    columns: tuple[Integer, ...]
    thresholds: tuple[Number, ...]
    left: tuple[Integer, ...]
    right: tuple[Integer, ...]
    leaves: tuple[Number, ...]
    roots: tuple[Integer, ...]

    def __post_init__(self) -> None:
        n_splits, n_leaves = len(self.columns), len(self.leaves)
        check_entries(
            n_splits, "split", thresholds=self.thresholds, left=self.left, right=self.right
        )
        if sorted(self.left + self.right + self.roots) != list(range(-n_leaves, n_splits)):
            raise ValueError(
                f"left, right and roots must lead to each of {n_splits} splits and {n_leaves} "
                "leaves once"
            )
        for split, children in enumerate(zip(self.left, self.right, strict=True)):
            if any(0 <= child <= split for child in children):
                raise ValueError(f"split {split} must come before those below it")

    @classmethod
    def of(cls, trees: Iterable[Tree]) -> Self:
        """Return the forest of nested trees: a leaf is its value, a split (column, threshold, left, right)."""
        splits: list[list[Any]] = []
        leaves = []

        def add(tree: Tree) -> int:
            """Add a tree, a split before those below it, and return its index."""
            if isinstance(tree, float):
                leaves.append(tree)
                return -len(leaves)
            column, threshold, *children = tree
            index, split = len(splits), [column, threshold]
            splits.append(split)
            split += map(add, children)
            return index

        roots = tuple(map(add, trees))
        columns, thresholds, left, right = zip(*splits, strict=True) if splits else [()] * 4
        return cls(columns, thresholds, left, right, tuple(leaves), roots)

    def scores(self, X: Matrix, roots: Sequence[int] | Integers | None = None) -> Matrix:
        """Return the scores (n_documents,) of the rows of a finite table; O(n_documents · n_trees · depth).

        With `roots`, only these trees count. The same documents score the same, whatever the others are.
        """
        columns = self._arrays[0]
        if columns.max(initial=-1) >= X.shape[1]:
            raise ValueError(
                f"the trees split by column {columns.max()}, but the table has {X.shape[1]} columns"
            )
        lists = self._arrays if roots is None else [*self._arrays[:-1], np.array(roots, np.int64)]
        return tree_scores(read_only(np.ascontiguousarray(X, np.float64)), *lists)

    def staged_scores(self, X: Matrix) -> Matrix:
        """Return the scores (n_documents, n_trees) of the rows of a finite table by the first 1, 2, … trees."""
        scores = np.column_stack([self.scores(X, [root]) for root in self.roots])
        return np.cumsum(scores, axis=1)

    @cached_property
    def _arrays(self) -> list[Array]:
        """The lists as arrays, in the order of the fields."""
        reals = ("thresholds", "leaves")
        return [
            np.array(values, float if name in reals else np.int64)
            for name, values in asdict(self).items()
        ]

    def with_middle_thresholds(self, data: RankingData) -> Self:
        """Return the same trees with each threshold in the middle between the values of the data around it.

        No document of the data changes sides, and neither does one whose values are rounded to single precision.
        O(n_features · n_documents log n_documents).
        """
        ordered = np.sort(data.X, axis=0)
        rounded = in_single(ordered, data.scaling)
        splits = zip(self.columns, self.thresholds, strict=True)
        above = [np.searchsorted(rounded[:, column], cut, side="right") for column, cut in splits]
        rows = np.array(above, np.int64) - [[1], [0]]
        columns = np.array(self.columns, np.int64)
        thresholds = middles(ordered[rows, columns], rounded[rows, columns])
        return replace(self, thresholds=tuple(thresholds.tolist()))

    def over(self, columns: NDArray[np.int64]) -> Self:
        """Return the same trees for a wider table, in which column c of this one is ``columns[c]``."""
        return replace(self, columns=tuple(columns[list(self.columns)].tolist()))


def check_entries(length: int, thing: str, **lists: Sequence[object]) -> None:
    """Raise a ValueError for a list without one entry per `thing`, `length` in all."""
    for name, values in lists.items():
        if len(values) != length:
            raise ValueError(
                f"{name} must have one entry per {thing}, {length} in all, not {len(values)}"
            )


def finite_scores(scores: Matrix, ranker: str) -> Matrix:
    """Return the scores (n_documents,) of a ranker; one that is not finite is a ValueError."""
    if not (finite := np.isfinite(scores)).all():
        row = int(np.argmin(finite))
        raise ValueError(
            f"{ranker} scores row {row} by {scores[row]}, because its weights or the features are "
            "too large; scale the features, and train again with less extreme parameters"
        )
    return scores


# Number of rows on which `predict` is compared with other scores, and their largest difference, relative to the sums.
COMPARED_ROWS, SAME_SCORES = 300, 1e-5


def some_rows(X: Matrix) -> Matrix:
    """Return at most `COMPARED_ROWS` rows of a table, at equal distances."""
    return X[:: 1 + (len(X) - 1) // COMPARED_ROWS]


def is_own(ranker: object) -> bool:
    """Return whether the class of an object is one of this package, and not derived from one by somebody else."""
    return type(ranker).__module__.partition(".")[0] == "moerank"


def linear_weights(ranker: Any, X: Matrix) -> NDArray[np.float64] | None:
    """Return the ``coef_`` of a ranker trained on X if it has a number for each column, and the ranker scores by it.

    A class of somebody else does not if its `predict` differs from X @ coef_ by more than a constant on some rows. A
    classifier, which predicts classes, scores by its ``decision_function``.
    """
    coef = np.ravel(getattr(ranker, "coef_", ()))
    if len(coef) != X.shape[1]:
        return None
    if is_own(ranker):
        return coef
    rows = np.asarray(some_rows(X), float)
    score = getattr(ranker, "decision_function", ranker.predict)
    scores = finite_scores(np.asarray(score(rows), float).ravel(), type(ranker).__name__)
    largest_sum = np.max(np.abs(rows) @ np.abs(coef))
    return coef if np.ptp(scores - rows @ coef) <= SAME_SCORES * largest_sum else None


# Keys of model.json that say where a model comes from, and are not part of it.
PROVENANCE = ("problem", "fold", "solver")

LINEAR_SENTENCE = "the sum of weight times value of the feature; the largest ranks first"
TREES_SENTENCE = (
    "the sum of one leaf per tree: from its root go left if the value in the column of the split "
    "is at most its threshold, else right, until a number n below 0, which is leaf -1 - n; "
    "the largest ranks first"
)
NOT_STORED_SENTENCE = (
    "not a sum of weights: train this solver with these parameters on these features"
)


class Model(BaseModel):
    """A trained ranker, without its estimator.

    Attributes
    ----------
    names, columns : tuple of str, tuple of int
        The features it needs, in ascending order of their columns in the training table, which count from 0.
    weights : tuple of float, optional
        One per feature: the score is the sum of weight times value.
    trees : Forest, optional
        The score is the sum of leaves. Without weights and trees the ranker cannot be stored: `parameters` say how to
        train it again.
    scaling : Scaling, default UNSCALED
        How its features were scaled in training; a fitted scaling has the values of these features only.
    missing : float, "query-min", "query-mean", "query-worst" or None
        The rule for missing values that the training data followed; None if they had none.
    missing_values : tuple of float
        The raw values that count as missing.
    negative : tuple of str
        Its features with raw values below 0 in training.
    parameters : mapping
        Arguments of the estimator that trained it: numbers, booleans and strings.

    Raises
    ------
    ValueError
        If these do not fit together; the message names the mistake.

    Examples
    --------
    >>> from moerank.rankers.rank_rls import RankRLS
    >>> ranker = RankRLS(alpha=0.5).fit([[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]], y=[0, 1, 2], qid=0)
    >>> model = Model.of(ranker, ["BM25", "PageRank"])
    >>> model.names, model.columns, model.parameters["alpha"]
    (('BM25', 'PageRank'), (0, 1), 0.5)
    >>> stored = model.to_json()
    >>> print(Model.from_json(stored).names)
    ('BM25', 'PageRank')
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )

    names: tuple[str, ...]
    columns: tuple[int, ...]
    weights: tuple[float, ...] | None = None
    trees: Forest | None = None
    scaling: Scaling = UNSCALED
    missing: float | QueryRule | None = None
    missing_values: tuple[float, ...] = ()
    negative: tuple[str, ...] = ()
    parameters: dict[str, str | bool | int | float] = {}

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_entries(len(self.columns), "column", names=self.names)
        if len(set(self.names)) < len(self.names):
            raise ValueError("names must be distinct")
        if any(before >= column for before, column in pairwise((-1, *self.columns))):
            raise ValueError("columns must count from 0 and ascend")
        if self.weights is not None:
            check_entries(len(self.columns), "column", weights=self.weights)
        if self.trees is not None and (strange := set(self.trees.columns) - set(self.columns)):
            raise ValueError(
                f"trees split by column {min(strange)}, which is not one of the features"
            )
        if isinstance(self.scaling, FittedScaling):
            check_entries(
                len(self.columns), "column", offset=self.scaling.offset, scale=self.scaling.scale
            )
        return self

    @property
    def score(self) -> str:
        """A sentence on how the score is computed."""
        if self.weights is not None:
            return LINEAR_SENTENCE
        return NOT_STORED_SENTENCE if self.trees is None else TREES_SENTENCE

    @classmethod
    def of(cls, ranker: Any, feature_names: Sequence[str], scaling: Scaling | None = None) -> Self:
        """Return the model of a fitted estimator.

        Parameters
        ----------
        ranker : estimator
            It has ``support_``. A ranker that can be stored has its weights in ``coef_`` (n_features,), or in
            ``forest_`` its `Forest` over the columns of the training table.
        feature_names : sequence of str
            The names of all columns of the training table.
        scaling : Scaling, optional
            How that table was scaled; by default as the estimator knows it.
        """
        if len(feature_names) != len(ranker.support_):
            raise ValueError(
                f"feature_names must have {len(ranker.support_)} entries, not {len(feature_names)}"
            )
        mask = ranker.support_
        negative = np.flatnonzero(mask & getattr(ranker, "negative_", False)).tolist()
        columns = np.flatnonzero(mask).tolist()
        coef = getattr(ranker, "coef_", None) if getattr(ranker, "_linear", True) else None
        if scaling is None:
            scaling = getattr(ranker, "scaling_", UNSCALED)
        return cls(
            names=tuple(feature_names[column] for column in columns),
            columns=tuple(columns),
            weights=None if coef is None else tuple(coef[columns].tolist()),
            trees=getattr(ranker, "forest_", None) if coef is None else None,
            scaling=scaling.of_features(mask),
            missing=getattr(ranker, "missing_", None),
            missing_values=getattr(ranker, "missing_values_", ()),
            negative=tuple(feature_names[column] for column in negative),
            parameters={
                name: value
                for name, value in ranker.get_params().items()
                if isinstance(value, str | int | float)
            },
        )

    def scores(self, X: ArrayLike) -> Matrix:
        """Return the scores (n_documents,) of the rows of X; higher ranks higher.

        Parameters
        ----------
        X : array-like, shape (n_documents, n_columns)
            Features in their columns of the training table; the model reads only its own. A fitted scaling is applied
            to them; if the training data were scaled per query, X must be, too.

        Raises
        ------
        ValueError
            If the model has neither weights nor trees, X lacks a feature or a value, or a score is not finite.
        """
        if self.weights is None and self.trees is None:
            raise ValueError(
                "this model has neither weights nor trees, only how to train one again; "
                "train a linear ranker or LambdaMART on its features"
            )
        table = self._table(X)
        if self.trees is not None:
            scores = self.trees.scores(np.asarray(table, float))
        else:
            scores = linear_scores(table, self.coef(table.shape[1])[None])[:, 0]
        return finite_scores(scores, "this model")

    def predict(self, X: ArrayLike | RankingData) -> Matrix:
        """Return the scores (n_documents,) of documents, with features matched by name.

        Parameters
        ----------
        X : RankingData, DataFrame or array-like
            Columns in any order, others included; an array without names has the columns of the training table.

        Raises
        ------
        ValueError
            If a feature is not there, or is there more than once; see also `scores`.
        """
        if isinstance(X, RankingData):
            if isinstance(self.scaling, FittedScaling) and isinstance(X.scaling, FittedScaling):
                raise ValueError(
                    f"{X.name} is scaled already, and the model scales its input: give raw values"
                )
            names, table = X.feature_names, X.X
        elif (column_labels := column_names(X)) is not None:
            names, table = column_labels, as_table(X)
        else:
            return self.scores(X)
        for name in self.names:
            if name not in names:
                raise ValueError(
                    f"X has no feature {name!r}, which the model needs; "
                    "name its columns as in training"
                )
            if names.count(name) > 1:
                raise ValueError(
                    f"X has the feature {name!r} more than once; leave the column that training had"
                )
        training_table = np.zeros((len(table), max(self.columns, default=-1) + 1))
        training_table[:, list(self.columns)] = table[:, [names.index(name) for name in self.names]]
        return self.scores(training_table)

    def coef(self, n_features: int) -> NDArray[np.float64]:
        """Return the weights of all features of a table, shape (n_features,), of a model that has weights."""
        coef = np.zeros(n_features)
        coef[np.array(self.columns, np.int64)] = self.weights
        return coef

    def _table(self, X: ArrayLike) -> Matrix:
        """Check X, and return it with the columns of the model completed and scaled, as in training."""
        names = column_names(X)
        table = as_table(X)
        min_columns = max(self.columns, default=-1) + 1
        if table.ndim != 2 or table.shape[1] < min_columns:
            raise ValueError(
                f"X must have the columns of the training data, {min_columns} or more, "
                f"not shape {table.shape}"
            )
        for name, column in zip(self.names, self.columns, strict=True):
            if names is not None and names[column] != name:
                raise ValueError(
                    f"column {column} of X must be {name!r}, as in training, not {names[column]!r}"
                )
        columns = np.array(self.columns, np.int64)
        values = without_values(
            table[:, columns], self.missing_values if self.scaling != PER_QUERY else ()
        )
        if self.missing is not None and not isinstance(self.missing, str):
            values[np.isnan(values)] = self.missing
        if isinstance(self.scaling, FittedScaling):
            values = replace(self.scaling, single=False).table(values)
        if not (finite := np.isfinite(values)).all():
            row, index = np.argwhere(~finite)[0]
            rule = ""
            if isinstance(self.missing, str):
                rule = f" by the rule {self.missing!r} of the training data"
            raise ValueError(
                f"X[{row}, {self.columns[index]}] ({self.names[index]}) is {values[row, index]}; "
                f"replace missing values before ranking{rule}"
            )
        completed = np.array(table, np.result_type(table, values), order="C")
        completed[:, columns] = values
        return completed

    def to_json(self, **provenance: object) -> str:
        """Return the text of a model.json: its origin, if given, how the score is computed, and the model."""
        content = {**provenance, "score": self.score, **self.model_dump(mode="json")}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text of a model.json.

        Raises
        ------
        ValueError
            If it is no model, or its score is computed in a way that this version does not know. The message names the
            first mistake.
        """
        try:
            values = read_json(text)
            if not isinstance(values, dict):
                raise ValueError("it must be an object of keys and values")
            score = values.pop("score", None)
            for name in PROVENANCE:
                values.pop(name, None)
            model = cls.model_validate_json(json.dumps(values))
            if score != model.score:
                raise ValueError(
                    f"score: this version scores such a model by {model.score!r}, not {score!r}"
                )
        except ValueError as error:
            mistake = first_mistake(error) if isinstance(error, ValidationError) else error
            raise ValueError(f"not a model: {mistake}") from None
        return model
