"""Limits on selections of features: included and excluded features, largest number and largest cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from pymoo.core.problem import Problem
from pymoo.core.repair import NoRepair, Repair
from scipy.sparse import csr_array

from moerank.arrays import Array, Integers, Mask, Matrix, Vector
from moerank.checks import check_at_least, check_not_negative, unknown
from moerank.data import FeatureCosts, RankingData
from moerank.data.costs import ROUNDING, known_costs
from moerank.data.inputs import column_mask, in_column_order, listed

Features: TypeAlias = Sequence[int | str] | int | str
"""Features by their columns, counted from 0, or by their names."""

Costs: TypeAlias = FeatureCosts | Mapping[Any, float] | ArrayLike
"""Costs of features, in the order of the columns or by column or name."""

Groups: TypeAlias = Sequence[Any] | Mapping[Any, Any]
"""Groups of features, in the order of the columns or by column or name; any hashable objects."""

GroupCosts: TypeAlias = Mapping[Any, float]
"""Costs of groups."""


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
    at_most, at_least : mapping of group to int, optional
        Largest and smallest number of features of groups; the data must have groups.
    requires : mapping of feature to features, optional
        Features that a selection with the feature has, too.
    today, max_changes : sequence of int or str, int, optional
        Features in use today, and the largest number of features by which a selection differs from them: those that it
        adds and those that it drops.

    Examples
    --------
    >>> FeatureLimits(max_features=10, include="bm25", requires={"age": ["clicks"]}).given
    {'max_features': 10, 'include': ('bm25',), 'requires': {'age': ('clicks',)}}
    """

    max_features: int | None = None
    max_cost: float | None = None
    include: Features = ()
    at_most: Mapping[Any, int] | None = None
    at_least: Mapping[Any, int] | None = None
    requires: Mapping[Any, Features] | None = None
    today: Features = ()
    max_changes: int | None = None

    def __post_init__(self) -> None:
        check_at_least(1, or_none=True, max_features=self.max_features)
        check_at_least(0, or_none=True, max_changes=self.max_changes)
        check_not_negative(or_none=True, max_cost=self.max_cost)
        for name in ("at_most", "at_least"):
            for group, number in (getattr(self, name) or {}).items():
                check_at_least(0, **{f"{name} of group {group!r}": number})
            object.__setattr__(self, name, dict(getattr(self, name) or {}) or None)
        for name in ("include", "today"):
            object.__setattr__(self, name, listed(getattr(self, name)))
        needs = {feature: listed(needed) for feature, needed in (self.requires or {}).items()}
        object.__setattr__(self, "requires", needs or None)
        if self.today and self.max_changes is None:
            raise ValueError("today needs max_changes, the largest number of features that differ from it")

    @classmethod
    def of(cls, arguments: object) -> Self:
        """Return the limits among the attributes of an object."""
        return cls(**{field.name: getattr(arguments, field.name) for field in fields(cls)})

    @property
    def given(self) -> dict[str, object]:
        """The limits that are set, by name."""
        return {name: limit for name, limit in vars(self).items() if limit not in (None, ())}

    @property
    def may_need_more(self) -> bool:
        """Whether a selection may break a limit because it lacks a feature other than those of `include`."""
        return bool(self.at_least or self.requires or self.today)


UNLIMITED = FeatureLimits()


@dataclass(frozen=True, eq=False)
class _Bound:
    """A sum over the ones of a string that is at most `most`; messages tell ``sign * sum + start``, then `rest`."""

    terms: Vector
    most: float
    found: str
    rest: str
    sign: int = 1
    start: int = 0


class FeatureStrings:
    """The bit strings that stand for feature subsets of some data, and the limits that they keep.

    With `by_group` a bit stands for all features of a group, or for a feature without a group; otherwise for one
    feature. A ValueError refuses limits that no string can keep, unknown features and groups, `max_cost` for data
    without costs, and limits of groups or `by_group` for data without groups.

    `bit_of` (n_features,) is the bit that stands for each feature, in the order of first features. `included`
    (n_features,) are the features that belong to every selection, with those that they require and, with `by_group`,
    their groups. `most_ones` ones fit when the smallest or cheapest bits are set first.

    All limits but those of `include` and `requires` are bounds of sums over the bits. The shared cost of a group is
    that of a mark, a further bit that each bit of the group requires.

    >>> from moerank.data import RankingData
    >>> data = RankingData([[0.1, 0.5, 0.2], [0.9, 0.4, 0.3]], [0, 1], costs=[1.0, 5.0, 3.0])
    >>> strings = FeatureStrings(data, FeatureLimits(max_cost=4.0, include=[2]))
    >>> strings.repaired(np.ones((1, 3), bool), np.random.default_rng(0)).tolist()
    [[True, False, True]]
    """

    def __init__(self, data: RankingData, limits: FeatureLimits = UNLIMITED, *, by_group: bool = False) -> None:
        self.data = data
        self.limits = limits
        self.by_group = by_group
        self.bit_of = _bits_of_groups(data) if by_group else np.arange(data.n_features)
        self.n_bits = int(self.bit_of.max()) + 1
        included = column_mask(limits.include, data.feature_names, "include")
        self._needs, self._needed = self._requirements()
        self.included_bits: Mask = self._implied(self._of_bits(included)[None] > 0)[0, : self.n_bits]
        self.included = self.included_bits[self.bit_of]
        self._bounds = list(self._limited_sums())
        self._most = np.array([bound.most for bound in self._bounds])
        # The last row is for the entries of `_needed` that stand for nothing.
        self._terms = np.zeros((self._needs.shape[1] + 1, len(self._bounds)))
        for number, bound in enumerate(self._bounds):
            self._terms[: len(bound.terms), number] = bound.terms
        self.most_ones = self.n_bits
        if limits.given:
            self._refuse_impossible()
            self._kept = self._filled(self._cheapest_first()[None])
            if not (self._kept.any() and self.keeps_limits(self._kept)[0]):
                self._kept = self._nearest(self._kept[0], np.ones(self.n_bits))
            self.most_ones = int(np.count_nonzero(self._kept))

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
        implied = self._implied(X)
        keep: Mask = np.all(X | ~self.included_bits, axis=1) & np.all(implied[:, : self.n_bits] == X, axis=1)
        return keep & np.all(implied @ self._terms[:-1] <= self._most, axis=1)

    def check(self, X: Mask) -> None:
        """Raise a ValueError for the first string that breaks a limit; empty strings pass."""
        broken = ~self.keeps_limits(X) & X.any(axis=1)
        if broken.any():
            row = int(broken.argmax())
            raise ValueError(
                f"string {row} of {len(X)} {self._breach(X[row])}; give strings that keep the limits, or "
                "the search the repair that operators() has"
            )

    def repaired(self, X: Mask, random_state: Generator, among: Mask | None = None) -> Mask:
        """Return strings that keep the limits: the included features, then the others in random order while they fit.

        Strings that keep the limits already are not changed. Bits that a limit needs come first, those of the string
        before others. Where this order leaves a limit broken, the string is a nearest one that keeps all limits, by
        integer programming. `among` (n_bits,) are the bits that may be set, by default all.
        """
        X = X | self.included_bits
        broken = np.flatnonzero(~self.keeps_limits(X))
        if len(broken):
            lots = random_state.random((len(broken), self.n_bits))
            order = np.argsort(np.where(X[broken], lots, 2.0), axis=1, kind="stable")
            order = order[:, : np.count_nonzero(X[broken], axis=1).max()]
            order = np.where(np.take_along_axis(X[broken], order, axis=1), order, -1)
            allowed = np.ones(self.n_bits, np.bool_) if among is None else among | self.included_bits
            wanted, X[broken] = X[broken], self._filled(order, lots, allowed)
            for row in np.flatnonzero(~self.keeps_limits(X[broken])) if self.limits.may_need_more else ():
                X[broken[row]] = self._nearest(wanted[row], 1 + lots[row], allowed)[0]
        return X

    def repair(self, used: Integers | None = None) -> Repair:
        """Return the repair of strings that break a limit; see `KeepLimits`."""
        return KeepLimits(self, used) if self.limits.given else NoRepair()

    def _requirements(self) -> tuple[csr_array, Integers]:
        """Return what each bit requires, itself included: as a matrix, and as rows that end in entries for nothing.

        Both count the marks of groups after the bits.
        """
        names, group = self.data.feature_names, np.full(self.n_bits, -1)
        pairs = [
            (bit, needed)
            for feature, features in (self.limits.requires or {}).items()
            for bit in self.bit_of[column_mask([feature], names, "requires")]
            for needed in self.bit_of[column_mask(features, names, f"requires of feature {feature!r}")]
        ]
        n_groups = 0
        if self.limits.max_cost is not None:
            costs = known_costs(self.data.costs, self.data.name, "max_cost")
            n_groups = len(costs.shared)
            group[self.bit_of] = costs.group
            pairs += [(bit, self.n_bits + group[bit]) for bit in np.flatnonzero(group >= 0)]
        n_all = self.n_bits + n_groups
        starts, ends = np.array([*pairs, *zip(range(n_all), range(n_all), strict=True)]).T
        direct = csr_array((np.ones(len(starts), np.float32), (starts, ends)), (n_all, n_all))
        needs = direct
        while (further := (needs @ direct).sign()).nnz > needs.nnz:
            needs = further
        needs = needs[: self.n_bits].tocsr()
        needs.sort_indices()
        counts = np.diff(needs.indptr)
        needed = np.full((self.n_bits, counts.max()), n_all)
        needed[np.arange(counts.max()) < counts[:, None]] = needs.indices
        return needs, needed

    def _limited_sums(self) -> Iterator[_Bound]:
        """Yield the bounds of sums over the bits, and over the marks of groups after them."""
        limits, data = self.limits, self.data
        if limits.max_features is not None:
            most = limits.max_features
            rest = f", and max_features is {most}"
            yield _Bound(self._of_bits(np.ones(data.n_features)), most, "has {:.0f} features", rest)
        if limits.max_cost is not None:
            costs = known_costs(data.costs, data.name, "max_cost")
            terms = np.append(self._of_bits(costs.own), costs.shared)
            rest = f", and max_cost is {limits.max_cost:g}"
            yield _Bound(terms, limits.max_cost * (1 + ROUNDING), "costs {:g}", rest)
        for name, sign in (("at_most", 1), ("at_least", -1)):
            for group, number in (getattr(limits, name) or {}).items():
                terms = self._of_bits(_group_mask(data, group, name))
                rest = f" of group {group!r}, and {name} is {number}"
                yield _Bound(sign * terms, sign * number, "has {:.0f} features", rest, sign)
        if limits.max_changes is not None:
            today = column_mask(limits.today, data.feature_names, "today")
            n_today, rest = int(np.count_nonzero(today)), f", and max_changes is {limits.max_changes}"
            terms, found = self._of_bits(np.where(today, -1, 1)), "differs from today in {:.0f} features"
            yield _Bound(terms, limits.max_changes - n_today, found, rest, start=n_today)

    def _of_bits(self, values: Array) -> Vector:
        """Return the sums of the values of features over each bit, shape (n_bits,)."""
        return np.bincount(self.bit_of, values, self.n_bits).astype(np.float64)

    def _implied(self, X: Mask) -> Mask:
        """Return the strings with all that their ones require, and with the marks of groups."""
        if self._needed.shape[1] == 1:
            return X
        implied: Mask = X.astype(np.float32) @ self._needs > 0
        return implied

    def _breach(self, bits: Mask) -> str:
        """Say which limit a string breaks."""
        names = self.data.feature_names
        if (lacking := np.flatnonzero(self.included & ~bits[self.bit_of])).size:
            return f"lacks feature {names[lacking[0]]!r}, which is included in every selection"
        implied = self._implied(bits[None])[0]
        sums = implied @ self._terms[:-1]
        for bound, value in zip(self._bounds, sums, strict=True):
            if value > bound.most:
                return bound.found.format(bound.sign * value + bound.start) + bound.rest
        lacking = np.flatnonzero((implied[: self.n_bits] & ~bits)[self.bit_of])
        return f"lacks feature {names[lacking[0]]!r}, which another of its features requires"

    def _filled(self, order: Integers, lots: Matrix | None = None, allowed: Mask | None = None) -> Mask:
        """Return for each row the included bits, and those of `order` (n, n_steps) that fit one after the other.

        A bit comes with all that it requires; −1 stands for no bit. Bits that bring a broken limit nearer come first,
        those of `order` before the others that are `allowed`, by `lots`.
        """
        X = np.zeros((len(order), len(self._terms)), np.bool_)
        X[:, :-1] = self._implied(self.included_bits[None])
        X[:, -1] = True
        rows = np.arange(len(order))[:, None]
        sums = X @ self._terms
        helpful = (self._terms[self._needed] < 0).any(axis=(1, 2)) & (True if allowed is None else allowed)
        n_helping = int(np.count_nonzero(helpful))
        if n_helping:
            later = np.ones((len(order), self.n_bits + 1))
            later[rows, order] = 0.0
            places = np.where(helpful, later[:, :-1] + (0.0 if lots is None else lots), 3.0)
            first = np.argsort(places, axis=1, kind="stable")[:, :n_helping]
            # What a limit keeps out at first may fit once the others are in.
            order = np.hstack((first, order, order))
        for step, bit in enumerate(order.T):
            needed = self._needed[bit]
            further = np.where(X[rows, needed][..., None], 0.0, self._terms[needed]).sum(axis=1)
            fits = (bit >= 0) & (sums + further <= np.maximum(self._most, sums)).all(axis=1)
            if step < n_helping:
                fits &= ((further < 0) & (sums > self._most)).any(axis=1)
            X[rows[fits], needed[fits]] = True
            sums[fits] += further[fits]
        return X[:, : self.n_bits]

    def _nearest(self, bits: Mask, weights: Vector, allowed: Mask | None = None) -> Mask:
        """Return the string (1, n_bits) that keeps the limits with the least sum of `weights` over bits that differ.

        A ValueError says that there is none.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp  # half a second that few need

        n_all = self._needs.shape[1]
        pairs = self._needs.tocoo()
        each = np.arange(pairs.nnz)
        without = csr_array((np.repeat([1.0, -1.0], pairs.nnz), (np.tile(each, 2), np.append(pairs.row, pairs.col))))
        without.resize(pairs.nnz, n_all)
        most = np.ones(n_all)
        most[: self.n_bits] = True if allowed is None else allowed
        least = np.append(self.included_bits, np.zeros(n_all - self.n_bits))
        some = (np.arange(n_all) < self.n_bits).astype(float)
        found = milp(
            np.append(weights * np.where(bits, -1, 1), np.zeros(n_all - self.n_bits)),
            integrality=np.ones(n_all),
            bounds=Bounds(least, most),
            constraints=[
                LinearConstraint(self._terms[:-1].T, ub=self._most),
                LinearConstraint(without, ub=0),
                LinearConstraint(some, lb=1),
            ],
        )
        if found.x is None:
            raise ValueError(
                f"no selection can keep the limits {', '.join(self.limits.given)} together; loosen one of them"
            )
        nearest = found.x[None, : self.n_bits] > 0.5
        # The tolerance of the solver is coarser than that of the limits.
        return nearest if self.keeps_limits(nearest)[0] else self._kept

    def _cheapest_first(self) -> Integers:
        """Return the bits in an order in which nearly the largest number of them fits."""
        costs = self.data.costs or FeatureCosts.of(np.zeros(self.data.n_features))
        own, width = self._of_bits(costs.own), self._of_bits(np.ones(len(self.bit_of)))
        if self.limits.max_cost is None:
            return np.lexsort((own, width))
        group = np.full(self.n_bits, -1)
        group[self.bit_of] = costs.group
        return np.lexsort((width, own + np.append(costs.shared, 0.0)[group]))

    def _refuse_impossible(self) -> None:
        """Raise a ValueError if the included features alone, or the smallest ones, break a limit for good."""
        if self.limits.may_need_more:
            return
        if self.included.any():
            if not self.keeps_limits(self.included_bits[None])[0]:
                raise ValueError(f"no selection can keep the limits: include alone {self._breach(self.included_bits)}")
            return
        singles = np.eye(self.n_bits, dtype=np.bool_)
        if not self.keeps_limits(singles).any():
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
        used = np.isin(np.arange(self.strings.n_bits), self.used)
        whole[:, self.used] = X[:, : len(self.used)] > 0.5
        kept = self.strings.repaired(whole, random_state, used)
        # An included feature may have no weight in a sum of rankers, so that its bit is free.
        free = self.strings.included_bits & ~whole
        X = X.copy()
        X[:, : len(self.used)] = (kept & ~free)[:, self.used]
        return X


def _grouped_costs(data: RankingData, what: str) -> FeatureCosts:
    """Return the costs of data; raise a ValueError if `what` needs groups and there are none."""
    if data.costs is None or (data.costs.group < 0).all():
        raise ValueError(
            f"{data.name}: {what} needs groups of features: give MOFSRank(groups=…) or RankingData(costs="
            'FeatureCosts.of(…, groups=…)), or in a problem file [features] table = "features.csv" with a column group'
        )
    return data.costs


def _group_mask(data: RankingData, group: object, what: str) -> Mask:
    """Return the features of a group, shape (n_features,); raise a ValueError if `what` names an unknown group."""
    costs = _grouped_costs(data, what)
    if group not in costs.names:
        raise ValueError(f"{what}: {unknown('group', str(group), [str(name) for name in costs.names])}")
    return costs.group == costs.names.index(group)


def _bits_of_groups(data: RankingData) -> Integers:
    """Return the bit of each feature where bits stand for groups, shape (n_features,)."""
    costs = _grouped_costs(data, "by_group")
    keys = [("group", group) if group >= 0 else ("feature", column) for column, group in enumerate(costs.group)]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys])


def allowed_features(
    train: RankingData, limits: FeatureLimits, exclude: Features = (), only: Features = ()
) -> tuple[Mask, FeatureLimits]:
    """Return the mask of the features that may be selected, and the limits for data with these features alone.

    These limits name features, because columns have other numbers without the excluded ones. A feature of `today` that
    may not be selected is a change. Raises a ValueError if no feature is left, for an unknown feature, and for limits
    that need an excluded one.

    >>> from moerank.data import RankingData
    >>> train = RankingData([[0.1, 0.5, 0.2]] * 2, [0, 1], feature_names="abc")
    >>> kept, limits = allowed_features(train, FeatureLimits(include="c"), exclude=[0])
    >>> kept.tolist(), limits.include
    ([False, True, True], ('c',))
    """
    names = train.feature_names
    kept, reason = ~column_mask(exclude, names, "exclude"), "in exclude"
    if listed(only):
        kept, reason = kept & column_mask(only, names, "only"), "in exclude or not in only"
    if not kept.any():
        raise ValueError(f"exclude leaves none of the {column_mask(only, names, 'only').sum() or len(names)} features")

    def named(features: Features, where: str) -> tuple[str, ...]:
        return tuple(names[column] for column in np.flatnonzero(column_mask(features, names, where)))

    allowed = {name for name, one in zip(names, kept, strict=True) if one}
    included, today = named(limits.include, "include"), named(limits.today, "today")
    for name in included:
        if name not in allowed:
            raise ValueError(f"feature {name!r} is both in include and {reason}")
    requires = {}
    for feature, features in (limits.requires or {}).items():
        (name,), needed = named([feature], "requires"), named(features, f"requires of feature {feature!r}")
        if name in allowed:
            requires[name] = needed
            if lacking := [other for other in needed if other not in allowed]:
                raise ValueError(f"feature {name!r} requires {lacking[0]!r}, which is {reason}; exclude both of them")
    left = tuple(name for name in today if name in allowed)
    changes = limits.max_changes
    if changes is not None:
        changes -= len(today) - len(left)
        if changes < 0:
            raise ValueError(
                f"{len(today) - len(left)} features of today are {reason}, and max_changes is {limits.max_changes}"
            )
    return kept, replace(limits, include=included, requires=requires, today=left, max_changes=changes)


def with_costs(
    train: RankingData,
    costs: Costs | None = None,
    groups: Groups | None = None,
    group_costs: GroupCosts | None = None,
) -> RankingData:
    """Return the data with the costs and groups that `MOFSRank` is given; without any, the data themselves.

    Raises a ValueError for groups beside a `FeatureCosts`, which has groups itself, and for costs that do not fit.

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
