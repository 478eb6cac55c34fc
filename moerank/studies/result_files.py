"""The files of a run: proven writable before the work, replaced at one stroke, plain text throughout."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from moerank.files import Json, harmless, read_text, remove_old_remains, replace_file
from moerank.studies.result import PARTS, Result

JOURNAL = "search.journal"
RESULT = "result.json"

FRONT_TABLE = "front.csv"

FILES = (RESULT, FRONT_TABLE, "model.json")
"""The files of a finished run, in the order in which they are written."""

MOST_BYTES = 256 * 2**20
"""Of a result, or of any other file of results and studies."""


def unfinished(folder: Path) -> list[Path]:
    """Return the journals of an interrupted run."""
    return sorted(folder.glob(JOURNAL + "*"))


def is_of_a_run(folder: Path) -> bool:
    """Whether a run has left files in a folder: a result, or the table of a front whose result was removed."""
    if (folder / RESULT).exists():
        return True
    try:
        return read_text(folder / FRONT_TABLE, MOST_BYTES).startswith("member,n_features,")
    except (OSError, ValueError):
        return False


def read_result(folder: Path) -> Result | None:
    """Return the finished result in a folder, or None where there is none.

    Raises
    ------
    ValueError
        If there is a result.json that this version cannot read.
    OSError
        If there is something of this name that is no file.
    """
    path = folder / RESULT
    try:
        text = read_text(path, MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return Result.from_json(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}; choose another folder with --out, or remove the file") from None


def find_result(path: Path) -> Result:
    """Return the result in the folder of a run, or in the file of a cell of a study.

    Raises
    ------
    ValueError
        If the file is no result that this version can read.
    OSError
        If there is none; the message says where one is.
    """
    if not path.is_dir():
        try:
            return Result.from_json(read_text(path, MOST_BYTES))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    if (result := read_result(path)) is not None:
        return result
    if folds := sorted(file.parent for file in path.glob(f"fold*/{RESULT}")):
        raise FileNotFoundError(f"{path} holds the runs of several folds; name one of them, as {folds[0]}")
    if cells := sorted(path.glob("cells/*.json")):
        raise FileNotFoundError(f"{path} is a study; name one of its cells, as {cells[0]}")
    raise FileNotFoundError(f"{path} holds no finished run; moerank run makes one")


def write_result(result: Result, folder: Path) -> list[Path]:
    """Write front.csv, model.json and result.json, and return their paths.

    result.json comes first: where it stands, the run is finished, and the others can be made from it. Where it cannot
    be written, it goes to the folder of temporary files, and the message says so. No lock guards the folder, so what a
    killed run left of these files is removed when it is more than an hour old.
    """
    files = {
        FRONT_TABLE: _front_table(result),
        "model.json": model_json(result),
        RESULT: result.to_json(),
    }
    for name in FILES:
        remove_old_remains(folder / name)
        try:
            replace_file(folder / name, files[name].encode())
        except OSError as error:
            if name != RESULT:
                raise
            raise OSError(f"{error}{_kept_elsewhere(files[RESULT])}") from None
    return [folder / name for name in files]


def _kept_elsewhere(text: str) -> str:
    """Keep a result that its folder does not take; return what the message says about it."""
    try:
        path = Path(tempfile.mkdtemp(prefix="moerank-")) / RESULT
        replace_file(path, text.encode())
    except OSError:
        return ""
    return f"; the result is kept in {path}"


def _front_table(result: Result) -> str:
    """One row per member: size, further objectives, whether it was chosen, values on each part, and features.

    Names that a spreadsheet would take for formulas begin with '.
    """
    rows = [
        {
            "member": number + 1,
            "n_features": len(member.features),
            **{harmless(name): member.objectives[name] for name in result.further_objectives},
            **({"instances": member.instances} if result.instances else {}),
            "chosen": int(number == result.chosen),
            **{f"{part} {metric}": member.scores[part][metric] for part in PARTS for metric in result.metrics},
            "features": "; ".join(map(harmless, result.names(member.features))),
        }
        for number, member in enumerate(result.front)
    ]
    return str(pd.DataFrame(rows, dtype=object).to_csv(index=False))


def model_json(result: Result) -> str:
    """Return the text of model.json: the model of the chosen member, and the run that it comes from."""
    return result.model(result.best).to_json(problem=result.problem, fold=result.fold, solver=result.solver)


def results_frame(results: Iterable[Result], *, members: bool = False) -> pd.DataFrame:
    """Return one row per run, or one per member of the front of each run.

    Columns: ``problem``, ``fold``, ``solver`` (its label), ``seed``, for members ``member`` (from 1, as in front.csv)
    and ``chosen``, then ``n_features``, the metrics of the ranker as ``train NDCG@10`` and so on, its objectives beyond
    features and error by their names, ``instances`` (the share of the units of instance selection that it was trained
    on), ``combined`` (the number of combined features), ``compared`` (the settings and members that validation queries
    compared), ``cross-validated``, ``tuning seconds`` and ``training seconds`` of the processor. NaN stands for what a
    run does not have. Of the metrics those of the tables come first; then NDCG and precision to each of the ranks 1 to
    10, MAP and MeanNDCG.

    Parameters
    ----------
    results : iterable of Result
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


def _row(result: Result, number: int, *, members: bool) -> Json:
    member, seconds = result.front[number], result.times.processor
    return {
        "problem": result.problem,
        "fold": result.fold,
        "solver": result.solver,
        "seed": result.seed,
        **({"member": number + 1, "chosen": number == result.chosen} if members else {}),
        "n_features": len(member.features),
        **{f"{part} {name}": value for part in PARTS for name, value in member.scores[part].items()},
        **{name: member.objectives[name] for name in result.further_objectives},
        "instances": np.nan if member.instances is None else member.instances / (result.n_instances or 1),
        "combined": np.nan if result.n_combined is None else result.n_combined,
        "compared": result.n_compared,
        "cross-validated": np.nan if result.cross_validated is None else result.cross_validated,
        "tuning seconds": seconds.tuning,
        "training seconds": seconds.solver,
        **{f"{part} {name}": value for part, means in member.further.items() for name, value in means.items()},
    }
