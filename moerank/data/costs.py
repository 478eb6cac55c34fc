"""Costs of features; the features of a group share a cost that is paid once."""

import csv
import io
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moerank.checks import unknown
from moerank.data.inputs import doubles

COLUMNS = ("name", "cost", "group", "group_cost")  # of a table of costs; the first two are required

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

    Examples
    --------
    >>> costs = FeatureCosts.of([1.0, 2.0, 4.0], groups=["body", "body", None], group_costs={"body": 10})
    >>> costs.sums(np.array([[True, True, False], [False, False, True]])).tolist()
    [13.0, 4.0]
    """

    own: NDArray[np.float64]
    group: NDArray[np.int64]
    shared: NDArray[np.float64]
    names: tuple[Hashable, ...]

    @classmethod
    def of(
        cls,
        costs: ArrayLike,
        groups: Sequence[Hashable] | None = None,
        group_costs: Mapping[Any, float] | None = None,
    ) -> Self:
        """Check costs in the order of the features, and return them.

        Parameters
        ----------
        costs : array-like, shape (n_features,)
        groups : sequence, length n_features, optional
            A name for the group of each feature, None for no group.
        group_costs : mapping, optional
            The shared cost of groups by name, by default 0.

        Raises
        ------
        ValueError
            For costs that are negative or not finite, a wrong number of groups, and a group without a feature.
        """
        own = _checked("costs", costs)
        names = [None] * len(own) if groups is None else list(groups)
        if len(names) != len(own):
            raise ValueError(
                f"groups has {len(names)} entries, but costs has {len(own)}; give one for each feature"
            )
        import pandas as pd

        group, groups_in_order = pd.factorize(pd.Series(names, dtype=object))
        order = list(groups_in_order)
        prices = dict(group_costs or {})
        for name in prices:
            if name not in order:
                raise ValueError(
                    f"group_costs: {unknown('group', str(name), list(map(str, order)))}"
                )
        return cls(
            own,
            group,
            _checked("group_costs", [prices.get(name, 0.0) for name in order]),
            tuple(order),
        )

    def __len__(self) -> int:
        return len(self.own)

    @property
    def total(self) -> float:
        """The cost of all features."""
        return float(self.sums(np.ones((1, len(self)), np.bool_))[0])

    def sums(self, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the cost of each set of features, shape (n_sets,), for the rows of `masks` (n_sets, n_features).

        Sums are rounded to 12 significant digits, so that equal costs compare as equal, whatever they are sums of.
        O(n_sets · n_features).
        """
        costs = np.where(masks, self.own, 0.0).sum(axis=1)
        for number, shared in enumerate(self.shared):
            costs += shared * masks[:, self.group == number].any(axis=1)
        return np.array([float(f"{cost:.12g}") for cost in costs])

    def of_features(self, mask: NDArray[np.bool_]) -> Self:
        """Return the costs of the features in `mask`, shape (n_features,)."""
        return replace(self, own=self.own[mask], group=self.group[mask])


def known_costs(costs: FeatureCosts | None, name: str, what: str) -> FeatureCosts:
    """Return the costs of the data called `name`; raise a ValueError if `what` needs them and there are none."""
    if costs is None:
        remedy = (
            "give RankingData(…, costs=…) or Limits(costs=…), or [features] table in a problem file"
        )
        raise ValueError(f"{name}: {what} needs to know what the features cost: {remedy}")
    return costs


def read_cost_table(
    text: str, name: str, feature_names: Sequence[str], other: float | None = None
) -> FeatureCosts:
    r"""Read a table of costs: CSV with the columns name, cost and, if there are groups, group and group_cost.

    `name` is the name of the table in messages. Every feature of the data has a row, in any order, or costs `other`. A
    ValueError names other columns, and a feature that is unknown, there twice or without a row, whose cost is no number
    from 0 on, or whose group has two costs.
    """
    reader = csv.reader(io.StringIO(text), strict=True, skipinitialspace=True)
    try:
        (_, head), *rows = [(reader.line_num, row) for row in reader if row] or [(1, [""])]
    except csv.Error as error:
        raise ValueError(f"{name}, line {reader.line_num}: not a CSV file: {error}") from None
    if tuple(head) not in (COLUMNS[:2], COLUMNS[:3], COLUMNS):
        raise ValueError(
            f"{name}: the columns must be {', '.join(COLUMNS)}; the last two are optional"
        )
    for line, row in rows:
        if len(row) != len(head):
            raise ValueError(
                f"{name}, line {line}: {len(row)} values, but {len(head)} columns; give one for each"
            )
    import pandas as pd

    table = pd.DataFrame([row for _, row in rows], columns=head).reindex(
        columns=COLUMNS, fill_value=""
    )
    table = table.apply(lambda column: column.astype(str).str.strip()).set_index("name")
    costs, prices = (
        pd.to_numeric(table[column], errors="coerce") for column in ("cost", "group_cost")
    )
    priced, group = table["group_cost"] != "", table["group"]
    wrong = {
        "is not a feature of the data": ~table.index.isin(feature_names),
        "has two rows": table.index.duplicated(),
        "has a cost that is not a number from 0 on": ~costs.between(0, np.inf, inclusive="left"),
        "has a group_cost without a group": priced & (group == ""),
        "has a group_cost that is not a number from 0 on": priced
        & ~prices.between(0, np.inf, inclusive="left"),
        "is in a group with two costs": prices.groupby(group).transform("nunique") > 1,
    }
    lacking = pd.Index([] if other is not None else feature_names).difference(
        table.index, sort=False
    )
    for fault, features in {
        **{what: table.index[mask] for what, mask in wrong.items()},
        "has no row": lacking,
    }.items():
        if len(features):
            raise ValueError(
                f"{name}: {features[0]!r} {fault}; give each feature one row with its cost"
            )
    costs = costs.astype(float).reindex(feature_names, fill_value=other)
    group = group.reindex(feature_names, fill_value="")
    return FeatureCosts.of(
        costs, [entry or None for entry in group], prices[priced].groupby(group).first().to_dict()
    )


def _checked(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return costs as a read-only array."""
    prices = doubles(values, name).copy()
    if prices.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not shape {prices.shape}")
    bad = np.flatnonzero(~((prices >= 0) & np.isfinite(prices)))
    if len(bad):
        raise ValueError(
            f"{name}: entry {bad[0]} is {prices[bad[0]]}; costs are finite numbers from 0 on"
        )
    prices.setflags(write=False)
    return prices
