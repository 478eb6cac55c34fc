"""Best subset of every size for RankRLS, proved by leaps and bounds (Furnival and Wilson, 1974)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from time import perf_counter
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import Count, NotNegative, Positive, check_room
from moerank.data import AnyData, FeatureCosts, RankingData
from moerank.data.costs import ROUNDING, known_costs
from moerank.data.inputs import column_mask, listed
from moerank.kernels.best_subset import TOLERANCE, Found, Tree, Units, grow_tree, room_for
from moerank.kernels.blas import one_blas_thread
from moerank.kernels.cholesky import ridge_subsets
from moerank.rankers import LinearPopulation, LinearRanker, RankRLS, Selection, SelectionPath, best_of_each_size
from moerank.rankers.base import Grid
from moerank.training.moments import PairMoments

CHUNK = 1_000_000
"""Nodes after which the search looks at the clock, times the square of the number of features: about .05 seconds.

That is less than a command waits after Ctrl-C before it ends without the result.
"""

EXACT = 1e-6
"""Share by which a loss from the tree may differ from that of the system itself."""

WORK = 24_000_000_000
"""Nodes that are looked at by default, times the square of the number of features."""


def _check_kind(kinds: Any, wanted: str, **parameters: object) -> None:
    """Raise a ValueError for a parameter that is none of the kinds."""
    for name, value in parameters.items():
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise ValueError(f"{name} must be {wanted}, not {value!r}")


ColumnsOrNames: TypeAlias = Annotated[
    Sequence[int | str] | int | str,
    partial(_check_kind, str | Integral | list | tuple | range | np.ndarray, "a list of columns or names of features"),
]


@dataclass(eq=False, repr=False)
class BestSubset(Selection, LinearRanker):
    """Find the subset of every size with the least loss of RankRLS, and prove it.

    The loss of a subset S is min_w (1 / p) Σ (1 − wᵀ(xᵢ − xⱼ))² + alpha ‖w‖² over the p preference pairs (i, j) of the
    training data, with w = 0 off S. No other subset of its size that keeps the limits has a smaller loss, as far as
    `bounds_` equals `losses_`. Otherwise the smallest possible loss lies between the two. This says nothing about a
    metric of rankings, nor about other queries.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Largest number of features of the ranker.
    alpha : float, optional
        Regularisation, > 0. By default that of RankRLS on all features with the best validation MAP, and without
        validation data a tenth of tr(G) / n_features; see `RankRLS`.
    max_features : int, optional
        Largest size that is searched; by default all are.
    max_cost : float, optional
        Largest cost of all features of a subset; the data must have costs. A shared cost of a group counts once.
    include, exclude : sequence of int or str, default ()
        Columns, from 0, or names of features that every subset has, or none. Features that are constant in every query
        are in none unless they are included.
    by_group : bool, default False
        Groups of features are chosen as a whole. The best subset is then that of every number of groups and of features
        without a group.
    max_nodes : int, optional
        Nodes of the search tree after which the search ends without a proof for the larger sizes. By default they are
        2.4 · 10¹⁰ / n² for n features, which take up to half a minute.
    time_limit : float, optional
        Seconds after which it ends. Ctrl-C ends it, too. The best subsets that are known then remain.
    progress : callable, optional
        Called as ``progress(stage, fraction, size, n_nodes)``, with the largest size that is searched at the moment.

    Attributes
    ----------
    masks_ : ndarray of bool, shape (n_subsets, n_features)
        The best subset known of each size, by size. Sizes that the limits rule out are left out.
    losses_, bounds_ : ndarray, shape (n_subsets,)
        Its loss, and a lower bound of the loss of every subset of this size.
    path_coefs_ : ndarray, shape (n_subsets, n_features)
        Its weights.
    alpha_ : float
        The regularisation.
    n_nodes_ : int
        Nodes that were looked at.
    coef_ : ndarray, shape (n_features,)
    support_ : ndarray of bool, shape (n_features,)

    Notes
    -----
    Exponential time in the worst case, O(n_features³) memory. The sizes 1, 2–3, 4–7 … are searched one after the other.
    A subset counts as proved if no other has a loss smaller by more than 10⁻⁹ of it.

    Without the features R the loss of a node rises by wᵣᵀ D_R wᵣ at least, if A − D is positive semidefinite, with A
    the matrix of the normal equations. This bound, which the paper does not have, is strong where `alpha` is large. D
    is a multiple of I, of the diagonal of A, or of that of (A⁻¹)⁻¹, whichever has the largest Σ D w².

    References
    ----------
    G. M. Furnival, R. W. Wilson: Regressions by leaps and bounds. Technometrics 16, 1974.

    Examples
    --------
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2], [0.1, 0.2], [0.9, 0.3]]
    >>> solver = BestSubset(1, alpha=0.1).fit(X, y=[0, 1, 2, 0, 1], qid=[1, 1, 1, 2, 2])
    >>> solver.support_.tolist(), solver.losses_.round(3).tolist(), solver.gaps_.tolist()
    ([True, False], [0.228, 0.228], [0.0, 0.0])
    """

    n_features_to_select: Count = 10
    alpha: Positive | None = None
    max_features: Count | None = None
    max_cost: NotNegative | None = None
    include: ColumnsOrNames = ()
    exclude: ColumnsOrNames = ()
    by_group: bool = False
    max_nodes: Count | None = None
    time_limit: Positive | None = None
    progress: Annotated[
        Callable[[str, float, int, int], object] | None, partial(_check_kind, Callable | None, "a function, or None")
    ] = None

    _size = "n_features_to_select"
    on_shards: ClassVar[bool] = True
    _takes_weights = True

    @property
    def gaps_(self) -> Vector:
        """The share (n_subsets,) by which each loss may exceed the smallest possible one; 0 where it is proved."""
        return self.losses_ / self.bounds_ - 1.0

    def path(self, train: AnyData) -> SelectionPath:
        """Return the ranker of the best subset of at most 1, 2, … features; nothing is asked of `train`."""
        check_is_fitted(self, "coef_")
        return best_of_each_size(self.masks_, LinearPopulation(self.path_coefs_), -self.losses_)

    def without_selection(self) -> RankRLS:
        """Return RankRLS with the same loss."""
        return RankRLS() if self.alpha is None else RankRLS(self.alpha)

    def default_grid(self, train: RankingData) -> Grid:
        """Return every number of features."""
        return [{"n_features_to_select": size} for size in range(1, train.n_features + 1)]

    def _fit(self, train: AnyData, validation: RankingData | None) -> None:
        if self.alpha is not None:
            self.alpha_ = self.alpha
        elif validation is not None:
            self.alpha_ = float(RankRLS().tune(train, validation).alpha)
        else:
            self.alpha_ = float(np.trace(PairMoments.of(train).gram)) / train.n_features / 10.0
        settings = (self.alpha_, self.max_features, self.max_cost, listed(self.include), listed(self.exclude))
        key = ("best subset", *settings, self.by_group, self.max_nodes, self.time_limit)
        found = train.remember(key, lambda: self._search(train))
        self.masks_, self.losses_, self.bounds_, self.path_coefs_, self.n_nodes_, self._ended_by = found
        sizes = self.masks_.sum(axis=1)
        if sizes.min() > self.n_features_to_select:
            raise ValueError(
                f"n_features_to_select={self.n_features_to_select}: the smallest subset within the limits has "
                f"{sizes.min()} features; raise it, or loosen include or by_group"
            )
        best = np.where(sizes <= self.n_features_to_select, self.losses_, np.inf).argmin()
        self._set_weights(self.path_coefs_[best])

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        return self.path(train).scores(X)

    def _reservations(self) -> Iterator[str]:
        yield from super()._reservations()
        open_ = np.flatnonzero(self.gaps_ > 0)
        if open_.size:
            sizes = self.masks_.sum(axis=1)[open_]
            span = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"{sizes[0]}"
            yield (
                f"ended at {self._ended_by}: subsets of {span} features are the best known, with losses at most "
                f"{100 * self.gaps_.max():.3g} % above the optimum; raise max_nodes or time_limit, or lower "
                "max_features"
            )

    def _search(self, train: AnyData) -> tuple[Mask, Vector, Vector, Matrix, int, str]:
        """Return the attributes of the best subsets, the number of nodes, and the limit that ended the search."""
        moments, names = PairMoments.of(train), train.feature_names
        included = column_mask(self.include, names, "include")
        excluded = column_mask(self.exclude, names, "exclude")
        if (both := np.flatnonzero(included & excluded)).size:
            raise ValueError(f"feature {names[both[0]]!r} is both in include and in exclude")
        allowed = np.flatnonzero((np.diag(moments.gram) > 0) & ~excluded | included)
        if not len(allowed):
            raise ValueError(f"exclude leaves none of the features of {train.name} that vary")
        A = moments.gram + self.alpha_ * np.eye(train.n_features)
        lost = ValueError(
            f"alpha={self.alpha_:g} vanishes beside the squares of the features of {train.name}, so that losses are "
            "lost in rounding; take a larger alpha, or scale the features, for instance by query_level_norm"
        )
        try:
            with one_blas_thread():
                order, units = self._units(train, allowed, A, moments.unit)
                tree, found = _planted(A[np.ix_(order, order)], moments.unit[order], units, included[order])
        except np.linalg.LinAlgError:
            raise lost from None
        most = len(units.group)
        if self.max_features is not None and not self.by_group:
            most = min(most, self.max_features)
        n_nodes, ended_by = self._grow(tree, units, found, most)
        sizes = np.flatnonzero(np.isfinite(found.loss[: most + 1]))
        if not len(sizes):
            raise ValueError(f"no subset of the features of {train.name} keeps the limits; loosen them")
        masks = np.zeros((len(sizes), train.n_features), bool)
        masks[:, order] = np.repeat(found.subset[sizes], np.diff(units.first), axis=1)
        W = ridge_subsets(A, moments.unit, masks)
        losses = 1.0 - W @ moments.unit
        if (np.abs(losses - found.loss[sizes]) > EXACT * losses).any():
            raise lost
        return masks, losses, np.minimum(losses, found.bound[sizes]), W, n_nodes, ended_by

    def _units(self, train: AnyData, allowed: Integers, A: Matrix, b: Vector) -> tuple[Integers, Units]:
        """Return the allowed features unit by unit, and the units."""
        if self.max_cost is not None:
            known_costs(train.costs, train.name, "max_cost")
        costs = train.costs or FeatureCosts.of(np.zeros(train.n_features))
        group, alone = costs.group[allowed], len(costs.shared) + np.arange(len(allowed))
        unit = np.unique(np.where((group >= 0) & self.by_group, group, alone), return_inverse=True)[1]
        arranged = np.argsort(unit, kind="stable")
        order, first = allowed[arranged], np.searchsorted(unit[arranged], np.arange(unit.max() + 2))
        limits = []
        if self.max_features is not None and self.by_group:
            limits.append((np.diff(first).astype(float), float(self.max_features)))
        if self.max_cost is not None:
            limits.append((np.bincount(unit, costs.own[allowed]), self.max_cost * (1 + ROUNDING)))
        shared = np.append(costs.shared, 0.0) * (self.max_cost is not None)
        return order, Units(
            first=first,
            share=_diagonal_share(A[np.ix_(order, order)], b[order]),
            prices=np.array([prices for prices, _ in limits]).reshape(len(limits), len(first) - 1),
            group=costs.group[order[first[:-1]]] % len(shared),
            shared=shared,
            most=np.array([most for _, most in limits]),
        )

    def _grow(self, tree: Tree, units: Units, found: Found, most: int) -> tuple[int, str]:
        """Search the sizes up to `most`; return the number of nodes, and the limit that ended the search, or ""."""
        began, n_nodes, ended_by = perf_counter(), 0, ""
        most_nodes = self.max_nodes or max(1, WORK // len(units.share) ** 2)
        chunk = max(1, CHUNK // len(units.share) ** 2)
        n_children = int(tree.counts[0, 0])
        lows = [2**power for power in range(most.bit_length())]
        for number, low in enumerate(lows):
            high = min(2 * low - 1, most)
            tree.level[0], tree.counts[0, 1] = 0, n_children - 1
            try:
                while tree.level[0] >= 0 and not ended_by:
                    n_nodes += grow_tree(tree, units, found, low, high, min(chunk, most_nodes - n_nodes), False)
                    if self.progress is not None:
                        done = 1.0 - (int(tree.counts[0, 1]) + 1) / max(1, n_children)
                        self.progress("best_subset", (number + done) / len(lows), high, n_nodes)
                    if n_nodes >= most_nodes:
                        ended_by = f"max_nodes={most_nodes:,}"
                    elif self.time_limit is not None and perf_counter() - began > self.time_limit:
                        ended_by = f"time_limit={self.time_limit:g}"
            except KeyboardInterrupt:
                ended_by = "Ctrl-C"
            grow_tree(tree, units, found, low, high, 0, True)
        return n_nodes, ended_by


def _diagonal_share(A: Matrix, b: Vector) -> Vector:
    """Return a diagonal D that makes Σ D w² large, w the solution on all features, and A − D positive semidefinite."""
    w = np.linalg.solve(A, b)
    scales = np.ones(len(b)), np.diag(A), 1.0 / np.diag(np.linalg.inv(A))
    shares = [np.linalg.eigvalsh(A / np.sqrt(np.outer(s, s)))[0] * (1.0 - TOLERANCE) * s for s in scales]
    return max(shares, key=lambda share: float(share @ w**2)).clip(0.0)


def _planted(A: Matrix, b: Vector, units: Units, included: Mask) -> tuple[Tree, Found]:
    """Return the tree with its root, all features, and what is known of it; units with an included feature stay."""
    n_units, widths = len(units.group), np.diff(units.first)
    stays = np.add.reduceat(included, units.first[:-1]) > 0
    inverse = np.linalg.inv(A)
    table = np.column_stack([inverse, inverse @ b])
    loss = float(1.0 - b @ table[:, -1])
    falling = np.where(stays, np.inf, -_rises(table, widths))
    n_free, n_rows = int(np.sum(~stays)), int(widths[~stays].sum())
    removable = np.argsort(falling, kind="stable")[:n_free]
    rows = np.argsort(np.repeat(falling, widths), kind="stable")[:n_rows]
    n_levels = n_free + 1
    check_room(f"the search tree of {len(b):,} features", 8 * n_levels * n_rows**2)
    tree = Tree(
        M=np.empty((n_levels, n_rows + 1, n_rows + 1)),
        units=np.empty((n_levels, n_levels), np.int64),
        first=np.empty((n_levels, n_levels), np.int64),
        rise=np.empty((n_levels, n_levels)),
        loss=np.full(n_levels, loss),
        counts=np.full((n_levels, 3), (n_free, n_free - 1, n_units - n_free)),
        kept=np.argsort(~stays, kind="stable"),
        level=np.zeros(1, np.int64),
    )
    tree.M[0, :-1] = table[np.ix_(rows, np.append(rows, len(b)))]
    tree.units[0, :-1], tree.rise[0, :-1] = removable, -falling[removable]
    tree.first[0] = np.append(0, np.cumsum(widths[removable]))
    found = Found(
        loss=np.full(n_units + 1, np.inf),
        bound=np.full(n_units + 1, np.inf),
        subset=np.zeros((n_units + 1, n_units), bool),
    )
    _eliminate(found, units, stays, table, loss)
    return tree, found


def _rises(table: Matrix, widths: Integers) -> Vector:
    """Return how much the loss rises without each unit, from the rows of the inverse and of w."""
    ends = np.cumsum(widths)
    blocks = [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]
    return np.array([table[block, -1] @ np.linalg.solve(table[block, block], table[block, -1]) for block in blocks])


def _eliminate(found: Found, units: Units, stays: Mask, table: Matrix, loss: float) -> None:
    """Write down the subsets of backward elimination, as the first ones that are known."""
    left, widths = np.arange(len(stays)), np.diff(units.first)
    while True:
        if room_for(left[:0], left, units) == 0:
            found.loss[len(left)], found.subset[len(left), left] = loss, True
        if len(left) == 1 or stays[left].all():
            return
        rises = np.where(stays[left], np.inf, _rises(table, widths[left]))
        worst = int(rises.argmin())
        out = np.flatnonzero(np.repeat(np.arange(len(left)) == worst, widths[left]))
        table = table - table[:, out] @ np.linalg.solve(table[np.ix_(out, out)], table[out])
        table = np.delete(np.delete(table, out, axis=0), out, axis=1)
        loss, left = loss + rises[worst], np.delete(left, worst)
