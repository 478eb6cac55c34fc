"""Tests between all pairs of solvers: by the queries they rank, and by the hypervolume that searches reach."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import ceil, log2

import numpy as np
import pandas as pd

from moerank.analysis.comparison import pooled
from moerank.analysis.results import Results
from moerank.statistics import compare_paired, holm, signed_rank_p

__all__ = ["fewest_cells", "hypervolume_pairs", "query_pairs", "standings"]

COLUMNS = ["solver", "other", "n", "difference", "error", "wins", "ties", "losses", "p", "holm"]


def query_pairs(results: Results, metric: str, part: str = "test") -> pd.DataFrame:
    """Compare all pairs of solvers, query by query over all folds that both have.

    Values of several seeds are averaged for each query first.

    Parameters
    ----------
    results : Results
        Of one problem.
    metric, part : str

    Returns
    -------
    DataFrame
        One row per pair, in the order of the study: ``solver``, ``other``, ``n`` queries, ``difference`` (solver minus
        other) and ``error`` of its mean, ``wins``, ``ties`` and ``losses`` of the solver in queries, ``p`` of the
        paired t test and ``holm``, p adjusted for all rows.

    Notes
    -----
    The rankers of a fold are trained on the same data: the tests speak of other queries for such rankers, and do not
    say how they would do with other training data. O(n_solvers² · n_queries).
    """
    values = results.query_values(metric, part)
    rows = []
    for solver, other in combinations(values, 2):
        shared = values[solver].keys() & values[other].keys()
        if shared:
            test = compare_paired(pooled(values[solver], shared), pooled(values[other], shared))
            rows.append({"solver": solver, "other": other, "n": test.wins + test.ties + test.losses, **test.__dict__})
    return _adjusted(rows)


def hypervolume_pairs(quality: pd.DataFrame, searches: Sequence[str], alpha: float = 0.05) -> pd.DataFrame:
    """Compare all pairs of searches by the hypervolume of their last fronts, over the cells that both have.

    A cell is a fold with a seed.

    Parameters
    ----------
    quality : DataFrame
        By `front_quality`, of one problem.
    searches : sequence of str
        Labels of solvers in it.
    alpha : float, default 0.05

    Returns
    -------
    DataFrame
        As `query_pairs`, with ``n`` cells and ``p`` of the signed-rank test. A pair with fewer than the `fewest_cells`
        for so many rows is not tested: its ``p`` and ``holm`` are NaN, and others are not adjusted for it.

    Notes
    -----
    Seeds of a fold share its data: the tests speak of other draws of the searches on these folds, not of other data.

    Examples
    --------
    >>> cells = {"fold": [1, 1, 1, 2, 2, 2], "seed": [0, 1, 2, 0, 1, 2]}
    >>> a = pd.DataFrame({"solver": "a", **cells, "hypervolume": [0.6, 0.7, 0.6, 0.5, 0.6, 0.5]})
    >>> b = pd.DataFrame({"solver": "b", **cells, "hypervolume": [0.5, 0.5, 0.3, 0.1, 0.1, -0.1]})
    >>> hypervolume_pairs(pd.concat([a, b]), ["a", "b"])[["n", "wins", "p", "holm"]].values.tolist()
    [[6.0, 6.0, 0.03125, 0.03125]]
    """
    values = quality.set_index(["solver", "fold", "seed"])["hypervolume"]
    common = {
        (solver, other): values.loc[solver].align(values.loc[other], join="inner")
        for solver, other in combinations(searches, 2)
    }
    common = {pair: cells for pair, cells in common.items() if len(cells[0])}
    needed = fewest_cells(len(common), alpha)
    rows = []
    for (solver, other), (first, second) in common.items():
        test = compare_paired(first, second)
        p = signed_rank_p(first, second) if len(first) >= needed else np.nan
        rows.append({"solver": solver, "other": other, "n": len(first), **test.__dict__, "p": p})
    return _adjusted(rows)


def fewest_cells(n_pairs: int, alpha: float = 0.05) -> int:
    """Return how many cells signed-rank tests of `n_pairs` need so that one can come down to `alpha`, adjusted by Holm.

    The least p value with n cells is 2^(1 − n), and the least of all is multiplied by the number of tests.

    Examples
    --------
    >>> fewest_cells(1), fewest_cells(10), fewest_cells(120)
    (6, 9, 13)
    """
    return 1 + ceil(log2(max(n_pairs, 1) / alpha))


def standings(pairs: pd.DataFrame, alpha: float = 0.05) -> dict[str, dict[str, list[str]]]:
    """Return for each solver which others it is shown to be better and worse than, and for which nothing is shown.

    Parameters
    ----------
    pairs : DataFrame
        By `query_pairs` or `hypervolume_pairs`.
    alpha : float, default 0.05
        The level of the adjusted p values.

    Returns
    -------
    dict
        By solver, then "better", "worse" and "undecided": the labels of the others that were tested against it.

    Examples
    --------
    >>> row = {"solver": "a", "other": "b", "difference": 0.1, "holm": 0.01}
    >>> standings(pd.DataFrame([row]))["b"]
    {'better': [], 'worse': ['a'], 'undecided': []}
    """
    names = dict.fromkeys([*pairs["solver"], *pairs["other"]])
    found: dict[str, dict[str, list[str]]] = {name: {"better": [], "worse": [], "undecided": []} for name in names}
    for pair in pairs.dropna(subset="holm").itertuples():
        shown = pair.holm <= alpha
        ahead = "better" if pair.difference > 0 else "worse"
        behind = "worse" if pair.difference > 0 else "better"
        found[pair.solver][ahead if shown else "undecided"].append(pair.other)
        found[pair.other][behind if shown else "undecided"].append(pair.solver)
    return found


def _adjusted(rows: list[dict[str, object]]) -> pd.DataFrame:
    """Return the rows with their p values adjusted for the number of tests."""
    frame = pd.DataFrame(rows, columns=COLUMNS)
    tested = frame["p"].notna()
    frame["holm"] = np.nan
    frame.loc[tested, "holm"] = holm(frame.loc[tested, "p"].to_numpy(float))
    return frame
