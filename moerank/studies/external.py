"""Results of other tools, which a file in the folder of a study adds to its tables and figures."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from moerank.checks import unknown
from moerank.files import read_text
from moerank.metrics import make_metric
from moerank.statistics import mean_and_error
from moerank.studies.problem import Problem, Published

EXTERNAL = "external.csv"
MOST_BYTES = 2**20
OWN = ("problem", "method", "features", "fold")


class External(Published):
    """A result of another tool on the test queries, whose metrics have the full names that tables give them."""

    @property
    def label(self) -> str:
        """The name in tables and figures."""
        return self.method

    def value(self, metric: str) -> float | None:
        """Return the value of a metric, None without one."""
        return self.scores.get(metric)

    def with_error(self, metric: str) -> tuple[float, float]:
        """Return the mean over the folds and its standard error, NaN where they are not known."""
        found = mean_and_error(self.folds.get(metric, (np.nan,)))
        return self.scores.get(metric, np.nan), found[1]


def with_external(problems: Iterable[Problem], folder: Path) -> list[Problem]:
    """Return the problems of a study, with the results in external.csv of its folder beside published ones.

    The file has the columns problem, method, and metrics of the test queries by the names of tables, as NDCG@10 or
    NDCG@10 (letor); features, the number of features, and fold may be there. Rows with a fold are averaged for each
    method. Other rows are a result each, so that a method may have several numbers of features.
    """
    found, path = list(problems), folder / EXTERNAL
    if not path.exists():
        return found
    rows = csv.DictReader(read_text(path, MOST_BYTES).splitlines())
    names = [str(name) for name in rows.fieldnames or ()]
    metrics = [name for name in names if name not in OWN]
    if not {"problem", "method"} <= set(names) or not metrics:
        raise ValueError(f"{path}: the first line names the columns problem, method, and metrics such as NDCG@10")
    for metric in metrics:
        try:
            make_metric(metric.partition(" (")[0])
        except ValueError as error:
            raise ValueError(f"{path}: a column is none of {', '.join(OWN)}, and {error}") from None
    known = [problem.name for problem in found]
    groups: dict[tuple[str, ...], list[Mapping[str, float]]] = {}
    for row in rows:
        where = f"{path}, line {rows.line_num}"
        if not row["method"]:
            raise ValueError(f"{where}: no method; every row names one")
        if row["problem"] not in known:
            raise ValueError(f"{where}: {unknown('problem', str(row['problem']), known)}")
        try:
            values = {name: float(row[name]) for name in (*metrics, "features", "fold") if row.get(name)}
        except (TypeError, ValueError):
            raise ValueError(f"{where}: features, fold and metrics are numbers, or empty") from None
        if not all(map(math.isfinite, values.values())):
            raise ValueError(f"{where}: features, fold and metrics are finite")
        place = () if "fold" in values else (str(rows.line_num),)
        groups.setdefault((row["problem"], row["method"], *place), []).append(values)
    entries = {problem.name: list(problem.published) for problem in found}
    for (name, method, *_), values_of in groups.items():
        entries[name].append(_entry(method, values_of, metrics))
    return [problem.model_copy(update={"published": tuple(entries[problem.name])}) for problem in found]


def _entry(method: str, rows: list[Mapping[str, float]], metrics: list[str]) -> External:
    folds = {metric: tuple(row[metric] for row in rows if metric in row) for metric in metrics}
    sizes = [row["features"] for row in rows if "features" in row]
    return External(
        method=method,
        features=float(np.mean(sizes)) if sizes else None,
        scores={metric: float(np.mean(values)) for metric, values in folds.items() if values},
        folds=folds,
        source=EXTERNAL,
    )
