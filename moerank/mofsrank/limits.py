"""Feature strings that keep limits, and the data with the costs and the allowed features of these limits."""

from itertools import compress

import numpy as np
from numpy.random import Generator
from pymoo.core.problem import Problem
from pymoo.core.repair import NoRepair, Repair

from moerank.arrays import Array, Integers, Mask, Matrix, Vector
from moerank.checks import Parameters
from moerank.data import FeatureCosts, RankingData
from moerank.data.costs import ROUNDING
from moerank.data.inputs import column_mask, in_column_order
from moerank.mofsrank.settings import Limits, LimitsSection

UNLIMITED = Limits()


class FeatureStrings:
    """The bit strings that stand for feature subsets of some data, and the limits that they keep.

    With `by_group` a bit stands for all features of a group, or for a feature without a group; otherwise for one
    feature. A ValueError refuses limits that no string can keep, unknown features, `max_cost` for data without costs,
    and `by_group` for data without groups.

    `data` have the costs of the limits. `bit_of` (n_features,) is the bit that stands for each feature, in the order of
    first features. `included` (n_features,) are the features that belong to every selection, with `by_group` together
    with their groups. `max_ones` is the number of bits that fit if the smallest or cheapest ones are set first.

    >>> from moerank.data import RankingData
    >>> data = RankingData([[0.1, 0.5, 0.2], [0.9, 0.4, 0.3]], [0, 1], qid=0, costs=[1.0, 5.0, 3.0])
    >>> strings = FeatureStrings(data, Limits(max_cost=4.0, include=[2]))
    >>> strings.repaired(np.ones((1, 3), bool), np.random.default_rng(0)).tolist()
    [[True, False, True]]
    """

    def __init__(
        self, data: RankingData, limits: Limits = UNLIMITED, *, by_group: bool = False
    ) -> None:
        self.data = data = with_costs(data, limits)
        self.limits = limits
        self.by_group = by_group
        self.bit_of = _bits_of_groups(data) if by_group else np.arange(data.n_features)
        self.n_bits = int(self.bit_of.max()) + 1
        self.allowed = allowed_features(data, limits)[0]
        self.allowed_bits: Mask = self._of_bits(self.allowed) > 0
        self.included_bits: Mask = (
            self._of_bits(column_mask(limits.include, data.feature_names, "include")) > 0
        )
        self.included = self.columns(self.included_bits[None])[0]
        self._width = self._of_bits(self.allowed)  # number of features of each bit
        costs = FeatureCosts.of(np.zeros(data.n_features))
        max_cost = np.inf
        if limits.max_cost is not None:
            costs = data.require_costs("max_cost")
            max_cost = limits.max_cost * (1 + ROUNDING)
        self._costs_of_bits = self._of_bits(np.where(self.allowed, costs.own, 0.0))
        self._group = np.full(self.n_bits, -1)
        self._group[self.bit_of] = costs.group
        self._shared = np.append(costs.shared, 0.0)  # the last is for bits without a group
        self._maxima = np.array([limits.max_features or np.inf, max_cost])
        self.max_ones = self.n_bits
        if limits.given:
            fullest = self._fill(self._cheapest_first()[None])
            self._refuse_impossible(fullest)
            self.max_ones = int(np.count_nonzero(fullest))

    def columns(self, X: Mask) -> Mask:
        """Return the feature masks of strings, shape (n, n_features)."""
        return X[:, self.bit_of] & self.allowed if self.by_group else X

    def bits(self, feature_mask: Mask) -> Mask:
        """Return strings (n, n_bits) with the bits of all features of each row."""
        if not self.by_group:
            return feature_mask
        return feature_mask @ np.eye(self.n_bits, dtype=bool)[self.bit_of]

    def of_mixed(self, X: Matrix, bits: Integers) -> Mask:
        """Return strings (n, n_bits) with these bits from the beginning of mixed strings, and zeros elsewhere."""
        strings = np.zeros((len(X), self.n_bits), bool)
        strings[:, bits] = X[:, : len(bits)] > 0.5
        return strings

    def keeps_limits(self, X: Mask) -> Mask:
        """Return whether each string keeps all limits, shape (n,)."""
        keep = np.all((X | ~self.included_bits) & (self.allowed_bits | ~X), axis=1)
        return keep & np.all(self._sums(X) <= self._maxima, axis=1)

    def check(self, X: Mask) -> None:
        """Raise a ValueError for the first string that breaks a limit; empty strings pass."""
        if not self.limits.given:
            return
        broken = ~self.keeps_limits(X) & X.any(axis=1)
        if broken.any():
            row = int(broken.argmax())
            raise ValueError(
                f"string {row} of {len(X)} {self._breach(X[row])}; give strings that keep the "
                "limits, or give the search the repair of operators()"
            )

    def repaired(self, X: Mask, random_state: Generator) -> Mask:
        """Return strings that keep the limits: the included features, then the others in random order while they fit.

        Strings that keep the limits already are not changed.
        """
        X = (X | self.included_bits) & self.allowed_bits
        broken = np.flatnonzero(~self.keeps_limits(X))
        if len(broken):
            priority = random_state.random((len(broken), self.n_bits))
            order = np.argsort(np.where(X[broken], priority, 2.0), axis=1, kind="stable")
            order = order[:, : np.count_nonzero(X[broken], axis=1).max()]
            is_set = np.take_along_axis(X[broken], order, axis=1)
            X[broken] = self._fill(np.where(is_set, order, -1))
        return X

    def repair(self, bits: Integers | None = None) -> Repair:
        """Return the repair of strings that break a limit; see `KeepLimits`."""
        return KeepLimits(self, bits) if self.limits.given else NoRepair()

    def _of_bits(self, values: Array) -> Vector:
        """Return the sums of the values of features over each bit, shape (n_bits,)."""
        return np.bincount(self.bit_of, values, self.n_bits).astype(float)

    def _paid(self, X: Mask) -> Mask:
        """Return the groups whose cost each string pays, shape (n, n_groups + 1); the last stands for no group."""
        paid = np.zeros((len(X), len(self._shared)), bool)
        rows, bits = np.nonzero(X)
        paid[rows, self._group[bits]] = True
        return paid

    def _sums(self, X: Mask) -> Matrix:
        """Return the number of features and the cost of each string, shape (n, 2)."""
        return np.column_stack(
            [X @ self._width, X @ self._costs_of_bits + self._paid(X) @ self._shared]
        )

    def _fill(self, order: Integers) -> Mask:
        """Set in each row the included bits, then each bit of `order` (n, n_steps) that still fits.

        −1 stands for no bit.
        """
        X = np.tile(self.included_bits, (len(order), 1))
        rows, sums, paid = np.arange(len(order)), self._sums(X), self._paid(X)
        for bit in order.T:
            group = self._group[bit]
            cost = self._costs_of_bits[bit] + np.where(paid[rows, group], 0.0, self._shared[group])
            added = np.column_stack([self._width[bit], cost])
            fits = (sums + added <= self._maxima).all(axis=1)
            fits &= (bit >= 0) & ~X[rows, bit] & self.allowed_bits[bit]
            X[rows[fits], bit[fits]] = True
            paid[rows[fits], group[fits]] = True
            sums[fits] += added[fits]
        return X

    def _cheapest_first(self) -> Integers:
        """Return the bits in ascending order of cost, in which nearly the largest number of them fits."""
        return np.lexsort((self._width, self._costs_of_bits + self._shared[self._group]))

    def _breach(self, bits: Mask) -> str:
        """Describe the first limit that a string breaks, as a clause."""
        names = self.data.feature_names
        lacking = np.flatnonzero(self.included & ~bits[self.bit_of])
        if lacking.size:
            return f"lacks feature {names[lacking[0]]!r}, which is included in every selection"
        barred = np.flatnonzero(~self.allowed_bits[self.bit_of] & bits[self.bit_of])
        if barred.size:
            return f"has feature {names[barred[0]]!r}, which is in exclude"
        size, cost = self._sums(bits[None])[0]
        if size > self._maxima[0]:
            return f"has {size:.0f} features, and max_features is {self.limits.max_features}"
        return f"costs {cost:g}, and max_cost is {self.limits.max_cost:g}"

    def _refuse_impossible(self, fullest: Mask) -> None:
        """Raise a ValueError if the included features alone, or the smallest ones, break a limit."""
        if fullest.any() and self.keeps_limits(fullest)[0]:
            return
        # Beyond a limit nothing is added to the included features.
        subject, bits = "include", self.included_bits
        if not bits.any():
            order = self._cheapest_first()
            bits = np.arange(self.n_bits) == order[self.allowed_bits[order]][0]
            subject = "the smallest group" if self.by_group else "the smallest feature"
        raise ValueError(f"no selection can keep the limits: {subject} alone {self._breach(bits)}")


class KeepLimits(Repair):
    """Repair that drops features at random until the limits are kept, and adds the included features.

    `bits` are those at the beginning of a mixed string; by default a string has all bits and nothing else.
    """

    def __init__(self, strings: FeatureStrings, bits: Integers | None = None) -> None:
        super().__init__()
        self.strings = strings
        self.bits = bits

    def _do(
        self, problem: Problem, X: Array, *args: object, random_state: Generator, **kwargs: object
    ) -> Array:
        if self.bits is None:
            return self.strings.repaired(X, random_state)
        strings = self.strings.of_mixed(X, self.bits)
        repaired = self.strings.repaired(strings, random_state)
        # An included feature may have no weight in a sum of rankers, so that its bit is free.
        free = self.strings.included_bits & ~strings
        X = X.copy()
        X[:, : len(self.bits)] = (repaired & ~free)[:, self.bits]
        return X


def _bits_of_groups(data: RankingData) -> Integers:
    """Return the bit of each feature if bits stand for groups, shape (n_features,)."""
    if data.costs is None or (data.costs.group < 0).all():
        raise ValueError(
            f"{data.name}: by_group needs groups of features: give Limits(groups=…) or "
            "RankingData(costs=FeatureCosts.of(…, groups=…)), or in a problem file "
            '[features] table = "features.csv" with a column group'
        )
    import pandas as pd

    group = data.costs.group
    return pd.factorize(np.where(group >= 0, group, -1 - np.arange(data.n_features)))[0]


def allowed_features(train: RankingData, limits: LimitsSection) -> tuple[Mask, Parameters]:
    """Return the mask of the features that may be selected, and the limits for data with these features alone.

    These limits name features, because columns change their numbers without the excluded ones. Raises a ValueError for
    unknown features, for features that are both included and excluded, and if no feature is left.

    >>> from moerank.data import RankingData
    >>> train = RankingData([[0.1, 0.5, 0.2]] * 2, [0, 1], qid=0, feature_names="abc")
    >>> mask, named = allowed_features(train, Limits(include=2, exclude=[0]))
    >>> mask.tolist(), named
    ([False, True, True], {'include': ('c',)})
    """
    names = train.feature_names
    allowed = ~column_mask(limits.exclude, names, "exclude")
    if not allowed.any():
        raise ValueError(f"exclude leaves none of the {len(names)} features")
    included = column_mask(limits.include, names, "include")
    both = np.flatnonzero(included & ~allowed)
    if len(both):
        raise ValueError(f"feature {names[both[0]]!r} is both in include and in exclude")
    limits_by_name = {name: limit for name, limit in limits.given.items() if name != "exclude"}
    if "include" in limits_by_name:
        limits_by_name["include"] = tuple(compress(names, included))
    return allowed, limits_by_name


def with_costs(train: RankingData, limits: Limits) -> RankingData:
    """Return the data with the costs and groups of the limits, or unchanged if there are none.

    Raises a ValueError for groups in addition to a `FeatureCosts`, which has its own, and for costs that do not fit.

    >>> from moerank.data import RankingData
    >>> data = RankingData([[0.1, 0.5]] * 2, [0, 1], qid=0)
    >>> with_costs(data, Limits(groups=["top", "top"], group_costs={"top": 3.0})).costs.total
    3.0
    """
    costs, groups, group_costs = limits.costs, limits.groups, limits.group_costs
    if costs is None and groups is None and group_costs is None:
        return train
    if isinstance(costs, FeatureCosts):
        if groups is not None or group_costs is not None:
            raise ValueError(
                "costs is a FeatureCosts, which has groups of its own: "
                "leave groups and group_costs out"
            )
        return train.with_costs(costs)
    names = train.feature_names
    numbers = {} if train.costs is None else train.costs.numbers
    if costs is None:
        costs = np.zeros(train.n_features) if train.costs is None else train.costs.own
    prices = in_column_order(costs, names, "costs", complete=True)
    groups = in_column_order(groups, names, "groups")
    return train.with_costs(FeatureCosts.of(prices, groups, group_costs, numbers))
