"""The files of a run: proven writable before the work, replaced at one stroke, plain text throughout."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from moerank.files import replace_file
from moerank.runs.result import PARTS, RunResult, ScoredRanker

__all__ = [
    "JOURNAL",
    "model_of",
    "read_result",
    "unfinished",
    "write_result",
]

JOURNAL = "search.journal"
RESULT = "result.json"


def unfinished(folder: Path) -> list[Path]:
    """Return the journals of an interrupted run."""
    return sorted(folder.glob(JOURNAL + "*"))


def read_result(folder: Path) -> RunResult | None:
    """Return the finished result in a folder, or None where there is none.

    Raises
    ------
    ValueError
        If there is a result.json that this version cannot read.
    """
    path = folder / RESULT
    if not path.is_file():
        return None
    try:
        return RunResult.from_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}; choose another folder with --out, or remove the file") from None


def write_result(result: RunResult, folder: Path) -> list[Path]:
    """Write front.csv, model.json and result.json, and return their paths.

    result.json comes last: where it stands, the run is finished.
    """
    files = {
        "front.csv": _front_table(result),
        "model.json": json.dumps(model_of(result, result.best), indent=1, ensure_ascii=False) + "\n",
        RESULT: result.to_json(),
    }
    for name, text in files.items():
        replace_file(folder / name, text.encode())
    return [folder / name for name in files]


def _front_table(result: RunResult) -> str:
    """One row per member: size, further objectives, whether it was chosen, values on each part, and features."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [(part, metric) for part in PARTS for metric in result.metrics]
    header = [f"{part} {metric}" for part, metric in columns]
    further = result.further_objectives
    writer.writerow(["member", "n_features", *further, "chosen", *header, "features"])
    for number, member in enumerate(result.front):
        values = [member.scores[part][metric] for part, metric in columns]
        names = "; ".join(result.names(member.features))
        objectives = [member.objectives[name] for name in further]
        writer.writerow([number + 1, len(member.features), *objectives, int(number == result.chosen), *values, names])
    return text.getvalue()


def model_of(result: RunResult, ranker: ScoredRanker) -> dict[str, Any]:
    """Return the content of model.json: where a ranker comes from, and its model."""
    return {"problem": result.problem, "fold": result.fold, "solver": result.solver, **ranker.model.as_dict()}
