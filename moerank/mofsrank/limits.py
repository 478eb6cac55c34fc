"""Limits on selections of features: included and excluded features, largest number and largest cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from pymoo.core.problem import Problem
from pymoo.core.repair import Repair

from moerank.arrays import Array, Integers, Mask, Vector
from moerank.checks import check_at_least, check_not_negative
from moerank.data import AnyData, FeatureCosts
from moerank.data.costs import known_costs
from moerank.data.inputs import column_mask, in_column_order, listed
from moerank.data.shards import DataT
from moerank.evolution import KeepAsIs

Features: TypeAlias = Sequence[int | str] | int | str
"""Features by their columns, counted from 0, or by their names."""

Costs: TypeAlias = FeatureCosts | Mapping[Any, float] | ArrayLike
"""Costs of features, in the order of the columns or by column or name."""

Groups: TypeAlias = Sequence[Any] | Mapping[Any, Any]
"""Groups of features, in the order of the columns or by column or name; any hashable objects."""

GroupCosts: TypeAlias = Mapping[Any, float]
"""Costs of groups."""

ROUNDING = 1e-9
"""Share of `max_cost` by which a sum of costs may exceed it: sums in another order differ in their last bits."""


@dataclass(frozen=True)
class FeatureLimits:
    """Limits that every selection keeps.

    Attributes
    ----------
    max_features : int, optional
        Largest number of features, those of `include` counted.
    max_cost : float, optional
        Largest cost of all features together; the data must have costs.
    include : sequence of int or str
        Columns, counted from 0, or names of the features of every selection.

    Examples
    --------
    >>> FeatureLimits(max_features=10, include="bm25").given
    {'max_features': 10, 'include': ('bm25',)}
    """

    max_features: int | None = None
    max_cost: float | None = None
    include: Features = ()

    def __post_init__(self) -> None:
        check_at_least(1, or_none=True, max_features=self.max_features)
        check_not_negative(or_none=True, max_cost=self.max_cost)
        object.__setattr__(self, "include", listed(self.include))

    @property
    def given(self) -> dict[str, object]:
        """The limits that are set, by name."""
        limits = {"max_features": self.max_features, "max_cost": self.max_cost, "include": self.include or None}
        return {name: limit for name, limit in limits.items() if limit is not None}


UNLIMITED = FeatureLimits()


class FeatureStrings:
    """The bit strings that stand for feature subsets of some data, and the limits that they keep.

    With `by_group` a bit stands for all features of a group, or for a feature without a group; otherwise for one
    feature. A ValueError refuses limits that no string can keep, unknown features, `max_cost` for data without costs,
    and `by_group` for data without groups.

    Attributes
    ----------
    bit_of : ndarray of int64, shape (n_features,)
        The bit that stands for each feature. Bits are in the order of their first features.
    n_bits : int
    included : ndarray of bool, shape (n_features,)
        Features that belong to every selection; with `by_group`, all features of their groups.
    most_ones : int
        Number of ones that fit when the smallest or cheapest bits are set first.

    Examples
    --------
    >>> from moerank.data import RankingData
    >>> data = RankingData([[0.1, 0.5, 0.2], [0.9, 0.4, 0.3]], [0, 1], costs=[1.0, 5.0, 3.0])
    >>> strings = FeatureStrings(data, FeatureLimits(max_cost=4.0, include=[2]))
    >>> strings.repaired(np.ones((1, 3), bool), np.random.default_rng(0)).tolist()
    [[True, False, True]]
    """

    def __init__(self, data: AnyData, limits: FeatureLimits = UNLIMITED, *, by_group: bool = False) -> None:
        self.data = data
        self.limits = limits
        self.by_group = by_group
        self.bit_of = _bits_of_groups(data) if by_group else np.arange(data.n_features)
        self.n_bits = int(self.bit_of.max()) + 1
        included = column_mask(limits.include, data.feature_names, "include")
        self.included_bits: Mask = np.bincount(self.bit_of, included, self.n_bits) > 0
        self.included = self.included_bits[self.bit_of]
        if limits.max_cost is not None:
            known_costs(data.costs, data.name, "max_cost")
        # The own cost and the group of each bit, and the shared cost of each group; the last entry is for no group.
        costs = data.costs or FeatureCosts.of(np.zeros(data.n_features))
        group = np.full(self.n_bits, -1)
        group[self.bit_of] = costs.group
        self._own = np.bincount(self.bit_of, costs.own, self.n_bits)
        self._group, self._shared = group % (len(costs.shared) + 1), np.append(costs.shared, 0.0)
        self._width = np.bincount(self.bit_of, minlength=self.n_bits)
        self.most_ones = self.n_bits
        if limits.given:
            self._refuse_impossible()
            self.most_ones = int(np.count_nonzero(self._filled(self._cheapest_first()[None])))

    def columns(self, X: Mask) -> Mask:
        """Return the feature masks of strings, shape (n, n_features)."""
        return X[:, self.bit_of] if self.by_group else X

    def bits(self, feature_mask: Mask) -> Mask:
        """Return strings (n, n_bits) with the bits of all features of each row."""
        if not self.by_group:
            return feature_mask
        X = np.zeros((len(feature_mask), self.n_bits), np.bool_)
        for column, bit in enumerate(self.bit_of):
            X[:, bit] |= feature_mask[:, column]
        return X

    def keeps_limits(self, X: Mask) -> Mask:
        """Whether each string keeps all limits, shape (n,)."""
        return self._keep(self.columns(X))

    def check(self, X: Mask) -> None:
        """Raise a ValueError for the first string that breaks a limit; empty strings pass."""
        feature_mask = self.columns(X)
        broken = ~self._keep(feature_mask) & feature_mask.any(axis=1)
        if broken.any():
            row = int(broken.argmax())
            raise ValueError(
                f"string {row} of {len(X)} {self._breach(feature_mask[row])}; give strings that keep the limits, or "
                "the search the repair that operators() has"
            )

    def repaired(self, X: Mask, random_state: Generator) -> Mask:
        """Return strings that keep the limits: the included features, then the others in random order while they fit.

        Strings that keep the limits already are not changed.
        """
        X = X | self.included_bits
        broken = np.flatnonzero(~self.keeps_limits(X))
        if len(broken):
            lots = np.where(X[broken], random_state.random((len(broken), self.n_bits)), 2.0)
            order = np.argsort(lots, axis=1, kind="stable")[:, : np.count_nonzero(X[broken], axis=1).max()]
            X[broken] = self._filled(np.where(np.take_along_axis(X[broken], order, axis=1), order, -1))
        return X

    def repair(self, used: Integers | None = None) -> Repair:
        """Return the repair of strings that break a limit; see `KeepLimits`."""
        return KeepLimits(self, used) if self.limits.given else KeepAsIs()

    def _keep(self, feature_mask: Mask) -> Mask:
        limits = self.limits
        keep: Mask = np.all(feature_mask | ~self.included, axis=1)
        if limits.max_features is not None:
            keep &= np.count_nonzero(feature_mask, axis=1) <= limits.max_features
        if limits.max_cost is not None:
            keep &= self._costs(feature_mask) <= limits.max_cost * (1 + ROUNDING)
        return keep

    def _breach(self, mask: Mask) -> str:
        """Say which limit a selection breaks."""
        limits, names = self.limits, self.data.feature_names
        if (lacking := np.flatnonzero(self.included & ~mask)).size:
            return f"lacks feature {names[lacking[0]]!r}, which is included in every selection"
        size = np.count_nonzero(mask)
        if limits.max_features is not None and size > limits.max_features:
            return f"has {size} features, and max_features is {limits.max_features}"
        return f"costs {self._costs(mask[None])[0]:g}, and max_cost is {limits.max_cost:g}"

    def _costs(self, feature_mask: Mask) -> Vector:
        return known_costs(self.data.costs, self.data.name, "max_cost").sums(feature_mask)

    def _filled(self, order: Integers) -> Mask:
        """Return for each row the included bits, and those of `order` (n, n_steps) that fit one after the other.

        −1 stands for no bit.
        """
        width, own, group, shared = self._width, self._own, self._group, self._shared
        most = np.inf if self.limits.max_features is None else self.limits.max_features
        dearest = np.inf if self.limits.max_cost is None else self.limits.max_cost * (1 + ROUNDING)
        rows = np.arange(len(order))
        X = np.tile(self.included_bits, (len(order), 1))
        size = np.full(len(order), width[self.included_bits].sum())
        cost = np.full(len(order), own[self.included_bits].sum())
        paid = np.zeros((len(order), len(shared)), np.bool_)
        paid[:, np.unique(group[self.included_bits])] = True
        paid[:, -1] = True  # no group
        cost += np.where(paid, shared, 0.0).sum(axis=1)
        for bit in order.T:
            further = np.where(paid[rows, group[bit]], 0.0, shared[group[bit]]) + own[bit]
            fits = (bit >= 0) & ~X[rows, bit] & (size + width[bit] <= most) & (cost + further <= dearest)
            X[rows[fits], bit[fits]] = True
            size[fits] += width[bit[fits]]
            cost[fits] += further[fits]
            paid[rows[fits], group[bit[fits]]] = True
        return X

    def _cheapest_first(self) -> Integers:
        """Return the bits in an order in which nearly the largest number of them fits."""
        if self.limits.max_cost is None:
            return np.lexsort((self._own, self._width))
        return np.lexsort((self._width, self._own + self._shared[self._group]))

    def _refuse_impossible(self) -> None:
        """Raise a ValueError if no string keeps the limits."""
        if self.included.any():
            if not self._keep(self.included[None])[0]:
                raise ValueError(f"no selection can keep the limits: include alone {self._breach(self.included)}")
            return
        singles = self.columns(np.eye(self.n_bits, dtype=np.bool_))
        if not self._keep(singles).any():
            smallest = singles[self._cheapest_first()[0]]
            unit = "group" if self.by_group else "feature"
            raise ValueError(f"no selection can keep the limits: the smallest {unit} alone {self._breach(smallest)}")


class KeepLimits(Repair):
    """Repair that drops features at random until the limits are kept, and adds the included features.

    `used` are the bits at the beginning of a mixed string; by default a string has all bits and nothing else.
    """

    def __init__(self, strings: FeatureStrings, used: Integers | None = None) -> None:
        super().__init__()
        self.strings = strings
        self.used = used

    def _do(self, problem: Problem, X: Array, *args: object, random_state: Generator, **kwargs: object) -> Array:
        if self.used is None:
            return self.strings.repaired(X, random_state)
        whole = np.zeros((len(X), self.strings.n_bits), np.bool_)
        whole[:, self.used] = X[:, : len(self.used)] > 0.5
        kept = self.strings.repaired(whole, random_state)
        # An included feature may have no weight in a sum of rankers, so that its bit is free.
        X = X.copy()
        X[:, : len(self.used)] = (kept & whole)[:, self.used]
        return X


def _bits_of_groups(data: AnyData) -> Integers:
    """Return the bit of each feature where bits stand for groups, shape (n_features,)."""
    if data.costs is None or (data.costs.group < 0).all():
        raise ValueError(
            f"{data.name}: by_group needs groups of features: give MOFSRank(groups=…) or RankingData(costs="
            'FeatureCosts.of(…, groups=…)), or in a problem file [features] table = "features.csv" with a column group'
        )
    keys = [("group", group) if group >= 0 else ("feature", column) for column, group in enumerate(data.costs.group)]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys])


def allowed_features(train: AnyData, include: Features, exclude: Features) -> tuple[Mask, tuple[str, ...]]:
    """Return the mask of the features that are not excluded, and the names of the included features.

    The included features are named because columns have other numbers without the excluded ones. Raises a ValueError if
    no feature is left, or if a feature is in both lists or unknown.

    Examples
    --------
    >>> from moerank.data import RankingData
    >>> kept, included = allowed_features(RankingData([[0.1, 0.5, 0.2]] * 2, [0, 1], feature_names="abc"), "c", [0])
    >>> kept.tolist(), included
    ([False, True, True], ('c',))
    """
    names = train.feature_names
    kept, included = ~column_mask(exclude, names, "exclude"), column_mask(include, names, "include")
    if not kept.any():
        raise ValueError(f"exclude leaves none of the {train.n_features} features")
    if (both := np.flatnonzero(included & ~kept)).size:
        raise ValueError(f"feature {names[both[0]]!r} is both in include and in exclude")
    return kept, tuple(names[column] for column in np.flatnonzero(included))


def with_costs(
    train: DataT,
    costs: Costs | None = None,
    groups: Groups | None = None,
    group_costs: GroupCosts | None = None,
) -> DataT:
    """Return the data with the costs and groups that `MOFSRank` is given; without any, the data themselves.

    Raises a ValueError for groups beside a `FeatureCosts`, which has groups itself, and for costs that do not fit.

    Examples
    --------
    >>> from moerank.data import RankingData
    >>> data = RankingData([[0.1, 0.5]] * 2, [0, 1])
    >>> with_costs(data, groups=["top", "top"], group_costs={"top": 3.0}).costs.total
    3.0
    """
    if costs is None and groups is None and group_costs is None:
        return train
    if isinstance(costs, FeatureCosts):
        if groups is not None or group_costs is not None:
            raise ValueError("costs is a FeatureCosts, which has groups of its own: leave groups and group_costs out")
        return train.with_costs(costs)
    names = train.feature_names
    own = in_column_order(np.zeros(train.n_features) if costs is None else costs, names, "costs", complete=True)
    return train.with_costs(FeatureCosts.of(own, in_column_order(groups, names, "groups"), group_costs))
