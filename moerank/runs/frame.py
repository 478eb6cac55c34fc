"""Results of runs as one table of numbers."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from moerank.runs.result import PARTS, RunResult

__all__ = ["results_frame"]


def results_frame(results: Iterable[RunResult]) -> pd.DataFrame:
    """Return one row per run.

    Columns: ``problem``, ``fold``, ``solver`` (its label), ``seed``, ``n_features``, the metrics of the chosen ranker
    as ``train NDCG@10`` and so on, its objectives beyond features and error by their names, ``tuning seconds`` and
    ``training seconds`` of the processor.
    """
    rows = []
    for result in results:
        best, seconds = result.best, result.times["processor"]
        rows.append(
            {
                "problem": result.problem,
                "fold": result.fold,
                "solver": result.solver,
                "seed": result.seed,
                "n_features": len(best.features),
                **{f"{part} {name}": value for part in PARTS for name, value in best.scores[part].items()},
                **{name: best.objectives[name] for name in result.further_objectives},
                "tuning seconds": seconds["tuning"],
                "training seconds": seconds["solver"],
            }
        )
    return pd.DataFrame(rows)
