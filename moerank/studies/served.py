"""Stored models on new data: their scores, and their metric against another model on the same queries."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import numpy as np

from moerank.arrays import Vector
from moerank.checks import check_at_least
from moerank.data import PER_QUERY, RankingData, load_letor, load_table
from moerank.data.read.table import guess_columns, reader_of
from moerank.files import Json
from moerank.rankers.model import Model
from moerank.studies.measure import ALL_FEATURES
from moerank.studies.problem import MetricSection
from moerank.studies.result import Result
from moerank.studies.result_files import find_result
from moerank.verdict import MARGIN, Verdict, judge


def load_model(run: str | os.PathLike[str], *, member: int | None = None) -> Model:
    """Return the chosen model of a finished run, or another member of its front.

    Parameters
    ----------
    run : path-like
        The folder of a run, or the file of a cell of a study.
    member : int, optional
        A row of the front, from 0; by default the chosen one.

    Returns
    -------
    Model
        ``predict(X)`` scores raw values; ``names``, ``columns``, ``weights`` or ``trees``, ``scaling`` and ``missing``
        are those of training.

    Raises
    ------
    ValueError
        If the result cannot be read, or has no such member.
    OSError
        If there is no result.
    """
    result = find_result(Path(run))
    check_at_least(0, len(result.front) - 1, or_none=True, member=member)
    return result.model(result.front[result.chosen if member is None else member])


@dataclass(frozen=True)
class NewVerdict:
    """A stored model against another one on the queries of new data."""

    result: str  # the run of the model
    against: str | None  # the run of the other model; None for all features of the same run
    data: str
    verdict: Verdict  # n_allowed is the number of features of the other one

    @property
    def sentence(self) -> str:
        """The verdict in one line that begins with the finding."""
        found, size = self.verdict, self.verdict.n_features
        others = f"all {found.n_allowed} features" if self.against is None else f"{found.n_allowed} of {self.against}"
        return f"{found.finding}: {size} feature{'s' * (size != 1)} of {self.result} against {others}; {found.outcome}"

    def as_dict(self) -> Json:
        """Return the finding and its numbers; null stands for all features, and for an end that nothing bounds."""
        found = self.verdict
        measured = ("finding", "equivalent", "difference", "interval", "metric", "margin", "n_queries", "n_differing")
        return {
            **{name: getattr(found, name) for name in measured},
            "interval": [end if isfinite(end) else None for end in found.interval],
            "result": self.result,
            "n_features": found.n_features,
            "against": self.against,
            "n_features_against": found.n_allowed,
            "data": self.data,
            "sentence": self.sentence,
        }


def judge_on_new(
    run: Path, new: Path, against: Path | None = None, *, label: str | None = None, query: str | None = None
) -> NewVerdict:
    """Compare the chosen model of a run with another one, query by query of new data.

    The new data are a LETOR, CSV or Parquet file with the raw values of the features of both models, found by their
    names; `label` and `query` are columns of a table, by default those of usual names. The other model is that of the
    run `against`, by default the ranker on all features that the first run has stored; a run of trees stores none. The
    metric and the margin of the first run count.
    """
    result = find_result(run)
    model = result.model(result.best)
    if against is None:
        found = [baseline for baseline in result.baselines if baseline.name == ALL_FEATURES]
        if result.best.trees is not None:
            raise ValueError(
                f"{run} ranks by trees, and keeps no trees on all features; name a run with --solver lambdamart by "
                "--against"
            )
        if not found:
            raise ValueError(f"{run} has no model on all features; name another run by --against")
        origin, reference = result, result.model(found[0])
    else:
        origin = find_result(against)
        reference = origin.model(origin.best)
    metric = MetricSection(**result.configuration["metric"]).make()
    values: list[Vector] = []
    for ranker, source in ((model, result), (reference, origin)):
        data = _read(new, ranker, source, label, query)
        scores = np.ascontiguousarray(ranker.predict(data)[:, None], dtype=np.float64)
        values.append(metric.per_query(data, scores)[:, 0])
    sizes, can_differ = (len(model.names), len(reference.names)), metric.can_differ(data)
    margin = MARGIN if result.verdict is None else result.verdict.margin
    verdict = judge(values[0], values[1], "new", metric.name, *sizes, can_differ=can_differ, margin=margin)
    return NewVerdict(str(run), None if against is None else str(against), str(new), verdict)


def _read(path: Path, model: Model, result: Result, label: str | None, query: str | None) -> RankingData:
    """Read new data by the rule for missing values of a model, and scale them if it needs other documents."""
    if reader_of(path) is not None:
        label, query = guess_columns(path, label, query)
        data = load_table(path, label=label, query=query, features=model.names, missing=model.missing)
    else:
        data = load_letor(path, missing=model.missing)
    if model.scaling != PER_QUERY:
        return data
    raw = result.configuration["data"]["normalize"] == "query"
    return PER_QUERY.apply(data) if raw else data.declared("query")
