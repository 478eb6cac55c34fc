"""What `MOFSRank` is told of single features: which may be selected, which have to be, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moerank.data import FeatureCosts, RankingData
from moerank.data.columns import column_mask, in_column_order

__all__ = ["allowed_features", "with_costs"]


def allowed_features(
    train: RankingData, include: Sequence[int | str] | int | str, exclude: Sequence[int | str] | int | str
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Return the columns that are not excluded (n_features,), and the names of the included features.

    Names, because these have other columns where the excluded ones are gone.

    Raises
    ------
    ValueError
        If nothing is left, a feature is both, or one does not exist.

    Examples
    --------
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
    train: RankingData,
    costs: FeatureCosts | Mapping[Any, float] | ArrayLike | None = None,
    groups: Sequence[Any] | Mapping[Any, Any] | None = None,
    group_costs: Mapping[Any, float] | None = None,
) -> RankingData:
    """Return the data with costs and groups of their features; as they are where nothing is given.

    Parameters
    ----------
    train : RankingData
    costs, groups, group_costs
        See `MOFSRank`.

    Raises
    ------
    ValueError
        For groups beside a `FeatureCosts`, which has its own, and for what does not fit the features.

    Examples
    --------
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
