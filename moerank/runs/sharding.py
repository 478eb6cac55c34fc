"""Training data of a problem in shards: read where they are held, by this process or by workers of a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from moerank.data import RankingData
from moerank.data.file_shards import widened
from moerank.data.sharded_data import LocalShards, ShardedData, ShardHolder
from moerank.runs.data_section import Fold
from moerank.runs.file_sources import LetorData
from moerank.runs.places import Places
from moerank.runs.sources import Data

if TYPE_CHECKING:
    from moerank.cluster import DaskCluster

__all__ = ["FoldShard", "load_sharded_fold", "query_ids"]


@dataclass(frozen=True)
class FoldShard:
    """A shard of the training part of a fold, which is read by whoever is to hold it.

    Attributes
    ----------
    data : DataSection
    fold : int
    places : Places
    number : int
        From 0.
    n_bytes : int
        About how much memory it takes.
    """

    data: Data
    fold: int
    places: Places
    number: int
    n_bytes: int

    def __call__(self) -> RankingData:
        """Read the shard."""
        return self.data.shard(self.fold, self.places, self.number)


def load_sharded_fold(data: Data, fold: int, places: Places, cluster: DaskCluster | None = None) -> Fold:
    """Return the parts of a fold, the training part in as many shards as the data say.

    Parameters
    ----------
    data : DataSection
        With a number of shards.
    fold : int
    places : Places
        On a cluster these are places of its workers, too.
    cluster : DaskCluster, optional
        Whose workers hold the shards; else this process does.
    """
    places, n_shards = places.absolute(), data.shards or 1
    n_bytes = data.n_bytes(fold, places)
    sources = [FoldShard(data, fold, places, number, n_bytes) for number in range(n_shards)]
    holder: ShardHolder = LocalShards([source() for source in sources]) if cluster is None else cluster.shards(sources)
    names = holder.map(_names, [])
    vali, test = data.held_out(fold, places, names[0])
    if isinstance(data, LetorData):  # of which every part and shard has the features that it lists
        width = max(vali.n_features, test.n_features, *map(len, names))
        vali, test = widened(vali, width), widened(test, width)
        if any(len(own) < width for own in names):
            holder = holder.changed(partial(widened, n_features=width))
    return ShardedData(holder, f"fold {fold}, training"), vali, test


def query_ids(data: RankingData) -> list[Any]:
    """Return the id of each query, wherever the documents are."""
    found: list[Any] = np.concatenate(data.map(_query_ids)).tolist()
    return found


def _query_ids(data: RankingData) -> Any:
    return data.qid[data.offsets[:-1]]


def _names(data: RankingData) -> tuple[str, ...]:
    return data.feature_names
