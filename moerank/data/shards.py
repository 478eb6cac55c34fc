"""Ranking data in shards of whole queries, in this process or on the workers of a cluster.

Training asks a data set for sums over its queries. Each shard computes its own sum, and these are added up in one order
(`moerank.data.blocks`), so that the same shards give the same bits wherever they are.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import check_at_least
from moerank.data.blocks import add_up, shares
from moerank.data.costs import FeatureCosts
from moerank.data.scaling import FittedScaling, MissingRule, PerQuery, Scaling

if TYPE_CHECKING:
    from moerank.data.dask import DaskShards
    from moerank.data.ranking_data import RankingData

T = TypeVar("T")

Step: TypeAlias = "Callable[[RankingData], RankingData]"
"""A function that turns a shard into another shard with the same documents."""

FACTS = attrgetter(
    *("n_documents", "n_queries", "n_pairs", "feature_names", "given_names", "missing", "scaling"),
    *("n_missing", "costs", "_extremes.moderate", "query_weights", "is_weighted"),
)
"""Attributes of a shard that this process knows."""

NOT_ON_SHARDS = (
    "needs all documents at once, and cannot work on data in shards; RankRLS, RankSVM and FSMRank can, and "
    "MOFSRank with them for its backend"
)
"""The end of messages about rankers and solvers that need more than sums."""


class LocalShards:
    """Shards in the memory of this process; `DaskShards` has the same methods for shards elsewhere."""

    def __init__(self, shards: Sequence[RankingData]) -> None:
        self._shards = shards

    def __len__(self) -> int:
        return len(self._shards)

    @property
    def where(self) -> str:
        """The shards and their place, in words for progress and messages."""
        return f"{len(self)} shard{'s' * (len(self) != 1)}"

    def map(self, function: Callable[..., T], arguments: Sequence[Sequence[object]]) -> list[T]:
        """Return ``function(shard, *own)`` of each shard; `arguments` has for each argument the value of each shard."""
        return [function(shard, *(own[i] for own in arguments)) for i, shard in enumerate(self._shards)]

    def total(self, function: Callable[..., T], arguments: Sequence[Sequence[object]]) -> T:
        """Return the sum of the same in the order of `moerank.data.blocks.add_up`."""
        return add_up((0, len(self)), lambda i: function(self._shards[i], *(own[i] for own in arguments)))

    def changed(self, step: Step) -> LocalShards:
        """Return the results of a step on the shards, held in the same place."""
        return LocalShards([step(shard) for shard in self._shards])


ShardHolder: TypeAlias = "LocalShards | DaskShards"


class AnyData(ABC):
    """Ranking data in one piece, `RankingData`, or in shards of whole queries, `ShardedData`; see these for attributes.

    Training needs facts about the features, and sums over the queries, which are taken shard by shard and added up in
    an order that the number of shards alone decides. Data in one piece are their only shard.
    """

    in_shards: ClassVar[bool]
    """Whether the documents are in shards, and can only be mapped over and summed up."""

    name: str
    feature_names: tuple[str, ...]
    given_names: tuple[str, ...] | None
    missing: MissingRule | None
    n_missing: Integers
    scaling: Scaling
    costs: FeatureCosts | None
    query_weights: Vector | None
    is_weighted: bool  # some queries or documents count more than others
    _ends: tuple[Integers, Integers]  # the queries, and the documents, at which shards begin and end
    n_pairs: int
    """Number of preference pairs."""
    _holder: ShardHolder
    _memory: dict[Hashable, Any]
    _lock: threading.RLock

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return int(self._ends[1][-1])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return int(self._ends[0][-1])

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the queries, by default their number."""
        return self.n_queries if self.query_weights is None else float(self.query_weights.sum())

    def weighed(self, values: Matrix) -> Matrix:
        """Return values (n_queries, …) times the weights of the queries, so that the plain mean is the weighted one."""
        if self.query_weights is None:
            return values
        weights = self.query_weights / self.query_weights.mean()
        return values * weights.reshape(-1, *[1] * (values.ndim - 1))

    @property
    def n_shards(self) -> int:
        """Number of shards, 1 for data that are not in shards."""
        return len(self._holder)

    @property
    def where(self) -> str:
        """The shards and their place, in words for progress and messages."""
        return self._holder.where

    def map(self, function: Callable[..., T], *arguments: object) -> list[T]:
        """Return ``function(shard, *arguments)`` of each shard, in order.

        Computations over all documents are such functions, so that they run on sharded data, too. A shard is a
        `RankingData`, and gets its part of the values of a `ByQuery` or `ByDocument` argument.
        """
        return self._holder.map(function, [shares(argument, *self._ends) for argument in arguments])

    def total(self, function: Callable[..., T], *arguments: object) -> T:
        """Return the sum over the shards of ``function(shard, *arguments)``: array, number or a tuple."""
        return self._holder.total(function, [shares(argument, *self._ends) for argument in arguments])

    def with_features(self, mask: Mask) -> Self:
        """Return the same documents with the features of `mask` only; the result is remembered.

        Parameters
        ----------
        mask : ndarray of bool, shape (n_features,)
            At least one.
        """
        return self if mask.all() else self.remember(("with features", mask.tobytes()), lambda: self._some(mask))

    @abstractmethod
    def _some(self, mask: Mask) -> Self: ...

    def with_costs(self, costs: FeatureCosts | ArrayLike) -> Self:
        """Return the same documents, whose features cost `costs`; see `FeatureCosts`.

        Raises
        ------
        ValueError
            For another number of costs than features, and costs that are negative or not finite.
        """
        return self._changed(costs=self._checked_costs(costs))

    @abstractmethod
    def _after(self, step: Callable[[Any], Any]) -> Self: ...

    def scaled_by(self, scaling: PerQuery | FittedScaling) -> Self:
        """Return the same documents with features scaled by a scaling; see `fit_scaling`.

        Raises
        ------
        ValueError
            If the features are scaled already, the scaling has another number of features, or a scaled value is
            infinite.
        """
        return self._after(methodcaller("_scaled_by", scaling))

    def declared(self, kind: Literal["query"]) -> Self:
        """Return the same documents marked as scaled per query, with the same values.

        Raises
        ------
        ValueError
            For another kind, and for data that something else has scaled.
        """
        return self._after(methodcaller("_declared", kind))

    @abstractmethod
    def require_moderate_values(self) -> None:
        """Raise a ValueError for a feature value beyond 1e30 in size; see the notes of `RankingData`."""

    def require_pairs(self) -> None:
        """Raise a ValueError if no query has two documents with different labels."""
        if self.n_pairs == 0:
            alone = " (there is 1 sample)" * (self.n_documents == 1)
            raise ValueError(
                f"{self.name}: no preference pair: no query has two documents with different labels{alone}, so there "
                "is nothing to learn an order from; check the labels and the query ids"
            )

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value that `make` returned when `key` was first asked for; safe to call from several threads.

        Keeps values that depend on this data set alone and are expensive to compute.
        """
        return self._remembered(self._memory, key, make)

    def _remembered(self, memory: dict[Hashable, Any], key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key not in memory:
                memory[key] = make()
            return cast("T", memory[key])

    def _changed(self, **attributes: object) -> Self:
        """Return the same documents with other attributes, which are checked already."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__ | attributes)
        copy._memory, copy._lock = {}, threading.RLock()
        return copy

    def _checked_costs(self, costs: FeatureCosts | ArrayLike) -> FeatureCosts:
        checked = costs if isinstance(costs, FeatureCosts) else FeatureCosts.of(costs)
        if len(checked) != self.n_features:
            raise ValueError(f"{self.name}: {len(checked)} costs were given for {self.n_features} features")
        return checked

    def __repr__(self) -> str:
        shards = f", {self.where}" * self.in_shards
        return (
            f"{type(self).__name__}({self.name!r}: {self.n_documents} documents, {self.n_queries} queries, "
            f"{self.n_features} features{shards})"
        )

    def _repr_html_(self) -> str:
        """Return the counts as a table of a notebook; `moerank.describe` counts more."""
        counts = {"documents": self.n_documents, "queries": self.n_queries, "features": self.n_features}
        return str(pd.Series(counts).map("{:,}".format).to_frame(self.name).to_html())


DataT = TypeVar("DataT", bound=AnyData)


class ShardedData(AnyData):
    """Ranking data whose documents are in shards of whole queries.

    The documents themselves (`X`, `y`, `qid`, …) are attributes of the shards only. Rankers, solvers and metrics that
    need all documents at once refuse such data with a ValueError.

    Parameters
    ----------
    holder : ShardHolder
        Shards with the same features.
    name : str

    Attributes
    ----------
    n_shards, n_pairs : int

    Raises
    ------
    ValueError
        If the shards differ in features, scaling, or rule for missing values.

    Examples
    --------
    >>> from moerank.data import RankingData
    >>> data = RankingData([[0.1], [0.9], [0.5], [0.2]], y=[0, 2, 1, 0], qid=[1, 1, 2, 2])
    >>> shards = cut_into_shards(data, 2)
    >>> shards, shards.map(lambda shard: shard.n_documents)
    (ShardedData('data': 4 documents, 2 queries, 1 features, 2 shards), [2, 2])
    """

    in_shards = True

    def __init__(self, holder: ShardHolder, name: str = "data") -> None:
        self.name = name
        self._holder = holder
        facts = zip(*holder.map(FACTS, []), strict=True)
        documents, queries, pairs, names, given_names, missing, scalings, n_missing, costs, moderate, *weights = facts
        for what, values in (("names", names), ("missing", missing), ("scaling", scalings)):
            for i, value in enumerate(values):
                if value != values[0]:
                    raise ValueError(
                        f"{name}: shard {i + 1} of {len(values)} has another {what} than the first one: "
                        f"{value!r}, not {values[0]!r}"
                    )
        self.feature_names, self.given_names = names[0], given_names[0]
        self.missing, self.scaling, self.costs = missing[0], scalings[0], costs[0]
        self.n_missing = np.sum(n_missing, axis=0)
        self.n_pairs, self._moderate = sum(pairs), all(moderate)
        self._ends = np.append(0, np.cumsum(queries)), np.append(0, np.cumsum(documents))
        of_queries, weighted = weights
        self.is_weighted = any(weighted)
        self.query_weights = None if of_queries[0] is None else np.concatenate(of_queries)
        self._memory, self._lock = {}, threading.RLock()

    def _some(self, mask: Mask) -> Self:
        costs = None if self.costs is None else self.costs.of_features(mask)
        return self._after(methodcaller("with_features", mask))._changed(costs=costs)

    def _after(self, step: Callable[[Any], Any]) -> Self:
        return type(self)(self._holder.changed(step), self.name)._changed(costs=self.costs)

    def require_moderate_values(self) -> None:
        """Raise a ValueError for a feature value that rankers cannot compute with."""
        if not self._moderate:
            self.map(methodcaller("require_moderate_values"))


def cut_into_shards(data: RankingData, n_shards: int) -> ShardedData:
    """Return a data set in shards in this process, with about as many documents each.

    Parameters
    ----------
    data : RankingData
    n_shards : int
        At least 1; no more than there are queries.

    Raises
    ------
    ValueError
        For another number of shards.
    """
    return ShardedData(LocalShards(parts_of(data, n_shards)), data.name)


def parts_of(data: RankingData, n_shards: int) -> list[RankingData]:
    """Return the shards that `cut_into_shards` makes, each a data set."""
    ends = shard_ends(data.offsets, n_shards)
    name = data.name if len(ends) == 2 else f"{data.name}, shard {{}} of {len(ends) - 1}"
    return [
        data.with_rows(np.arange(data.offsets[begin], data.offsets[end]), name=name.format(i + 1))
        for i, (begin, end) in enumerate(pairwise(ends.tolist()))
    ]


def shard_ends(offsets: Integers, n_shards: int) -> Integers:
    """Return the first query of each shard, and the number of queries; shards have about as many documents each."""
    n_queries = len(offsets) - 1
    check_at_least(1, n_queries, shards=n_shards)
    goals = offsets[-1] * np.arange(1, n_shards) / n_shards
    ends = np.searchsorted(offsets, goals)
    ends -= (ends > 0) & (goals - offsets[ends - 1] < offsets[ends] - goals)  # the nearer one
    for i in range(len(ends)):  # every shard has a query
        ends[i] = min(max(ends[i], (ends[i - 1] if i else 0) + 1), n_queries - (n_shards - 1 - i))
    return np.concatenate(([0], ends, [n_queries])).astype(np.int64)
