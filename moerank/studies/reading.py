"""Results read back from a folder, whoever wrote them there, as one table."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from moerank.runs.frame import results_frame
from moerank.runs.result_files import RESULT, find_result
from moerank.studies.study import Study

__all__ = ["read_results"]


def read_results(folder: str | Path, *, members: bool = False) -> pd.DataFrame:
    """Return the results in a folder: one row for each run, with every metric.

    Parameters
    ----------
    folder : path
        Of a study, of a run, or of the runs on several folds.
    members : bool, default False
        A row for each member of a front instead of the chosen one alone. Those that were not chosen have the metrics of
        the tables only.

    Returns
    -------
    DataFrame
        See `results_frame` for its columns.

    Raises
    ------
    ValueError
        For files that are no results of this version.
    OSError
        If there is no finished run; the message says where one is.

    Examples
    --------
    >>> read_results("results/nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: results/nowhere holds no finished run or study
    """
    place = Path(folder)
    if not place.exists():
        raise FileNotFoundError(f"{place} holds no finished run or study")
    if (place / "study.json").exists():
        return Study.load(place).frame(members=members)
    folds = sorted(place.glob(f"fold*/{RESULT}"), key=lambda file: (len(file.parent.name), file))
    runs = [file.parent for file in folds] if folds and not (place / RESULT).exists() else [place]
    return results_frame([find_result(run) for run in runs], members=members)
