"""Runs and qrels of TREC, which `ir_measures`, `ranx`, PyTerrier and ``trec_eval`` also read.

A run has lines ``query Q0 document rank score tag``, and qrels have lines ``query 0 document label``.
"""

import warnings
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from moerank.arrays import Vector
from moerank.data.inputs import checked_scores
from moerank.data.ranking_data import RankingData
from moerank.data.read import Lines, Rows, text_lines
from moerank.data.read.delimited import NUMBER
from moerank.files import AnyPath, replace_file

if TYPE_CHECKING:
    from moerank.metrics import Metric


def write_run(path: AnyPath, data: RankingData, scores: ArrayLike, *, tag: str = "moerank") -> None:
    """Write a ranking of documents as a TREC run.

    The scores are written in single precision, in which ``trec_eval`` compares them; two that differ are written as
    different numbers. Equal ones stay equal: ``trec_eval`` orders them by document id, where moerank takes the mean
    over their orders. A UserWarning says in how many queries they have different labels, so that values differ.

    Parameters
    ----------
    path : path-like
        The file, which is replaced.
    data : RankingData
        Data with document ids.
    scores : array-like, shape (n_documents,)
        Finite; the largest ranks first.
    tag : str, default "moerank"
        The name of the run.

    Raises
    ------
    ValueError
        For data without ids of documents, a document that is twice in a query, ids or a tag with spaces, and malformed
        scores.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> data = RankingData([[0.1], [0.9]], y=[0, 1], qid=[7, 7], documents=["a", "b"])
    >>> with TemporaryDirectory() as folder:
    ...     write_run(Path(folder, "test.run"), data, [0.5, 0.75])
    ...     Path(folder, "test.run").read_text().splitlines()
    ['7 Q0 b 1 0.75 moerank', '7 Q0 a 2 0.5 moerank']
    """
    keys, checked = document_keys(data), checked_scores(scores, data.n_documents, data.name)
    if checked.ndim != 1:
        raise ValueError(f"{data.name}: scores has shape {checked.shape}; a run has one ranking")
    if tag.split() != [tag]:
        raise ValueError(
            f"tag {tag!r} is not one word, and a space ends a field of a run; leave it out"
        )
    largest = float(np.finfo(np.float32).max) / 2  # so that there are smaller numbers
    rounded = checked.clip(-largest, largest).astype(np.float32)
    lines = []
    for begin, end in pairwise(data.offsets.tolist()):
        score, before = np.float32(np.inf), np.nan
        for rank, row in enumerate(begin + np.argsort(-checked[begin:end], kind="stable"), start=1):
            if checked[row] != before:
                score = min(rounded[row], np.nextafter(score, np.float32(-np.inf)))
                before = checked[row]
            query, document = keys[row]
            lines.append(f"{query} Q0 {document} {rank} {score:.9g} {tag}\n")
    replace_file(Path(path), "".join(lines).encode())
    labels = pd.Series(data.y).groupby([data.qid, checked]).nunique()
    if n_mixed := (labels > 1).groupby(level=0).any().sum():
        warnings.warn(
            f"{path}: in {n_mixed:,} of {data.n_queries:,} queries documents of different labels "
            "have equal scores; trec_eval orders them by document id, and moerank takes the mean "
            "over their orders",
            stacklevel=2,
        )


def write_qrels(path: AnyPath, data: RankingData) -> None:
    """Write the relevance labels of documents as TREC qrels; arguments and errors as in `write_run`."""
    labels = zip(document_keys(data), data.y.tolist(), strict=True)
    lines = (f"{query} 0 {document} {label}\n" for (query, document), label in labels)
    replace_file(Path(path), "".join(lines).encode())


@dataclass(frozen=True)
class Run:
    """A ranking of another tool, which `read_run` returns: its metrics are those of ``trec_eval``.

    Attributes
    ----------
    data : RankingData
        The documents that were judged and those of the run that were not, with label 0; the feature means nothing.
    scores : ndarray of float64, shape (n_documents,)
        Minus the rank in the query, −∞ for a document that the run lacks.
    sentence : str
        How many documents are unjudged, missing or tied.
    """

    data: RankingData
    scores: Vector
    sentence: str

    def per_query(self, metric: "Metric") -> Vector:
        """Return the value of each query, shape (n_queries,), as `Metric.per_query` does: 0 for one without a rank."""
        return metric.values(self.data, self.scores[:, None])[:, 0]

    def score(self, metric: "Metric") -> float:
        """Return the mean over all queries, those that the run lacks included."""
        return float(metric.batch(self.data, self.scores[:, None])[0])


def read_run(path: AnyPath, data: RankingData) -> Run:
    r"""Return a TREC run that metrics score as ``trec_eval`` does.

    Documents of the run that are not in `data` keep their ranks and are irrelevant. Documents that are not in the run
    have no rank, so that a query that the run lacks counts 0. Equal scores, in single precision, rank by document
    id, the last in the alphabet first. Queries that are not in `data` do not count. A UserWarning says how many
    documents are unjudged, missing or tied.

    Parameters
    ----------
    path : path-like
        A file, plain or ``.gz``.
    data : RankingData
        Data with document ids.

    Raises
    ------
    ValueError
        For a line in another format, a document that occurs twice in a query, and a run without any document of `data`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> data = RankingData([[0.1], [0.9]], y=[0, 1], qid=[7, 7], documents=["a", "b"])
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "bm25.run").write_text("7 Q0 b 1 12.5 bm25\n7 Q0 a 2 9.5 bm25\n")
    ...     read_run(Path(folder, "bm25.run"), data).scores.tolist()
    [-2.0, -1.0]
    """
    path = Path(path)
    judgments = pd.DataFrame(document_keys(data), columns=["query", "document"])
    judgments["row"] = judgments.index
    queries = judgments.drop_duplicates("query").set_index("query")
    run = _ranks(path)
    run = run[run["query"].isin(queries.index)]
    table = judgments.merge(run, how="outer", on=["query", "document"])
    table["begin"] = table["query"].map(queries["row"])
    table = table.sort_values(["begin", "row", "document"])  # unjudged documents last
    is_judged, is_ranked = table["row"].notna(), table["rank"].notna()
    if not (is_judged & is_ranked).any():
        raise ValueError(
            f"{path}: none of its documents is in {data.name}, whose first is "
            f"{judgments['document'][0]!r} of query {data.qid[0]}; give a run on these data"
        )
    n_unjudged, n_missing, n_tied = (~is_judged).sum(), (~is_ranked).sum(), run["is_tied"].sum()
    sentence = (
        f"{path}: {n_unjudged:,} unjudged, {n_missing:,} missing, {n_tied:,} tied documents, and "
        f"{(~queries.index.isin(run['query'])).sum():,} missing queries, count as in trec_eval"
    )
    if n_unjudged or n_missing or n_tied:
        warnings.warn(sentence, stacklevel=2)
    rows, weights = table["row"].fillna(0).astype(int), data.document_weights
    ranked = RankingData(
        np.zeros((len(table), 1)),
        np.where(is_judged, data.y[rows], 0),
        data.qid[table["begin"]],
        name=data.name,
        documents=table["document"].to_numpy(),
        query_weights=data.query_weights,
        document_weights=None if weights is None else np.where(is_judged, weights[rows], 1.0),
    )
    return Run(ranked, -table["rank"].fillna(inf).to_numpy(), sentence)


def _ranks(path: Path) -> pd.DataFrame:
    """Return the rank of each document of a run by scores in single precision, and whether others have its score."""
    rows = []
    for number, words in trec_lines(path, text_lines(path), "q1 Q0 p7 1 12.5 bm25"):
        query, _, document, _, score, _ = words
        if not NUMBER.fullmatch(score) or not isfinite(float(score)):
            raise ValueError(
                f"{path}, line {number}: the score {score[:40]!r} is not a finite number"
            )
        rows.append((query, document, float(score), number))
    run = pd.DataFrame(rows, columns=["query", "document", "score", "line"])
    for row in run.index[run.duplicated(["query", "document"])][:1]:
        query, document, _, number = rows[row]
        raise ValueError(
            f"{path}, line {number}: document {document} is twice in query {query}; leave one line"
        )
    with np.errstate(over="ignore"):
        run["score"] = run["score"].astype(np.float32)
    run = run.sort_values(["score", "document"], ascending=False)
    run["rank"] = run.groupby("query").cumcount() + 1.0
    run["is_tied"] = run.duplicated(["query", "score"], keep=False)
    return run


def trec_lines(path: Path, lines: Lines, like: str) -> Rows:
    """Yield the number and the words of each line, as many as in `like`; comments may precede the first line."""
    began = False
    for number, line in lines:
        words = line.split()
        if not words or (not began and line.startswith("#")):
            continue
        if len(words) != len(like.split()):
            raise ValueError(f"{path}, line {number}: {line[:40]!r} is not like {like!r}")
        began = True
        yield number, words


def document_keys(data: RankingData) -> list[tuple[str, str]]:
    """Return the query and the document of each row; refuse data in which two rows have the same ones."""
    if data.documents is None:
        raise ValueError(
            f"{data.name}: the documents have no ids; give documents=, or document = in [data]"
        )
    keys = list(zip(data.qid.astype(np.str_).tolist(), data.documents.tolist(), strict=True))
    for key, n_rows in Counter(keys).items():
        if n_rows > 1:
            raise ValueError(
                f"{data.name}: document {key[1]} is twice in query {key[0]}; remove one of the rows"
            )
        if any(word.split() != [word] for word in key):
            raise ValueError(
                f"{data.name}: the query or document of {key} is empty or has a space; give other "
                "ids"
            )
    return keys
