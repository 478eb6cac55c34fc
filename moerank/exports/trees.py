"""Trees as nested tables, which search engines read, from the flat lists of a forest."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from moerank.rankers.forest import Forest

__all__ = ["compact_json", "depths", "nested_trees"]

Node = dict[str, Any]


def nested_trees(trees: Forest, leaf: Callable[[int], Node], split: Callable[[int, Node, Node], Node]) -> list[Node]:
    """Return the root of each tree, with all that is below it.

    They are made from the leaves up, so that no depth is too much.

    Parameters
    ----------
    trees : Forest
    leaf : callable
        ``leaf(number)`` is the node of a leaf.
    split : callable
        ``split(number, left, right)`` is the node of a split above two nodes.

    Examples
    --------
    >>> forest = Forest(columns=(0,), thresholds=(0.5,), left=(-1,), right=(-2,), leaves=(0.0, 2.0), roots=(0,))
    >>> nested_trees(forest, lambda leaf: {"leaf": leaf}, lambda split, left, right: {"left": left, "right": right})
    [{'left': {'leaf': 0}, 'right': {'leaf': 1}}]
    """
    splits: dict[int, Node] = {}

    def node(number: int) -> Node:
        return splits.pop(number) if number >= 0 else leaf(-1 - number)

    for number in reversed(range(len(trees.columns))):
        splits[number] = split(number, node(trees.left[number]), node(trees.right[number]))
    return [node(root) for root in trees.roots]


def depths(trees: Forest) -> list[int]:
    """Return how many splits lie above each split."""
    depth = [0] * len(trees.columns)
    for number, below in enumerate(zip(trees.left, trees.right, strict=True)):
        for child in below:
            if child >= 0:
                depth[child] = depth[number] + 1
    return depth


def compact_json(values: Any) -> bytes:
    """Return the JSON text of trees, without spaces.

    Raises
    ------
    ValueError
        If a tree is so deep that no reader would take it.
    """
    try:
        return (json.dumps(values, separators=(",", ":"), allow_nan=False) + "\n").encode()
    except RecursionError:
        raise ValueError(
            "a tree is hundreds of splits deep, which no reader of JSON takes; train with fewer leaves"
        ) from None
