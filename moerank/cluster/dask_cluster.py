"""A Dask cluster as the place where the documents of a data set lie in shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from moerank.cluster.dask_shards import DaskShards, Given
from moerank.cluster.worker import Source
from moerank.cluster.workers import Workers
from moerank.data import RankingData
from moerank.data.sharded_data import ShardedData, parts_of

__all__ = ["DaskCluster"]


class DaskCluster:
    """The workers of a Dask scheduler, on which training data lie in shards.

    What trains on such data sends weights and masks to the workers, and gets sums; the documents stay where they are.
    The same shards give the same bits on any number of workers, and in one process without Dask (`cut_into_shards`).

    Parameters
    ----------
    address : str
        Of the scheduler.

    Raises
    ------
    OSError
        If nothing answers there, there is no worker, or a worker has another processor or other versions than this
        process: sums would have other bits.

    Notes
    -----
    Dask's messages are pickles: whoever reaches the scheduler can run code on the workers and here. Use a network that
    others do not reach, or Dask's TLS.

    Examples
    --------
    >>> with DaskCluster("tcp://10.0.0.1:8786") as cluster:  # doctest: +SKIP
    ...     solver = MOFSRank(random_state=0).fit(cluster.scatter(train, 8))
    """

    def __init__(self, address: str) -> None:
        self._workers = Workers(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all shards, and of what is under way."""
        self._workers.close()

    def scatter(self, data: RankingData, n_shards: int) -> ShardedData:
        """Send a data set to the workers in shards, cut as `cut_into_shards` does.

        It stays here as well, and is sent again where a worker is lost.

        Raises
        ------
        OSError
            If a worker has no room for its shards.
        ValueError
            For fewer queries than shards.
        """
        return self.hold([Given(part) for part in parts_of(data, n_shards)], data.name)

    def hold(self, sources: Sequence[Source], name: str) -> ShardedData:
        """Let the workers read shards, each a share of them.

        Parameters
        ----------
        sources : sequence of callables
            Each is sent to the worker that is to read its shard, and returns it there; see `Source`.
        name : str
            How messages call the data.

        Raises
        ------
        OSError
            If a worker has no room for its shards.
        ValueError, OSError
            What a source raises.
        """
        return ShardedData(self.shards(sources), name)

    def shards(self, sources: Sequence[Source]) -> DaskShards:
        """Return the shards that `hold` makes a data set of, before anything is known of what they hold."""
        return DaskShards(self._workers, sources)
