"""Costs of features; the features of a group share a cost that is paid once."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from moerank.arrays import Integers, Mask, Vector
from moerank.checks import check_choice, unknown
from moerank.data.inputs import checked_numbers

# Share of `max_cost` by which a sum of costs may exceed it: sums in another order differ in their last bits.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class FeatureCosts:
    """The costs of a data set's features.

    Attributes
    ----------
    own : ndarray of float64, shape (n_features,)
        The cost of each feature by itself, ≥ 0, in any unit.
    group : ndarray of int64, shape (n_features,)
        The group of each feature, counted from 0; −1 for a feature without a group.
    shared : ndarray of float64, shape (n_groups,)
        The cost of each group, paid once however many of its features are used.
    names : tuple, length n_groups
        The names of the groups.
    numbers : dict of str to ndarray of float64, shape (n_features,)
        Further numbers of each feature by their name, such as latencies, for further objectives.

    Examples
    --------
    >>> costs = FeatureCosts.of([1.0, 2.0, 4.0], groups=["body", "body", None], group_costs={"body": 10})
    >>> costs.sums(np.array([[True, True, False], [False, False, True]])).tolist()
    [13.0, 4.0]
    """

    own: Vector
    group: Integers
    shared: Vector
    names: tuple[Hashable, ...]
    numbers: Mapping[str, Vector] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        costs: ArrayLike,
        groups: Sequence[Hashable] | None = None,
        group_costs: Mapping[Any, float] | None = None,
        numbers: Mapping[str, ArrayLike] | None = None,
    ) -> Self:
        """Check costs in the order of the features, and return them.

        Parameters
        ----------
        costs : array-like, shape (n_features,)
        groups : sequence, length n_features, optional
            A name for the group of each feature, None for no group.
        group_costs : mapping, optional
            The shared cost of groups by name, by default 0.
        numbers : mapping of str to array-like, shape (n_features,), optional
            Further numbers of each feature, any finite ones.

        Raises
        ------
        ValueError
            For costs that are negative, values that are not finite, a wrong number of groups or further numbers, and a
            group without a feature.
        """
        import pandas as pd

        size = np.size(costs)
        own = _checked("costs", costs, size)
        names = [None] * size if groups is None else list(groups)
        if len(names) != size:
            raise ValueError(f"groups has {len(names)} entries; give one for each of {size} costs")
        columns = {
            name: _checked(name, values, size, -np.inf) for name, values in (numbers or {}).items()
        }
        group, groups_in_order = pd.factorize(pd.Series(names, dtype=object))
        order = list(groups_in_order)
        prices = dict(group_costs or {})
        for name in prices:
            if name not in order:
                raise ValueError(f"group_costs: {unknown('group', str(name), map(str, order))}")
        prices_in_order = [prices.get(name, 0.0) for name in order]
        shared = _checked("group_costs", prices_in_order, len(order))
        return cls(own, group, shared, tuple(order), columns)

    def __len__(self) -> int:
        return len(self.own)

    @property
    def total(self) -> float:
        """The cost of all features."""
        return float(self.sums(np.ones((1, len(self)), bool))[0])

    def sums(self, masks: Mask, number: str = "cost") -> Vector:
        """Return the sum of a number over each set of features, shape (n_sets,), or the costs of the sets.

        The sets are the rows of `masks` (n_sets, n_features). Sums are rounded to 12 significant digits, so that equal
        costs compare as equal, whatever they are sums of. A ValueError for an unknown number. O(n_sets · n_features).
        """
        numbers = {**self.numbers, "cost": self.own}
        check_choice(numbers, number=number)
        sums = np.where(masks, numbers[number], 0.0).sum(axis=1)
        for index, shared in enumerate(self.shared if number == "cost" else ()):
            sums += shared * masks[:, self.group == index].any(axis=1)
        return np.array([float(f"{total:.12g}") for total in sums])

    def of_features(self, mask: Mask) -> Self:
        """Return the costs of the features in `mask`, shape (n_features,)."""
        numbers = {name: values[mask] for name, values in self.numbers.items()}
        return replace(self, own=self.own[mask], group=self.group[mask], numbers=numbers)


def _checked(name: str, values: ArrayLike, size: int, minimum: float = 0) -> Vector:
    """Return finite numbers from a minimum on as a read-only array, shape (size,)."""
    prices = checked_numbers(
        values,
        size,
        name,
        lambda numbers: (numbers >= minimum) & np.isfinite(numbers),
        "costs are finite numbers from 0 on" if minimum == 0 else "it must be finite",
    ).copy()
    prices.setflags(write=False)
    return prices
