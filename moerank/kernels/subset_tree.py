"""Best subsets of every size for ridge regression, by leaps and bounds (Furnival and Wilson, 1974).

Units of one or more features are removed as a whole. A node of the tree is a set of units. Some of them are fixed; the
others are removable, and ordered by the rise of the loss without each of them alone. Child i fixes the units before i
and removes unit i.

M holds the rows and columns of A⁻¹ that belong to removable units, w their weights. The loss rises by wᵣᵀ M_RR⁻¹ wᵣ
without the rows R, and with L Lᵀ = M_RR and V = L⁻¹ M_R the other rows become M − VᵀV, and w − Vᵀ L⁻¹ wᵣ, as another
column of M. Fixed units need no rows, so nodes become cheaper with their depth.
"""

from typing import NamedTuple

import numpy as np

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.kernels.compiled import kernel

# A subset is better only if its loss is lower by more than this share.
TOLERANCE = 1e-9


class Units(NamedTuple):
    """Units of features, and limits on the sums of their prices."""

    begin: Integers  # (n_units + 1,), where the features of each unit begin
    share: Vector  # (n_features,), A − diag(share) is positive semidefinite
    prices: Matrix  # (n_limits, n_units)
    group: Integers  # (n_units,), groups whose shared price the last limit counts once
    shared: Vector  # (n_groups,)
    limits: Vector  # (n_limits,)


class Tree(NamedTuple):
    """The path from the root to the present node; a level is a node, the first axis of the arrays."""

    M: Matrix  # (n_levels, n_rows + 1, n_rows + 1), after the rows of a node its w as a column
    units: Integers  # (n_levels, n_units), the removable ones by falling rise
    begin: Integers  # (n_levels, n_units + 1), where their rows begin
    rise: Matrix  # (n_levels, n_units), of the loss without each of them
    loss: Vector  # (n_levels,)
    counts: Integers  # (n_levels, 3): removable units, next child, fixed units
    included: Integers  # (n_units,), the fixed units
    level: Integers  # (1,), −1 at the end


class Incumbents(NamedTuple):
    """The best subset so far of each number of units."""

    loss: Vector  # (n_units + 1,), of the best subset so far
    bound: Vector  # (n_units + 1,), a lower bound on the losses in the parts of the tree that were not searched
    subset: Mask  # (n_units + 1, n_units)


@kernel
def grow_tree(
    tree: Tree, units: Units, best: Incumbents, low: int, high: int, n_nodes: int, close: bool
) -> int:
    """Search up to `n_nodes` more nodes, depth first, and return their number.

    The search does not go below a node if no subset of `low` to `high` units there can be better than the best one so
    far. A removal of t units raises the loss at least by the t-th smallest rise of a single one, and by the sum of the
    t smallest Σ share · w². With `close` it goes below no node, and records lower bounds on the losses in the rest of
    the tree.

    O(n_rows²) for a node that has children, O(n_rows · log(n_rows)) for any other.
    """
    n_units, widest = len(units.group), 0
    for unit in range(n_units):  # np.diff takes three seconds to compile
        widest = max(widest, units.begin[unit + 1] - units.begin[unit])
    V, block = np.empty((widest, tree.M.shape[2])), np.empty((widest, widest + 1))
    rise, sums = np.empty(n_units), np.empty(n_units)
    level, count = tree.level[0], 0
    while level >= 0 and (close or count < n_nodes):
        n, i, n_kept = tree.counts[level, 0], tree.counts[level, 1], tree.counts[level, 2]
        if i < 0:
            level -= 1
            continue
        tree.counts[level, 1] -= 1
        count += 1
        size, n_included, n_left = n_kept + n - 1, n_kept + i, n - 1 - i
        if size < low:
            continue
        M, begins = tree.M[level], tree.begin[level]
        loss = tree.loss[level] + tree.rise[level, i]
        for a in range(i):
            tree.included[n_kept + a] = tree.units[level, a]
        free = tree.units[level, i + 1 : n]
        room = room_for(free, tree.included[:n_included], units)
        if room < 0:
            continue
        if loss < best.loss[size]:
            subset = np.concatenate((tree.included[:n_included], free))
            if room_for(free[:0], subset, units) == 0:
                best.loss[size] = loss
                best.subset[size] = False
                best.subset[size][subset] = True

        width, w_column = begins[i + 1] - begins[i], begins[n]
        for c in range(width):
            pivot = begins[i] + c
            for column in range(pivot, w_column + 1):
                value = M[pivot, column]
                for e in range(c):
                    value -= V[e, pivot] * V[e, column]
                V[c, column] = value
            root = np.sqrt(V[c, pivot])
            for column in range(pivot, w_column + 1):
                V[c, column] /= root
        for a in range(n_left):
            begin = begins[i + 1 + a]
            n_own = begins[i + 2 + a] - begin
            sums[a] = rise[a] = 0.0
            for c in range(n_own):
                for d in range(c, n_own + 1):
                    column = begin + d if d < n_own else w_column
                    value = M[begin + c, column]
                    for e in range(width):
                        value -= V[e, begin + c] * V[e, column]
                    if d == n_own:
                        sums[a] += units.share[units.begin[free[a]] + c] * value**2
                    for e in range(c):
                        value -= block[e, c] * block[e, d]
                    block[c, d] = np.sqrt(value) if d == c else value / block[c, c]
                rise[a] += block[c, n_own] ** 2

        sorted_rise, sorted_sums = np.sort(rise[:n_left]), np.sort(sums[:n_left])
        total, hopeful = 0.0, False
        for t in range(n_left):
            total += sorted_sums[t]
            k = size - 1 - t
            if k < low:
                break
            bound = loss + max(total, sorted_rise[t])
            if k <= min(high, n_included + room) and bound < best.loss[k] * (1.0 - TOLERANCE):
                hopeful = True
                if not close:
                    break
                best.bound[k] = min(best.bound[k], bound)
        if close or not hopeful:
            continue

        order = np.argsort(-rise[:n_left])
        level += 1
        tree.loss[level] = loss
        tree.counts[level] = n_left, n_left - 1, n_included
        for a in range(n_left):
            tree.units[level, a], tree.rise[level, a] = free[order[a]], rise[order[a]]
        n_rows = 0
        source = np.empty(w_column - begins[i + 1] + 1, np.int64)
        for a in range(n_left):
            tree.begin[level, a] = n_rows
            for row in range(begins[i + 1 + order[a]], begins[i + 2 + order[a]]):
                source[n_rows] = row
                n_rows += 1
        tree.begin[level, n_left], source[n_rows] = n_rows, w_column
        for a in range(n_rows):
            for b in range(a, n_rows + 1):
                value = M[source[a], source[b]]
                for e in range(width):
                    value -= V[e, source[a]] * V[e, source[b]]
                tree.M[level, a, b] = tree.M[level, b, a] = value
    tree.level[0] = level
    return count


@kernel
def room_for(free: Integers, included: Integers, units: Units) -> int:
    """Return the largest number of the units `free` that may stay with `included`; −1 if `included` exceed a limit."""
    room = len(free)
    for row in range(len(units.limits)):
        budget = units.limits[row]
        for unit in included:
            budget -= units.prices[row, unit]
        if row == len(units.limits) - 1:
            paid = np.zeros(len(units.shared), np.bool_)
            for unit in included:
                group = units.group[unit]
                budget -= 0.0 if paid[group] else units.shared[group]
                paid[group] = True
        if budget < 0.0:
            return -1
        fits = 0
        for price in np.sort(units.prices[row][free]):
            budget -= price
            fits += budget >= 0.0
        room = min(room, fits)
    return room
