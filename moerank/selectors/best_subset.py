"""Best subset of every size for RankRLS, proved by leaps and bounds (Furnival and Wilson, 1974)."""

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np

from moerank.arrays import Array, Integers, Mask, Matrix, Vector
from moerank.checks import Count, NotNegative, Positive, check_room
from moerank.data import FeatureCosts, RankingData
from moerank.data.costs import ROUNDING
from moerank.data.inputs import column_mask, listed
from moerank.kernels.algebra import plus_ridge, ridge_subsets
from moerank.kernels.subset_tree import TOLERANCE, Incumbents, Tree, Units, grow_tree, room_for
from moerank.kernels.threads import one_blas_thread
from moerank.rankers import (
    LinearPopulation,
    LinearRanker,
    RankRLS,
    Selection,
    SelectionPath,
    best_of_each_size,
)
from moerank.rankers.base import Grid, MetricOrNone
from moerank.scikit_learn import check_is_fitted
from moerank.training.pair_moments import PairMoments

# Nodes after which the search looks at the clock, times the square of the number of features: about 0.05 seconds.
NODES_AT_ONCE = 1_000_000
# Share by which a loss from the tree may differ from that of the system itself.
LOSS_TOLERANCE = 1e-6
# Default limit on the nodes that are searched, times the square of the number of features.
WORK = 24_000_000_000


class BestSubset(Selection, LinearRanker):
    """Find the subset of every size with the least loss of RankRLS, and prove it.

    The loss of a subset S is min_w (1 / p) Σ (1 − wᵀ(xᵢ − xⱼ))² + alpha ‖w‖² over the p preference pairs (i, j) of the
    training data, with w = 0 off S. Where `bounds_` equals `losses_`, no other subset of that size within the
    limits has a smaller loss. Elsewhere the smallest possible loss lies between the two. This says nothing about
    ranking metrics or other queries.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Largest number of features of the ranker.
    alpha : float, optional
        Regularisation, > 0. By default validation data choose that of RankRLS on all features; without them it is a
        tenth of tr(G) / n_features; see `RankRLS`.
    max_features : int, optional
        Largest size that is searched; by default all are.
    max_cost : float, optional
        Largest cost of all features of a subset; the data must have costs. A shared cost of a group counts once.
    include, exclude : sequence of int or str, default ()
        Columns, from 0, or names of the features that every subset must have, or must not have. Features that are
        constant in every query are left out unless they are included.
    by_group : bool, default False
        Whether groups of features are chosen as a whole. Each group, and each feature without a group, then counts as
        one, and there is a best subset for every number of them.
    max_nodes : int, optional
        Nodes of the search tree after which the search ends without a proof for the larger sizes. By default they are
        2.4 · 10¹⁰ / n² for n features, which take up to half a minute.
    time_limit : float, optional
        Seconds after which the search ends. Ctrl-C ends it, too. The best subsets so far remain.
    progress : callable, optional
        Called as ``progress(stage, fraction, size, n_nodes)``, with the largest size in the present part of the search.

    Attributes
    ----------
    masks_ : ndarray of bool, shape (n_subsets, n_features)
        The best subset known of each size that the limits allow, by size.
    losses_, bounds_ : ndarray, shape (n_subsets,)
        The loss of each, and a lower bound of the loss of every subset of its size.
    path_coefs_ : ndarray, shape (n_subsets, n_features)
        The weights of each.
    alpha_ : float
        The regularisation.
    n_nodes_ : int
        Nodes that were searched.
    coef_ : ndarray, shape (n_features,)
    support_ : ndarray of bool, shape (n_features,)

    Notes
    -----
    Exponential time in the worst case, O(n_features³) memory. The sizes 1, 2–3, 4–7 … are searched one after the other.
    A subset counts as proved if no other has a loss smaller by more than 10⁻⁹ of it.

    If A − D is positive semidefinite, with A the matrix of the normal equations, the loss of a node rises by at least
    wᵣᵀ D_R wᵣ without the features R. This bound is not in the paper, and is strong if `alpha` is large. D is a
    multiple of I, of the diagonal of A, or of the inverse of the diagonal of A⁻¹, whichever has the largest Σ D w².

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
    include: Sequence[int | str] | int | str | None = ()
    exclude: Sequence[int | str] | int | str | None = ()
    by_group: bool = False
    max_nodes: Count | None = None
    time_limit: Positive | None = None
    progress: Callable[[str, float, int, int], object] | None = None
    tuning: MetricOrNone = None

    _size = "n_features_to_select"
    _takes_weights = True

    @property
    def gaps_(self) -> Vector:
        """The share (n_subsets,) by which each loss may exceed the smallest possible one; 0 where it is proved."""
        return self.losses_ / self.bounds_ - 1.0

    def path(self, train: RankingData) -> SelectionPath:
        """Return the ranker of the best of `masks_` with at most 1, 2, … features; `train` is not used."""
        check_is_fitted(self, "coef_")
        return best_of_each_size(self.masks_, LinearPopulation(self.path_coefs_), -self.losses_)

    def without_selection(self) -> RankRLS:
        """Return RankRLS with the same loss."""
        return RankRLS() if self.alpha is None else RankRLS(self.alpha)

    def default_grid(self, train: RankingData) -> Grid:
        """Return every number of features."""
        return [{"n_features_to_select": size} for size in range(1, train.n_features + 1)]

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        if self.alpha is not None:
            self.alpha_ = self.alpha
        elif validation is not None:
            self.alpha_ = float(RankRLS().tune(train, validation, metric=self.tuning).alpha)
        else:
            self.alpha_ = float(np.trace(PairMoments.of(train).gram)) / train.n_features / 10.0
        limits = self.max_features, self.max_cost, self.by_group, self.max_nodes, self.time_limit
        columns = listed(self.include), listed(self.exclude)
        key = ("best subset", self.alpha_, *limits, *columns)
        result = train.remember(key, lambda: self._search(train))
        self.masks_, self.losses_, self.bounds_, self.path_coefs_ = result[:4]
        self.n_nodes_, self._ended_by = result[4:]
        sizes = self.masks_.sum(axis=1)
        if sizes.min() > self.n_features_to_select:
            raise ValueError(
                f"n_features_to_select={self.n_features_to_select}: the smallest subset within "
                f"the limits has {sizes.min()} features; raise it, or loosen include or by_group"
            )
        best = np.where(sizes <= self.n_features_to_select, self.losses_, np.inf).argmin()
        self._set_weights(self.path_coefs_[best])

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        return self.path(train).scores(X)

    def _fit_warning(self) -> str:
        sizes = np.sort(self.masks_.sum(axis=1)[self.gaps_ > 0])
        if not sizes.size:
            return ""
        span = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"{sizes[0]}"
        return (
            f"ended at {self._ended_by}: subsets of {span} features are the best known, "
            f"with losses at most {100 * self.gaps_.max():.3g} % above the optimum; "
            "raise max_nodes or time_limit, or lower max_features"
        )

    def _search(self, train: RankingData) -> tuple[Mask, Vector, Vector, Matrix, int, str]:
        """Return the attributes of the best subsets, the number of nodes, and the limit that ended the search."""
        moments = PairMoments.of(train)
        A = plus_ridge(moments.gram, self.alpha_)
        rounding_error = ValueError(
            f"alpha={self.alpha_:g} is too small next to the squares of the features of "
            f"{train.name}: the losses are lost in rounding; take a larger alpha, or scale the "
            "features, for instance by query_level_norm"
        )
        included, allowed = self._columns(train, np.diag(moments.gram) > 0)
        order, units = self._units(train, allowed)
        fits = _units_within_limits(units, included[order])
        max_size = np.inf if self.by_group else self.max_features or np.inf
        if not fits.any() or np.count_nonzero(included) > max_size:
            raise ValueError(
                f"no subset of the features of {train.name} keeps the limits; loosen them"
            )
        order, units = self._units(train, np.sort(order[np.repeat(fits, np.diff(units.begin))]))
        try:
            with one_blas_thread():
                tree, units, result = _plant_tree(
                    A[np.ix_(order, order)], moments.unit[order], units, included[order]
                )
        except np.linalg.LinAlgError:
            raise rounding_error from None
        # These are all sizes that the limits allow, so that none lacks a subset however early the search ends.
        sizes = np.flatnonzero(np.isfinite(result.loss))
        sizes = sizes[sizes <= max_size]
        n_nodes, ended_by = self._grow(tree, units, result, int(sizes[-1]))
        masks = np.zeros((len(sizes), train.n_features), bool)
        masks[:, order] = np.repeat(result.subset[sizes], np.diff(units.begin), axis=1)
        W = ridge_subsets(A[None], moments.unit[None], masks)
        losses = 1.0 - W @ moments.unit
        if (np.abs(losses - result.loss[sizes]) > LOSS_TOLERANCE * losses).any():
            raise rounding_error
        return masks, losses, np.minimum(losses, result.bound[sizes]), W, n_nodes, ended_by

    def _columns(self, train: RankingData, varying: Mask) -> tuple[Mask, Integers]:
        """Return the mask of the included features, and the columns of all that may be selected."""
        names = train.feature_names
        included = column_mask(self.include, names, "include")
        excluded = column_mask(self.exclude, names, "exclude")
        both = np.flatnonzero(included & excluded)
        if both.size:
            raise ValueError(f"feature {names[both[0]]!r} is both in include and in exclude")
        allowed = np.flatnonzero(varying & ~excluded | included)
        if not len(allowed):
            raise ValueError(f"exclude leaves none of the features of {train.name} that vary")
        return included, allowed

    def _units(self, train: RankingData, allowed: Integers) -> tuple[Integers, Units]:
        """Return the allowed features unit by unit, and the units."""
        if self.max_cost is not None:
            train.require_costs("max_cost")
        costs = train.costs or FeatureCosts.of(np.zeros(train.n_features))
        group, alone = costs.group[allowed], len(costs.shared) + np.arange(len(allowed))
        unit = np.where((group >= 0) & self.by_group, group, alone)
        arranged = np.argsort(unit, kind="stable")
        order, starts = allowed[arranged], np.unique(unit[arranged], return_index=True)[1]
        begins = np.append(starts, len(order))
        shared = np.append(costs.shared, 0.0) * (self.max_cost is not None)
        # NaN for no limit.
        limits = np.array([self.max_features if self.by_group else None, self.max_cost], float)
        prices = np.array([np.diff(begins), np.add.reduceat(costs.own[order], starts)])
        return order, Units(
            begin=begins,
            share=np.zeros(len(order)),
            prices=prices[~np.isnan(limits)],
            group=costs.group[order[starts]] % len(shared),
            shared=shared,
            limits=limits[~np.isnan(limits)] * (1 + ROUNDING),
        )

    def _grow(self, tree: Tree, units: Units, result: Incumbents, max_size: int) -> tuple[int, str]:
        """Search the sizes up to `max_size`; return the number of nodes, and the limit that ended the search, or ""."""
        began, n_nodes, ended_by = perf_counter(), 0, ""
        max_nodes = self.max_nodes or max(1, WORK // len(units.share) ** 2)
        chunk = max(1, NODES_AT_ONCE // len(units.share) ** 2)
        n_children = int(tree.counts[0, 0])
        lows = [2**power for power in range(max_size.bit_length())]
        for number, low in enumerate(lows):
            high = min(2 * low - 1, max_size)
            tree.level[0], tree.counts[0, 1] = 0, n_children - 1
            try:
                while tree.level[0] >= 0 and not ended_by:
                    step = min(chunk, max_nodes - n_nodes)
                    n_nodes += grow_tree(tree, units, result, low, high, step, False)
                    if self.progress is not None:
                        done = 1.0 - (int(tree.counts[0, 1]) + 1) / max(1, n_children)
                        self.progress("best_subset", (number + done) / len(lows), high, n_nodes)
                    if n_nodes >= max_nodes:
                        ended_by = f"max_nodes={max_nodes:,}"
                    elif self.time_limit is not None and perf_counter() - began > self.time_limit:
                        ended_by = f"time_limit={self.time_limit:g}"
            except KeyboardInterrupt:
                ended_by = "Ctrl-C"
            grow_tree(tree, units, result, low, high, 0, True)
        return n_nodes, ended_by


def _plant_tree(
    A: Matrix, b: Vector, units: Units, included: Mask
) -> tuple[Tree, Units, Incumbents]:
    """Return the tree with all features at its root, the units with a diagonal `share`, and the best subsets so far.

    Units with an included feature are never removed. The first best subsets are those of backward elimination, from all
    units and from the most that keep the limits. `share` is a diagonal D that makes Σ D w² large, w the solution on all
    features, and A − D positive semidefinite.
    """
    inverse = np.linalg.inv(A)
    w = inverse @ b
    table = np.column_stack([inverse, w])
    free = ~np.logical_or.reduceat(included, units.begin[:-1])
    tree = _root(table, b, units, free)
    units = units._replace(share=_diagonal_below(A, inverse, w))
    unknown = np.full(len(free) + 1, np.inf)
    result = Incumbents(unknown, unknown.copy(), np.zeros((len(free) + 1, len(free)), bool))
    loss = tree.loss[0]
    if len(units.limits):
        fullest = _largest_within_limits(units, free)
        out = np.flatnonzero(np.repeat(~fullest, np.diff(units.begin)))
        step = np.linalg.solve(table[np.ix_(out, out)], table[out])
        within, rise = table - table[:, out] @ step, table[out, -1] @ step[:, -1]
        _eliminate(within, loss + rise, fullest, free, units, result)
    _eliminate(table, loss, np.ones_like(free), free, units, result)
    return tree, units, result


def _diagonal_below(A: Matrix, inverse: Array, w: Vector) -> Vector:
    """Return a diagonal D with A − D positive semidefinite and a large Σ D w²."""
    shares = []
    for scale in (np.ones(len(A)), np.diag(A), 1.0 / np.diag(inverse)):
        smallest = np.linalg.eigvalsh(A / np.sqrt(np.outer(scale, scale)))[0]
        shares.append(smallest * (1.0 - TOLERANCE) * scale)
    return max(shares, key=lambda share: float(share @ w**2)).clip(0.0)


def _root(table: Matrix, b: Vector, units: Units, free: Mask) -> Tree:
    """Return the tree with all features at its root, the free units by falling rise."""
    widths = np.diff(units.begin)
    falling = -_rises(table, units, free)
    order, n_free = np.argsort(falling, kind="stable"), int(np.count_nonzero(free))
    removable, n_levels = order[len(free) - n_free :], n_free + 1
    rows = np.argsort(np.repeat(falling, widths), kind="stable")[widths[~free].sum() :]
    check_room(f"the search tree of {len(b):,} features", 8 * n_levels * len(rows) ** 2)
    tree = Tree(
        M=np.empty((n_levels, len(rows) + 1, len(rows) + 1)),
        units=np.tile(np.append(removable, 0), (n_levels, 1)),
        begin=np.tile(np.append(0, np.cumsum(widths[removable])), (n_levels, 1)),
        rise=np.tile(np.append(-falling[removable], 0.0), (n_levels, 1)),
        loss=np.full(n_levels, 1.0 - b @ table[:, -1]),
        counts=np.full((n_levels, 3), (n_free, n_free - 1, len(free) - n_free)),
        included=order,
        level=np.zeros(1, np.int64),
    )
    tree.M[0, :-1] = table[np.ix_(rows, np.append(rows, len(b)))]
    return tree


def _eliminate(
    table: Matrix, loss: float, start: Mask, free: Mask, units: Units, result: Incumbents
) -> None:
    """Remove the free units of `start` one by one, and record what keeps the limits and is better than before."""
    subset, free = start.copy(), start & free
    while True:
        members = np.flatnonzero(subset)
        n_units = len(members)
        if room_for(members[:0], members, units) == 0 and loss < result.loss[n_units]:
            result.loss[n_units] = loss
            result.subset[n_units] = subset
        if n_units == 1 or not free.any():
            return
        rises = _rises(table, units, free)
        worst = rises.argmin()
        out = slice(*units.begin[worst : worst + 2])
        table = table - table[:, out] @ np.linalg.solve(table[out, out], table[out])
        loss += rises[worst]
        subset[worst] = free[worst] = False


def _units_within_limits(units: Units, included: Mask) -> Mask:
    """Return the mask of the units that keep the limits together with the units of included features."""
    needed = np.flatnonzero(np.logical_or.reduceat(included, units.begin[:-1]))
    subsets = [np.union1d(needed, [unit]) for unit in range(len(units.group))]
    return np.array([room_for(subset[:0], subset, units) == 0 for subset in subsets])


def _largest_within_limits(units: Units, free: Mask) -> Mask:
    """Return the largest set of units within the limits with all that are not free, the cheapest if there are several.

    O(n_units²) steps for one limit; with two they are multiplied by the number of sums of the first.
    """
    needed = np.flatnonzero(~free)
    width, price = units.prices[0] * (len(units.limits) > 1), units.prices[-1]
    paid = np.isin(np.arange(len(units.shared)), units.group[needed])
    spent = float(price[needed].sum() + units.shared[paid].sum())
    cheapest = {(0, float(width[needed].sum())): (spent, needed.tolist())}
    for group in np.unique(units.group[free]):
        members = np.flatnonzero(free & (units.group == group))
        members = members[np.argsort(price[members], kind="stable")]
        for (size, filled), (cost, subset) in list(cheapest.items()):
            cost += 0.0 if paid[group] else float(units.shared[group])
            for unit in members.tolist():
                size += 1
                filled += float(width[unit])
                cost += float(price[unit])
                subset = [*subset, unit]
                if filled > units.limits[0] or cost > units.limits[-1]:
                    break
                if (size, filled) not in cheapest or cost < cheapest[size, filled][0]:
                    cheapest[size, filled] = cost, subset
    largest = max(cheapest, key=lambda sums: (sums[0], -cheapest[sums][0]))
    return np.isin(np.arange(len(free)), cheapest[largest][1])


def _rises(table: Matrix, units: Units, free: Mask) -> Vector:
    """Return how much the loss rises without each free unit, from the rows of the inverse and of w; ∞ for others."""
    rises = np.full(len(free), np.inf)
    for unit in np.flatnonzero(free):
        rows = slice(*units.begin[unit : unit + 2])
        rises[unit] = table[rows, -1] @ np.linalg.solve(table[rows, rows], table[rows, -1])
    return rises
