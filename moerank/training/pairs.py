"""The preference pairs that a population trains on, listed or counted as the data ask for, and their solution."""

from __future__ import annotations

from typing import TypeAlias

from moerank.arrays import Mask, Matrix
from moerank.data import RankingData
from moerank.training.counted import CountedPairs
from moerank.training.listed import ListedPairs
from moerank.training.masks import Masks
from moerank.training.pair_loss import UNIT, PairLoss, Target

Pairs: TypeAlias = ListedPairs | CountedPairs

LONGEST_LIST = 2_000_000
"""Number of pairs up to which they are listed unless individuals choose among them."""


def pairs_for(train: RankingData, masks: Masks, target: Target = UNIT, longest_list: int = LONGEST_LIST) -> Pairs:
    """Return the pairs of a data set that individuals share, or choose from.

    They are listed where individuals choose single pairs, or there are at most `longest_list`, and counted otherwise.
    """
    if masks.unit == "pair" and (masks.choose_units or train.n_pairs <= longest_list):
        return ListedPairs.of(train, masks.shared, target)
    return CountedPairs.of(train, target)


def solve_pairs(
    loss: PairLoss, pairs: Pairs, masks: Masks, C: float, *, tolerance: float, start: Matrix | None = None
) -> tuple[Matrix, Mask]:
    """Minimise ½ ‖w‖² + (C / p) Σ ℓ for the features and pairs of each individual; say where it is reached.

    Shapes (n_individuals, n_features) and (n_individuals,). `tolerance` bounds the relative error of each objective.
    Every individual begins at the minimum of a quadratic model for all features and the pairs that all share, unless
    `start` is given. The squared loss is its own model; that of the hinge is found by counting, but for listed subsets.
    """
    counted = loss.one_sided and pairs.everything
    model = (CountedPairs.of(pairs.data, pairs.target) if counted else pairs).model(loss, C)
    return pairs.solve_population(loss, C, model, masks, tolerance=tolerance, start=start)
