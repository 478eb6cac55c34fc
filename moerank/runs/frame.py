"""Results of runs as one table of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from moerank.runs.result import PARTS, RunResult

__all__ = ["results_frame"]


def results_frame(results: Iterable[RunResult], *, members: bool = False) -> pd.DataFrame:
    """Return one row per run, or one per member of the front of each run.

    Columns: ``problem``, ``fold``, ``solver`` (its label), ``seed``, for members ``member`` (from 1, as in front.csv)
    and ``chosen``, then ``n_features``, the metrics of the ranker as ``train NDCG@10`` and so on, its objectives beyond
    features and error by their names, ``tuning seconds`` and ``training seconds`` of the processor. Of the metrics
    those of the tables come first; then NDCG and precision to each of the ranks 1 to 10, MAP and MeanNDCG, which
    results of earlier versions do not have.

    Parameters
    ----------
    results : iterable of RunResult
    members : bool, default False
        A row for each member of the front instead of the chosen one alone.
    """
    return pd.DataFrame(
        [
            _row(result, number, members=members)
            for result in results
            for number in (range(len(result.front)) if members else [result.chosen])
        ]
    )


def _row(result: RunResult, number: int, *, members: bool) -> dict[str, Any]:
    member, seconds = result.front[number], result.times["processor"]
    return {
        "problem": result.problem,
        "fold": result.fold,
        "solver": result.solver,
        "seed": result.seed,
        **({"member": number + 1, "chosen": number == result.chosen} if members else {}),
        "n_features": len(member.features),
        **{f"{part} {name}": value for part in PARTS for name, value in member.scores[part].items()},
        **{name: member.objectives[name] for name in result.further_objectives},
        "tuning seconds": seconds["tuning"],
        "training seconds": seconds["solver"],
        **{f"{part} {name}": value for part, means in member.further.items() for name, value in means.items()},
    }
