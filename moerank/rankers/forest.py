"""A forest of regression trees in flat lists: what scores by trees is stored and exported from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Strict

__all__ = ["Forest", "Integer", "Number", "check_entries"]

Matrix: TypeAlias = NDArray[np.float64]

Integer: TypeAlias = Annotated[int, Strict()]
Number: TypeAlias = Annotated[float, Strict()]
"""Strict, because pydantic would otherwise take "1" and true for numbers where these are read from JSON."""


@dataclass(frozen=True)
class Forest:
    """Regression trees, all in the same flat lists; the score of a document is the sum of the leaves it falls into.

    A split or leaf is named by one number: split s by s, leaf l by −1 − l.

    Attributes
    ----------
    columns : tuple of int, one per split
        The column of the table whose values it compares, from 0.
    thresholds : tuple of float, one per split
        A value that is at most the threshold goes left, a larger one right.
    left, right : tuple of int, one per split
        The splits or leaves below it; a split comes before those below it.
    leaves : tuple of float
        What each leaf adds to the score.
    roots : tuple of int, one per tree
        The split or leaf that each tree begins with, in the order in which the leaves are added up.

    Raises
    ------
    ValueError
        If the lists do not fit together, a value is not finite, or a split or leaf is not reached exactly once.

    Examples
    --------
    >>> forest = Forest(columns=(1,), thresholds=(0.5,), left=(-1,), right=(-2,), leaves=(0.0, 2.0), roots=(0,))
    >>> forest.scores(np.array([[9.0, 0.5], [9.0, 0.6]])).tolist()
    [0.0, 2.0]
    """

    # For reading from JSON.
    __pydantic_config__ = ConfigDict(extra="forbid")

    columns: tuple[Integer, ...]
    thresholds: tuple[Number, ...]
    left: tuple[Integer, ...]
    right: tuple[Integer, ...]
    leaves: tuple[Number, ...]
    roots: tuple[Integer, ...]

    def __post_init__(self) -> None:
        n_splits, n_leaves = len(self.columns), len(self.leaves)
        check_entries(n_splits, "split", thresholds=self.thresholds, left=self.left, right=self.right)
        check_entries(n_leaves, "leaf", leaves=self.leaves)
        if n_splits and min(self.columns) < 0:
            raise ValueError(f"columns count from 0, and {min(self.columns)} is none")
        for name in ("left", "right", "roots"):
            for place, child in enumerate(getattr(self, name)):
                if not -n_leaves <= child < n_splits:
                    raise ValueError(f"{name}[{place}] is {child}, which is no split and no leaf")
                if name != "roots" and 0 <= child <= place:
                    raise ValueError(f"{name}[{place}] is {child}, but a split must come before those below it")
        reached = Counter(self.left + self.right + self.roots)
        for child in range(-n_leaves, n_splits):
            if reached[child] != 1:
                what = f"split {child}" if child >= 0 else f"leaf {-1 - child}"
                raise ValueError(f"left, right and roots lead {reached[child]} times to {what}, and must do so once")

    def scores(self, X: Matrix) -> Matrix:
        """Return the scores (n_documents,) of the rows of a finite table; O(n_documents · n_trees · depth).

        The same documents score the same, whatever the others are.
        """
        columns, left, right = (np.array(values, np.int64) for values in (self.columns, self.left, self.right))
        thresholds, leaves = np.array(self.thresholds), np.array(self.leaves)
        scores = np.zeros(len(X))
        for root in self.roots:
            place = np.full(len(X), root)
            going = np.arange(len(X) if root >= 0 else 0)
            while len(going):
                split = place[going]
                is_left = X[going, columns[split]] <= thresholds[split]
                place[going] = np.where(is_left, left[split], right[split])
                going = going[place[going] >= 0]
            scores += leaves[-1 - place]
        return scores

    def over(self, columns: NDArray[np.int64]) -> Forest:
        """Return the same trees for a wider table, in which column c of this one is ``columns[c]``."""
        return replace(self, columns=tuple(columns[list(self.columns)].tolist()))


def check_entries(length: int, thing: str, **lists: Sequence[object]) -> None:
    """Raise a ValueError for a list without one entry per `thing`, `length` in all, or with one that is not finite."""
    for name, values in lists.items():
        if len(values) != length:
            raise ValueError(f"{name} must have one entry per {thing}, {length} in all, not {len(values)}")
        for place, value in enumerate(values):
            if isinstance(value, float) and not isfinite(value):
                raise ValueError(f"{name}[{place}] is {value}, and must be finite")
