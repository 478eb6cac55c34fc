"""Documents with features and relevance labels, grouped by query, and their preference pairs.

A preference pair (i, j) joins two documents of one query with yᵢ > yⱼ. The pairs of a data set have one fixed
order — by query, then better row, then worse row — and the columns of every ``pair_mask`` follow it.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from itertools import compress
from typing import Any, Literal, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moerank.arrays import Array, Floats, Integers, Mask, Matrix
from moerank.checks import check_choice, check_room
from moerank.data import inputs
from moerank.data.costs import FeatureCosts
from moerank.data.preparation import (
    PER_QUERY,
    UNSCALED,
    FittedScaling,
    MissingRule,
    PerQuery,
    Scaling,
    blocks,
    check_missing_rule,
    fill_missing,
)
from moerank.identity import digest
from moerank.kernels.compiled import read_only
from moerank.kernels.counted_sums import LabelRuns
from moerank.kernels.pair_pass import PairGroups, worse_rows

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])


def remembered(compute: Function) -> Function:
    """Let a data set remember what a function of it and of other arguments returns.

    The data set is the first argument, or that after the object or class of a method; see `RankingData.remember`.
    Arguments that are not hashable, such as arrays, are compared by their digest. None may be another data set, which
    the memory would keep.
    """
    parameters = signature(compute)

    @wraps(compute)
    def look_up(*arguments: Any, **keywords: Any) -> Any:
        bound = parameters.bind(*arguments, **keywords)
        bound.apply_defaults()
        values = bound.arguments.values()
        data = next(value for value in values if isinstance(value, RankingData))
        key_values = [value for value in values if value is not data]
        key = [value if isinstance(value, Hashable) else digest(value) for value in key_values]
        return data.remember((compute, *key), lambda: compute(*arguments, **keywords))

    return cast("Function", look_up)


@dataclass(frozen=True, eq=False)
class PreferencePairs:
    """The preference pairs of a data set, grouped by their better document.

    Attributes
    ----------
    better, worse : ndarray of int32, shape (n_pairs,)
        Document rows of each pair: ``y[better] > y[worse]``, both in the same query.
    first : ndarray of int64, shape (n_winners + 1,)
        Where the pairs of each winner (each document that is better than some other) begin; the last entry is
        ``n_pairs``.
    winner : ndarray of int32, shape (n_winners,)
        The document row of each winner, increasing.
    """

    better: NDArray[np.int32]
    worse: NDArray[np.int32]
    first: Integers
    winner: NDArray[np.int32]

    def __post_init__(self) -> None:
        for array in (self.better, self.worse, self.first, self.winner):
            array.setflags(write=False)  # all of them, or kernels are compiled twice

    @classmethod
    def of(cls, y: Integers, offsets: Integers) -> Self:
        """Enumerate the pairs of documents with labels `y` in queries that begin at `offsets`: O(n_pairs)."""
        runs = LabelRuns.of(y, offsets)
        beaten = runs.n_worse[runs.run]
        starts = np.concatenate(([0], np.cumsum(beaten[beaten > 0]))).astype(np.int64)
        winner = np.flatnonzero(beaten).astype(np.int32)
        better, worse = np.repeat(winner, beaten[winner]), worse_rows(y, offsets, int(starts[-1]))
        return cls(better, worse, starts, winner)

    @property
    def groups(self) -> PairGroups:
        """The pairs as kernels read them."""
        return self.first, self.winner, self.worse

    def __len__(self) -> int:
        return len(self.better)

    def subset(self, keep: Mask) -> Self:
        """Return the pairs where `keep`, of shape (n_pairs,), is true, in the same order."""
        better, worse = self.better[keep], self.worse[keep]
        starts = np.flatnonzero(np.diff(better, prepend=-1))
        return type(self)(better, worse, np.append(starts, len(better)), better[starts])


class RankingData:
    """Documents of several queries, with one row of features and one relevance label each.

    Parameters
    ----------
    X : array-like or DataFrame, shape (n_documents, n_features)
        Feature values, finite or NaN. They are copied, except for a read-only array such as a mapped file. A read-only
        array in Fortran order needs no further memory in a search.
    y : array-like, shape (n_documents,)
        Relevance labels: integers, 0 is irrelevant, larger is better.
    qid : array-like, shape (n_documents,), or int, optional
        The query of each document, numbers or texts; the rows of a query must be contiguous. One number, as in
        ``qid=0``, means one query, and so does None for up to 1,000 documents, with a warning.
    feature_names : sequence of str, optional
        One name per column; by default those of a DataFrame, else the feature numbers "1" … as in LETOR files.
    name : str, default "data"
        The name of the data set in messages.
    missing : float, "query-min", "query-mean" or "query-worst", optional
        The rule that replaces NaN; see `fill_missing`. By default NaN is refused.
    missing_values : sequence of float
        Numbers that stand for a missing feature value, such as -999 or 1.79769313486e308; they count as NaN.
    costs : FeatureCosts or array-like, shape (n_features,), optional
        The costs of the features, for the objective "cost".
    documents : array-like, shape (n_documents,), optional
        The ids of the documents.
    query_weights : array-like, shape (n_queries,), optional
        How much each query counts, > 0: in the mean of a metric, and in the loss of a ranker.
    document_weights : array-like, shape (n_documents,), optional
        How much each document counts, > 0, such as the inverse propensity of a click. A preference pair counts by the
        product of the weights of its two documents and of its query; NDCG, MeanNDCG and Recall multiply the gain by it.

    Attributes
    ----------
    X : ndarray, shape (n_documents, n_features)
        Feature values in single precision if they were given so, else in double. Tables from 64 MiB on and some
        read-only arrays are in Fortran order, others in C order.
    feature_names : tuple of str
        One name per column.
    given_names : tuple of str or None
        The same if they were given, None if they are feature numbers.
    table_names : tuple of str
        The names of all features of the table that objectives refer to; see `within_table`.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Query q holds the rows ``offsets[q]`` to ``offsets[q + 1]``.
    pairs : PreferencePairs
        All preference pairs, enumerated on first use.
    missing : float, "query-min", "query-mean", "query-worst" or None
        The rule for missing values.
    missing_values : tuple of float
        The numbers that counted as missing.
    scaling : Scaling
        The scaling of the features as far as it is known; see `fit_scaling`.
    costs : FeatureCosts or None
    documents : ndarray of str, shape (n_documents,), or None
        The ids of the documents, None if they have none.
    query_weights, document_weights : ndarray or None
        Divided by their mean; None if they are all equal, because equal weights change nothing.

    Raises
    ------
    ValueError
        For wrong shapes, NaN without a rule, infinity, columns that hold no numbers, a Series whose index differs from
        that of X, negative or fractional labels, a query whose rows are not contiguous, a missing query id, or more
        than 1,000 documents without queries, with place and remedy. Objects that are not numbers are a TypeError.

    Notes
    -----
    The arrays are read-only, so that derived values (pairs, rank tables, Gram matrices) are computed once.

    Any finite feature value can be held, scaled and described. Rankers refuse values beyond 1e30 in size, and name row
    and feature, because fourth powers of features (in conjugate gradients) and sums in single precision overflow.
    Squares of features below 1e-154 vanish, so that such features get no weight; this is not an error.

    Examples
    --------
    >>> data = RankingData([[0.1], [0.9], [0.5]], y=[0, 2, 1], qid=[7, 7, 7])
    >>> data.pairs.better.tolist(), data.pairs.worse.tolist()
    ([1, 1, 2], [0, 2, 0])
    >>> data = RankingData([[0.5], [float("nan")], [0.75]], y=[0, 2, 1], qid=0, missing="query-worst")
    >>> data.X.ravel().tolist(), data.n_missing.tolist()
    ([0.5, 0.25, 0.75], [1])
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        *,
        name: str = "data",
        missing: MissingRule | None = None,
        missing_values: Sequence[float] = (),
        costs: FeatureCosts | ArrayLike | None = None,
        documents: ArrayLike | None = None,
        query_weights: ArrayLike | None = None,
        document_weights: ArrayLike | None = None,
    ) -> None:
        check_missing_rule(missing, or_none=True)
        self.name = name
        names = inputs.column_names(X) if feature_names is None else feature_names
        self.X = inputs.checked_features(X, names, name)
        n_documents, n_features = self.X.shape
        inputs.require_same_index(
            X, name, y=y, qid=qid, documents=documents, document_weights=document_weights
        )
        self.y = inputs.checked_labels(y, n_documents, name)
        self.qid = inputs.checked_queries(qid, n_documents, name)
        self.offsets = inputs.query_offsets(self.qid, name)
        self.given_names = inputs.checked_names(names, n_features, name)
        self.feature_names = self.table_names = self.given_names or tuple(
            map(str, range(1, n_features + 1))
        )
        self.missing = missing
        self.missing_values = values = inputs.checked_values(missing_values)
        self.X = inputs.without_values(self.X, values)
        self.scaling: Scaling = UNSCALED
        self.costs = self._checked_costs(costs)
        self.documents = inputs.checked_documents(documents, n_documents, name)
        self.query_weights = inputs.checked_weights(
            query_weights, self.n_queries, "query_weights", name
        )
        self.document_weights = inputs.checked_weights(
            document_weights, n_documents, "document_weights", name
        )
        self._missing = self._fill()
        self._is_extreme: Mask | None = None
        self._label_memory: dict[Hashable, Any] = {}
        self._memory: dict[Hashable, Any] = {}
        self._freeze()

    def _freeze(self) -> None:
        """Make the arrays read-only."""
        for array in (self.X, self.y, self.offsets):
            array.setflags(write=False)

    def _fill(self) -> Mask | None:
        """Replace missing values by the rule; return their mask, None if nothing is missing."""
        if not np.isnan(self.X.min()):
            return None
        if self.missing is None:
            fault = np.isnan, inputs.NEEDS_RULE
            inputs.refuse_values(self.X, fault, self.given_names, f"{self.name}: ")
        if inputs.is_frozen(self.X):
            self.X = self.X.copy(order="K")
        mask = np.isnan(self.X)
        fill_missing(self.X, self.offsets, cast("MissingRule", self.missing))
        return mask

    @property
    def is_weighted(self) -> bool:
        """Whether queries or documents have weights that differ."""
        return self.query_weights is not None or self.document_weights is not None

    @property
    def query_ids(self) -> Array:
        """The id of each query, shape (n_queries,)."""
        return self.qid[self.offsets[:-1]]

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.X)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.X.shape[1]

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the queries, by default their number."""
        return self.n_queries if self.query_weights is None else float(self.query_weights.sum())

    def weighted(self, values: Matrix) -> Matrix:
        """Return values (n_queries, …) times the weights of the queries, so that the plain mean is the weighted one."""
        if self.query_weights is None:
            return values
        weights = self.query_weights / self.query_weights.mean()
        return values * weights.reshape(-1, *[1] * (values.ndim - 1))

    @property
    def n_pairs(self) -> int:
        """Number of preference pairs."""
        return self.label_runs.n_pairs

    @property
    def pairs(self) -> PreferencePairs:
        """All preference pairs, by query, then better row, then worse row; a ValueError beyond the limit on memory."""
        n_bytes = 32 * self.n_pairs  # for two rows, and the values that solvers keep for a pair
        backends = "which RankRLS, RankSVM and FSMRank do without"
        check_room(f"a list of {self.n_pairs:,} preference pairs ({backends})", n_bytes)
        return self.remember(
            "pairs", lambda: PreferencePairs.of(self.y, self.offsets), labels_only=True
        )

    @property
    @remembered
    def X64(self) -> Matrix:
        """X in double precision and C order: X itself, or a copy that is made on first use."""
        return read_only(np.ascontiguousarray(self.X, float))

    @property
    def n_missing(self) -> Integers:
        """The number of values of each feature that were missing before the rule, shape (n_features,)."""
        if self._missing is None:
            return np.zeros(self.n_features, np.int64)
        return self._missing.sum(axis=0)

    @property
    def is_extreme(self) -> Mask:
        """Which features have extreme values, before scaling if that was asked then; see `extreme_columns`."""
        if self._is_extreme is not None:
            return self._is_extreme
        return self.remember("is extreme", lambda: inputs.extreme_columns(self.X))

    @property
    @remembered
    def is_of_query(self) -> Mask:
        """Which features differ between queries, but never within one, shape (n_features,)."""
        starts = self.offsets[:-1]
        varies = np.maximum.reduceat(self.X, starts) != np.minimum.reduceat(self.X, starts)
        return (self.X[0] != self.X).any(axis=0) & ~varies.any(axis=0)

    @property
    def label_runs(self) -> LabelRuns:
        """The documents of each query by label, for sums over all pairs without a list of them."""
        return self.remember(
            "label runs", lambda: LabelRuns.of(self.y, self.offsets), labels_only=True
        )

    def query_blocks(self, n_documents: int) -> Iterator[tuple[int, int]]:
        """Yield the first and last query (exclusive) of blocks of at most `n_documents`, or of one query."""
        return blocks(self.offsets, n_documents)

    @property
    @remembered
    def columns(self) -> Floats:
        """X with the features as rows, shape (n_features, n_documents), C-contiguous.

        A view of X in Fortran order, else a copy that is made on first use.
        """
        return read_only(np.ascontiguousarray(self.X.T))

    def within_table(self, names: tuple[str, ...]) -> Self:
        """Return the same data as a part of a table with these features, for objectives that name its columns."""
        return self if names == self.table_names else self._changed(table_names=names)

    def with_features(self, mask: Mask) -> Self:
        """Return the same documents with the features of `mask` only; the result is remembered.

        Parameters
        ----------
        mask : ndarray of bool, shape (n_features,)
            At least one.
        """
        if mask.all():
            return self
        return self._subset(mask)

    @remembered
    def _subset(self, mask: Mask) -> Self:
        names = tuple(compress(self.feature_names, mask))
        is_in_c_order = self.X.flags.c_contiguous
        return self._changed(
            X=np.ascontiguousarray(self.X[:, mask]) if is_in_c_order else self.X.T[mask].T,
            feature_names=names,
            table_names=names,
            given_names=names if self.given_names else None,
            _missing=None if self._missing is None else self._missing[:, mask],
            _is_extreme=None if self._is_extreme is None else self._is_extreme[mask],
            scaling=self.scaling.of_features(mask),
            costs=None if self.costs is None else self.costs.of_features(mask),
        )

    def with_table(self, X: Matrix) -> "RankingData":
        """Return the same documents with the same weights and other features X, shape (n_documents, n_columns)."""
        return RankingData(
            X,
            self.y,
            self.qid,
            name=self.name,
            query_weights=self.query_weights,
            document_weights=self.document_weights,
        )

    def with_rows(self, rows: Integers, *, name: str | None = None) -> Self:
        """Return some of the documents, at least one, with names, scaling, costs and missing values of their features.

        Parameters
        ----------
        rows : ndarray of int64, shape (n_rows,)
            Rows of a query must be contiguous.
        name : str, optional
            The name of the new data set in messages, by default the name of this one.
        """
        name = name or self.name
        offsets = inputs.query_offsets(self.qid[rows], name)
        queries = np.searchsorted(self.offsets, rows[offsets[:-1]], side="right") - 1
        return self._changed(
            name=name,
            X=self.X[rows] if self.X.flags.c_contiguous else np.take(self.X.T, rows, axis=1).T,
            y=self.y[rows],
            qid=self.qid[rows],
            offsets=offsets,
            documents=None if self.documents is None else self.documents[rows],
            query_weights=None if self.query_weights is None else self.query_weights[queries],
            document_weights=None if self.document_weights is None else self.document_weights[rows],
            _missing=None if self._missing is None else self._missing[rows],
            _label_memory={},
        )

    def with_queries_of(self, other: Self) -> Self:
        """Return the queries of both data sets, numbered anew; the other has the same features, scaled alike."""
        parts = (self, other)
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        weights = {}
        for name in ("query_weights", "document_weights"):
            values = [getattr(part, name) for part in parts]
            has_all = all(value is not None for value in values)
            weights[name] = np.concatenate(values) if has_all else None
        return self._changed(
            name=f"{self.name} and {other.name}",
            X=np.concatenate([part.X for part in parts]),
            y=np.concatenate([part.y for part in parts]),
            qid=np.repeat(np.arange(len(sizes)), sizes),
            offsets=np.append(0, np.cumsum(sizes)),
            documents=None,
            _missing=None,
            _is_extreme=None,
            _label_memory={},
            **weights,
        )

    def with_costs(self, costs: FeatureCosts | ArrayLike) -> Self:
        """Return the same documents, whose features cost `costs`; see `FeatureCosts`.

        Raises
        ------
        ValueError
            For a wrong number of costs, and costs that are negative or not finite.
        """
        return self._changed(costs=self._checked_costs(costs))

    def _checked_costs(self, costs: FeatureCosts | ArrayLike | None) -> FeatureCosts | None:
        if costs is None:
            return None
        checked = costs if isinstance(costs, FeatureCosts) else FeatureCosts.of(costs)
        if len(checked) != self.n_features:
            raise ValueError(
                f"{self.name}: {len(checked)} costs were given for {self.n_features} features"
            )
        return checked

    def require_costs(self, what: str) -> FeatureCosts:
        """Return the costs; raise a ValueError if there are none, which `what` needs."""
        if self.costs is None:
            remedy = (
                "give RankingData(…, costs=…) or Limits(costs=…), "
                "or [features] table in a problem file"
            )
            raise ValueError(f"{self.name}: {what} needs to know what the features cost: {remedy}")
        return self.costs

    def scaled_by(self, scaling: PerQuery | FittedScaling) -> Self:
        """Return the same documents with scaled features; see `fit_scaling`.

        Raises
        ------
        ValueError
            If the features are scaled already, the scaling has another number of features, or a scaled value is
            infinite.
        """
        if self.scaling.kind != "none" and not self.scaling.kind == scaling.kind == "query":
            raise ValueError(
                f"{self.name}: the features are scaled already ({self.scaling.kind}), and cannot "
                f"be scaled again ({scaling.kind}); pass raw values"
            )
        X = scaling.table(self.X, self.offsets)
        where = f"{self.name}, scaled ({scaling.kind}): "
        inputs.refuse_values(X, inputs.INFINITE, self.given_names, where)
        return self._changed(X=X, scaling=scaling, _is_extreme=self._memory.get("is extreme"))

    def mark_scaled(self, kind: Literal["query"]) -> Self:
        """Return the same documents marked as scaled per query, with the same values.

        Raises
        ------
        ValueError
            For another kind, and for data that something else has scaled.
        """
        check_choice(["query"], kind=kind)
        if self.scaling not in (UNSCALED, PER_QUERY):
            raise ValueError(f"{self.name}: the features are scaled already ({self.scaling.kind})")
        return self._changed(scaling=PER_QUERY)

    def remember(self, key: Hashable, make: Callable[[], T], *, labels_only: bool = False) -> T:
        """Return the value that `make` returned when `key` was first asked for; safe to call from several threads.

        Keeps values that depend on this data set alone and are expensive to compute. All copies with the same labels
        share a value if `labels_only`: if it depends on labels and weights alone.
        """
        memory = self._label_memory if labels_only else self._memory
        if key not in memory:
            memory.setdefault(key, make())  # of several threads, the first one wins
        return cast("T", memory[key])

    def without_cache(self) -> Self:
        """Return the same data without what was computed from them, so that each cell of a study computes it anew."""
        return self._changed(_label_memory={})

    def _changed(self, **attributes: object) -> Self:
        """Return the same documents with other attributes, which are checked already."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__ | attributes)
        copy._memory = {}
        copy._freeze()
        return copy

    @remembered
    def require_moderate_values(self) -> None:
        """Raise a ValueError for a feature value beyond 1e30 in size; see the notes of the class."""
        inputs.refuse_values(self.X, inputs.LARGE, self.given_names, f"{self.name}: ")

    def require_pairs(self) -> None:
        """Raise a ValueError if no query has two documents with different labels."""
        if self.n_pairs == 0:
            reason = "no query has two documents with different labels"
            if self.n_documents == 1:
                reason += " (there is 1 sample)"
            raise ValueError(
                f"{self.name}: no preference pair: {reason}; check the labels and the query ids"
            )

    def __identity__(self) -> dict[str, str]:
        """Return a digest of all that can change a result, remembered; O(bytes of the data), at about 0.5 GB/s.

        Only what is computed from the data, their name and the ids of documents do not count.
        """
        indifferent = {"name", "documents", "_is_extreme", "_label_memory", "_memory"}
        fields = {name: value for name, value in vars(self).items() if name not in indifferent}
        return {"data": self.remember("digest", lambda: digest(fields, self.name))}

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.name!r}: {self.n_documents} documents, "
            f"{self.n_queries} queries, {self.n_features} features)"
        )

    def __copy__(self) -> Self:
        """Return the same data without what was computed from the features."""
        return self._changed()

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_memory": {}, "_label_memory": {}}


Fold: TypeAlias = tuple[RankingData, RankingData, RankingData]
"""Training, validation and test part."""


def labels_alone(y: ArrayLike, qid: ArrayLike | None) -> RankingData:
    """Return test data for a metric: labels and queries, with one feature that is 0."""
    return RankingData(np.zeros((len(np.asarray(y)), 1)), y, qid, name="test data")


def n_pairs_of_documents(data: RankingData, masks: Mask) -> Integers:
    """Count the preference pairs whose documents are both kept by each row of `masks` (n, n_documents), shape (n,)."""
    runs, counts = data.label_runs, np.zeros(len(masks), np.int64)
    for index, mask in enumerate(masks):
        size = np.bincount(runs.run[mask], minlength=len(runs.n_worse))
        together = np.add.reduceat(size, runs.query_begin[:-1])
        counts[index] = (together @ together - size @ size) // 2
    return counts
