"""Pair problems in which preference pairs count by weights, solved one individual after the other.

A pair (i, j) of query q has the weight ω = v_q u_i u_j, with v the weights of queries and u those of documents, and a
mean over p pairs becomes Σ ω (…) / Σ ω. So a query of weight 3 counts as three copies of it, and a document of weight 3
as three copies in its query. The passes of kernels over many individuals know of no weights; they stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.data import RankingData, centre_in_queries
from moerank.kernels.products import product, square
from moerank.training.losses import PairLoss, Target
from moerank.training.newton import Expanded


def solve_weighted(
    train: RankingData, loss: PairLoss, target: Target, C: float, pair_masks: Iterable[Mask], features: Mask
) -> Matrix:
    """Minimise ½ ‖w‖² + C Σ ω ℓ(t − wᵀ(xᵢ − xⱼ)) / Σ ω for each individual, and return W (n_individuals, n_features).

    Each individual has its pairs (n_pairs,) in the order of ``train.pairs``, and its features, a row of
    `features`. Exact to rounding. O(n_pairs + n_documents · k² + k³) for each of about eight Newton steps with k
    features.
    """
    data = train
    X, weights = data.remember("centred", lambda: centre_in_queries(data.X, data.offsets)), _weights(data)
    better, worse = data.pairs.better, data.pairs.worse
    margin: Vector = target.margin + target.per_label * (data.y[better] - data.y[worse]).astype(np.float64)
    W = np.zeros(features.shape)
    for w, kept, mask in zip(W, pair_masks, features, strict=True):
        shares = weights[kept] / weights[kept].sum()
        problem = _WeightedPairs(X[:, mask], better[kept], worse[kept], shares, margin[kept])
        w[mask] = loss.solve(problem, C).w
    return W


def pairs_of(train: RankingData, documents: Mask | None = None, queries: Mask | None = None) -> Iterable[Mask]:
    """Yield the pairs (n_pairs,) among the documents, or of the queries, in each row of a mask."""
    data = train
    if documents is not None:
        return (kept[data.pairs.better] & kept[data.pairs.worse] for kept in documents)
    query = _query_of(data)[data.pairs.better]
    return (kept[query] for kept in (np.ones((1, data.n_queries), np.bool_) if queries is None else queries))


def _query_of(data: RankingData) -> Integers:
    return np.repeat(np.arange(data.n_queries), np.diff(data.offsets))


def _weights(data: RankingData) -> Vector:
    """Return the weight of each pair."""
    weights = np.ones(data.n_pairs)
    if data.query_weights is not None:
        weights *= data.query_weights[_query_of(data)[data.pairs.better]]
    if data.document_weights is not None:
        weights *= data.document_weights[data.pairs.better] * data.document_weights[data.pairs.worse]
    return weights


@dataclass(frozen=True, eq=False)
class _WeightedPairs:
    """The pairs of an individual, with weights that add up to 1; a `SolvableProblem`."""

    X: Matrix  # (n_documents, n_features), centred
    better: NDArray[np.int32]
    worse: NDArray[np.int32]
    weight: Vector
    target: Vector

    @property
    def gram(self) -> Matrix:
        """Weighted mean of (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ, shape (n_features, n_features)."""
        return self._square(self.weight)

    @property
    def moment(self) -> Matrix:
        """Weighted mean of t (xᵢ − xⱼ), shape (n_features,)."""
        return self._pull(self.weight * self.target)

    def expand(self, w: Matrix, C: float, loss: PairLoss) -> Expanded:
        """Return the objective at `w`."""
        z = product(self.X, w)
        slack = self.target - z[self.better] + z[self.worse]
        active = self.weight * (slack > 0) if loss.one_sided else self.weight
        value = 0.5 * float(product(w, w)) + C * float(product(active * slack, slack))
        gradient = w - 2.0 * C * self._pull(active * slack)
        return Expanded(value, gradient, np.eye(len(w)) + 2.0 * C * self._square(active))

    def _pull(self, a: Vector) -> Vector:
        """Return Σ a (xᵢ − xⱼ)."""
        n = len(self.X)
        return product(self.X.T, np.asarray(np.bincount(self.better, a, n) - np.bincount(self.worse, a, n), np.float64))

    def _square(self, a: Vector) -> Matrix:
        """Return Σ a (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ, of the Laplacian of the graph whose edges are the pairs."""
        n = len(self.X)
        edges = coo_array((a, (self.better, self.worse)), (n, n)).tocsr()
        degree = np.bincount(self.better, a, n) + np.bincount(self.worse, a, n)
        image = degree[:, None] * self.X - edges @ self.X - edges.T @ self.X
        return square(self.X.T, image.T)
