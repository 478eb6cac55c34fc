"""Fronts of any number of objectives: their points, the box they are measured in, and their quality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moerank.analysis.results import Results
from moerank.runs.result import RunResult
from moerank.statistics import hypervolume, igd_plus, joint_front

__all__ = ["front_box", "front_points", "front_quality"]

Array: TypeAlias = NDArray[np.float64]


def front_points(result: RunResult, objectives: Sequence[str] | None = None) -> Array:
    """Return the objectives of what a solver offers, on the training part, shape (n_members, n_objectives).

    Parameters
    ----------
    result : RunResult
    objectives : sequence of str, optional
        Their names; by default all of the result.
    """
    names = result.objectives if objectives is None else objectives
    return np.array([[member.objectives[name] for name in names] for member in result.front])


def front_box(results: Sequence[RunResult], objectives: Sequence[str]) -> tuple[Array, Array]:
    """Return the least and the largest value of each objective, the box in which fronts are compared.

    The number of features is between 0 and that of all, the error between 0 and 1. Results do not say how large other
    objectives can be: their box is that of the members of all `results`, and its sides 1 where all have one value.

    Parameters
    ----------
    results : sequence of RunResult, length ≥ 1
        Of one fold: those that are compared.
    objectives : sequence of str

    Returns
    -------
    ideal, reference : ndarray, shape (n_objectives,)
    """
    points = np.concatenate([front_points(result, objectives) for result in results])
    ideal, reference = points.min(axis=0), points.max(axis=0)
    reference = np.where(reference > ideal, reference, ideal + 1.0)
    known = {"features": float(len(results[0].feature_names)), "error": 1.0}
    for column, name in enumerate(objectives):
        if name in known:
            ideal[column], reference[column] = 0.0, known[name]
    return ideal, reference


def front_quality(results: Results) -> pd.DataFrame:
    """Return the quality of the front of each run, in the objectives that all of them have, on the training part.

    Parameters
    ----------
    results : Results
        Of one problem.

    Returns
    -------
    DataFrame
        One row per run: ``solver``, ``fold``, ``seed``, ``hypervolume``, as a share of the box of its fold (see
        `front_box`), and ``igd_plus`` to the joint front of all runs of the fold, each objective as a share of the
        box.
    """
    objectives = results.objectives
    folds = {fold: [result for result in results if result.fold == fold] for fold in results.folds}
    boxes = {fold: front_box(runs, objectives) for fold, runs in folds.items()}
    targets = {fold: joint_front([front_points(run, objectives) for run in runs]) for fold, runs in folds.items()}
    rows = []
    for result in results:
        ideal, reference = boxes[result.fold]
        points = front_points(result, objectives)
        rows.append(
            {
                "solver": result.solver,
                "fold": result.fold,
                "seed": result.seed,
                "hypervolume": hypervolume(points, reference=reference.tolist(), ideal=ideal.tolist()),
                "igd_plus": igd_plus(points, targets[result.fold], scale=(reference - ideal).tolist()),
            }
        )
    return pd.DataFrame(rows, columns=["solver", "fold", "seed", "hypervolume", "igd_plus"])
