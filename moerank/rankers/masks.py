"""The masks with which a search asks a ranker for a whole population."""

from __future__ import annotations

import numpy as np

from moerank.data import RankingData
from moerank.rankers.arguments import Mask

__all__ = ["read_features", "read_masks"]


def read_masks(
    train: RankingData, pair_mask: Mask | None, feature_mask: Mask | None
) -> tuple[Mask | None, Mask | None, Mask]:
    """Check the masks of a population and say what each individual has of its own.

    Returns
    -------
    subset : ndarray of bool, shape (n_pairs,), or None
        The pairs shared by all individuals; None where all pairs are.
    pairs : ndarray of bool, shape (n_individuals, n_pairs), or None
        Each individual's own pairs.
    features : ndarray of bool, shape (n_individuals, n_features)

    Raises
    ------
    ValueError
        For a wrong shape or type, an individual without a feature or without a pair, and values too large to train on;
        the message names the row.
    """
    train.require_pairs()
    train.require_moderate_values()
    pair_mask = _checked_mask(pair_mask, "pair_mask", "pair", train.n_pairs)
    feature_mask = _checked_mask(feature_mask, "feature_mask", "feature", train.n_features)
    if feature_mask is None:
        feature_mask = np.ones(train.n_features, bool)
    subset = pair_mask if pair_mask is not None and pair_mask.ndim == 1 and not pair_mask.all() else None
    pairs = pair_mask if pair_mask is not None and pair_mask.ndim == 2 else None
    if feature_mask.ndim == 1:
        feature_mask = np.tile(feature_mask, (1 if pairs is None else len(pairs), 1))
    if pairs is not None and len(pairs) != len(feature_mask):
        raise ValueError(f"pair_mask has {len(pairs)} rows but feature_mask has {len(feature_mask)}; give one each")
    return subset, pairs, feature_mask


def read_features(train: RankingData, feature_mask: Mask | None, unit_mask: Mask) -> Mask:
    """Return the features of each individual whose documents or queries `unit_mask` keeps; errors as in `read_masks`.

    Returns
    -------
    ndarray of bool, shape (n_individuals, n_features)
        Without a `feature_mask` all features, in a row for each of `unit_mask`, or one if that has no first axis.
    """
    features = read_masks(train, None, feature_mask)[2]
    return features if feature_mask is not None else features.repeat(len(np.atleast_2d(unit_mask)), axis=0)


def _checked_mask(mask: Mask | None, name: str, thing: str, width: int) -> Mask | None:
    if mask is None:
        return None
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(f"{name} must be an array of bool, not of {mask.dtype}")
    if mask.ndim not in (1, 2) or mask.shape[-1] != width:
        raise ValueError(f"{name} must have shape (n_individuals, {width}) or ({width},), not {mask.shape}")
    for number, row in enumerate(np.atleast_2d(mask)):  # row by row, any() stops at the first bit that is set
        if not row.any():
            raise ValueError(f"{name}: row {number} selects no {thing}; every individual needs at least one")
    return mask
