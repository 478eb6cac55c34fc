"""Best subsets of every size for ridge regression, by leaps and bounds (Furnival and Wilson, 1974).

Features come in units of one or more, which are removed as a whole. A node of the tree is a set of units. It keeps some
of them for ever; the others, which may still go, are ordered by the rise of the loss without each of them alone. Child
i keeps the units before i for ever and loses unit i.

M are the rows and columns of A⁻¹ that belong to removable units, w their weights. The loss rises by wᵣᵀ M_RR⁻¹ wᵣ
without the rows R, and with L Lᵀ = M_RR and V = L⁻¹ M_R the other rows become M − VᵀV and w − Vᵀ L⁻¹ wᵣ. Units that a
node keeps for ever need no rows, so nodes get cheaper with their depth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.kernels.compiled import kernel

TOLERANCE = 1e-9
"""Share of a loss by which no other subset must be better to count as better."""


class Units(NamedTuple):
    """Units of features, and limits on the sums of their prices."""

    first: Integers  # (n_units + 1,), where the features of each unit begin
    share: Vector  # (n_features,), A − diag(share) is positive semidefinite
    prices: Matrix  # (n_limits, n_units)
    group: Integers  # (n_units,), groups whose shared price the last limit counts once
    shared: Vector  # (n_groups,)
    most: Vector  # (n_limits,)


class Tree(NamedTuple):
    """The path from the root to the present node; a level is a node, the first axis of the arrays."""

    M: Matrix  # (n_levels, n_rows, n_rows)
    w: Matrix  # (n_levels, n_rows)
    units: Integers  # (n_levels, n_units), the removable ones by falling rise
    first: Integers  # (n_levels, n_units + 1), where their rows begin
    rise: Matrix  # (n_levels, n_units), of the loss without each of them
    loss: Vector  # (n_levels,)
    counts: Integers  # (n_levels, 3): removable units, next child, units kept for ever
    kept: Integers  # (n_units,), the units kept for ever
    level: Integers  # (1,), −1 at the end


class Found(NamedTuple):
    """What is known of each number of units."""

    loss: Vector  # (n_units + 1,), of the best subset known
    bound: Vector  # (n_units + 1,), the least loss that parts of the tree may have which were not looked at
    subset: Mask  # (n_units + 1, n_units)


@kernel
def grow_tree(tree: Tree, units: Units, found: Found, low: int, high: int, n_nodes: int, close: bool) -> int:
    """Look at up to `n_nodes` more nodes, depth first, and return how many they were.

    The search does not go below a node if no subset of `low` to `high` units there can be better than the best one
    known. A removal of t units raises the loss at least by the t-th smallest rise of a single one, and by the sum of
    the t smallest Σ share · w². With `close` it goes below no node, and writes down what the rest of the tree may hold.

    O(n_rows²) for a node that has children, O(n_rows · log(n_rows)) for any other.
    """
    n_units, widest = len(units.group), np.diff(units.first).max()
    L, V, z = np.empty((widest, widest)), np.empty((widest, tree.w.shape[1])), np.empty(widest)
    block, part = np.empty((widest, widest)), np.empty(widest)
    rise, sums = np.empty(n_units), np.empty(n_units)
    level, count = tree.level[0], 0
    while level >= 0 and (close or count < n_nodes):
        n, i, n_kept = tree.counts[level, 0], tree.counts[level, 1], tree.counts[level, 2]
        if i < 0:
            level -= 1
            continue
        tree.counts[level, 1] -= 1
        count += 1
        size, kept, left = n_kept + n - 1, n_kept + i, n - 1 - i
        if size < low:
            continue
        M, w, first = tree.M[level], tree.w[level], tree.first[level]
        loss = tree.loss[level] + tree.rise[level, i]
        for a in range(i):
            tree.kept[n_kept + a] = tree.units[level, a]
        free = tree.units[level, i + 1 : n]
        room = _room(tree.kept[:kept], free, units)
        if room < 0:
            continue
        if loss < found.loss[size] and _room(np.concatenate((tree.kept[:kept], free)), free[:0], units) == 0:
            found.loss[size] = loss
            found.subset[size] = False
            for a in range(kept):
                found.subset[size, tree.kept[a]] = True
            for a in range(left):
                found.subset[size, free[a]] = True

        width = first[i + 1] - first[i]
        for c in range(width):
            for e in range(c + 1):
                L[c, e] = M[first[i] + c, first[i] + e]
        _factor(L, width)
        for c in range(width):
            total = w[first[i] + c]
            for e in range(c):
                total -= L[c, e] * z[e]
            z[c] = total / L[c, c]
            for row in range(first[i + 1], first[n]):
                total = M[first[i] + c, row]
                for e in range(c):
                    total -= L[c, e] * V[e, row]
                V[c, row] = total / L[c, c]
        for a in range(left):
            begin = first[i + 1 + a]
            own = first[i + 2 + a] - begin
            sums[a] = 0.0
            for c in range(own):
                part[c] = w[begin + c]
                for e in range(width):
                    part[c] -= V[e, begin + c] * z[e]
                sums[a] += units.share[units.first[free[a]] + c] * part[c] ** 2
                for d in range(c + 1):
                    block[c, d] = M[begin + c, begin + d]
                    for e in range(width):
                        block[c, d] -= V[e, begin + c] * V[e, begin + d]
            _factor(block, own)
            rise[a] = 0.0
            for c in range(own):
                for d in range(c):
                    part[c] -= block[c, d] * part[d]
                part[c] /= block[c, c]
                rise[a] += part[c] ** 2

        least, least_sums = np.sort(rise[:left]), np.sort(sums[:left])
        total, hopeful = 0.0, False
        for t in range(left):
            total += least_sums[t]
            k = size - 1 - t
            if k < low:
                break
            bound = loss + max(total, least[t])
            if k <= min(high, kept + room) and bound < found.loss[k] * (1.0 - TOLERANCE):
                hopeful = True
                if not close:
                    break
                found.bound[k] = min(found.bound[k], bound)
        if close or not hopeful:
            continue

        order = np.argsort(-rise[:left])
        level += 1
        tree.loss[level] = loss
        tree.counts[level, 0], tree.counts[level, 1], tree.counts[level, 2] = left, left - 1, kept
        n_rows = 0
        source = np.empty(first[n] - first[i + 1], np.int64)
        for a in range(left):
            tree.units[level, a], tree.rise[level, a] = free[order[a]], rise[order[a]]
            tree.first[level, a] = n_rows
            for row in range(first[i + 1 + order[a]], first[i + 2 + order[a]]):
                source[n_rows] = row
                n_rows += 1
        tree.first[level, left] = n_rows
        for a in range(n_rows):
            tree.w[level, a] = w[source[a]]
            for e in range(width):
                tree.w[level, a] -= V[e, source[a]] * z[e]
            for b in range(a + 1):
                value = M[source[a], source[b]]
                for e in range(width):
                    value -= V[e, source[a]] * V[e, source[b]]
                tree.M[level, a, b] = tree.M[level, b, a] = value
    tree.level[0] = level
    return count


@kernel
def _factor(L: Matrix, n: int) -> None:
    """Write the Cholesky factor of the first n rows and columns of a matrix in its place."""
    for i in range(n):
        for j in range(i + 1):
            for k in range(j):
                L[i, j] -= L[i, k] * L[j, k]
            L[i, j] = np.sqrt(L[i, j]) if i == j else L[i, j] / L[j, j]


@kernel
def _room(kept: Integers, free: Integers, units: Units) -> int:
    """Return the largest number of the units `free` that may fit beside `kept`; −1 if `kept` exceed a limit."""
    room = len(free)
    for row in range(len(units.most)):
        left = units.most[row]
        for unit in kept:
            left -= units.prices[row, unit]
        if row == len(units.most) - 1:
            paid = np.zeros(len(units.shared), np.bool_)
            for unit in kept:
                if not paid[units.group[unit]]:
                    paid[units.group[unit]] = True
                    left -= units.shared[units.group[unit]]
        if left < 0.0:
            return -1
        fits = 0
        for price in np.sort(units.prices[row][free]):
            left -= price
            if left < 0.0:
                break
            fits += 1
        room = min(room, fits)
    return room
