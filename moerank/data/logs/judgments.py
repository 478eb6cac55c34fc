"""Files of relevance judgments, the rules that make labels of grades, and runs and qrels of TREC.

A run has lines ``query Q0 document rank score tag``, and qrels have lines ``query 0 document label``. `ir_measures`,
`ranx`, PyTerrier and ``trec_eval`` read both.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, pairwise
from math import floor, isfinite
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from moerank.arrays import Vector
from moerank.data.inputs import checked_scores
from moerank.data.logs.responses import as_text, text_of
from moerank.data.ranking_data import RankingData
from moerank.data.read.table import MOST_LABEL
from moerank.files import replace_file

COLUMNS = {
    "query": ("query", "querytext", "keywords", "userquery"),
    "id": ("queryid", "qid"),
    "doc": ("docid", "doc", "documentid", "document"),
    "grade": ("grade", "rating", "gain", "label", "relevance", "relevancelabel", "judgment", "judgement"),
}
"""Usual names of columns, in small letters and without other signs."""

EVENT = "action_name"
"""A key of every event of User Behavior Insights."""


class Judgment(NamedTuple):
    """The grade of a document for a query, which is known by id, by text or by both."""

    id: str | None
    query: str | None
    doc: str
    grade: float
    place: str


def read_judgments(path: Path, grade: str | None = None) -> Iterator[Judgment]:
    """Yield the judgments of a file, plain or ``.gz``; its first line tells its form.

    It is TREC qrels; LETOR lines with documents in comments; a table of CSV or TSV, such as Quepid's, or of ``|``
    without a header; JSON of Rated Ranking Evaluator, Quepid or the Search Relevance Workbench. `grade` names the
    column of grades, if it has no usual name. Other files, and grades that are no numbers, are a ValueError with the
    line.
    """
    with text_of(path) as lines:
        first = next((line for line in lines if line.strip()), "")
        rest = chain([first], lines)
        if first.lstrip().startswith(("{", "[")):
            text = "".join(rest)
            if f'"{EVENT}"' in text:
                raise ValueError(_raw_events(path))
            try:
                yield from _from_json(path, json.loads(text))
            except (json.JSONDecodeError, RecursionError) as error:
                raise ValueError(f"{path}: not JSON ({error})") from None
        elif re.match(r"\s*-?[0-9.]+\s+qid:|#\s*qid:", first):
            yield from _from_letor(path, rest)
        elif re.fullmatch(r"\s*\S+\s+\S+\s+\S+\s+-?[0-9.]+\s*", first) and "," not in first:
            for number, line in enumerate(rest, start=1):
                if line.strip():
                    query, _, doc, found = (line.split() + [""] * 4)[:4]
                    yield Judgment(query, None, doc, _grade(path, number, found), f"line {number}")
        else:
            yield from _from_table(path, first, rest, grade)


def _raw_events(path: Path) -> str:
    return f"{path}: raw events are no judgments; make judgments of them first, for instance by a click model"


def _from_letor(path: Path, lines: Iterator[str]) -> Iterator[Judgment]:
    texts: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if header := re.fullmatch(r"#\s*qid:(\S+?):\s*(.*?)(?:\*[\d.]+)?\s*", line):
            texts[header[1]] = header[2]
        elif found := re.match(r"\s*(\S+)\s+qid:(\S+)[^#]*#\s*(\S+)\s*(.*?)\s*$", line):
            query = texts.get(found[2], found[4] or None)
            yield Judgment(found[2], query, found[3], _grade(path, number, found[1]), f"line {number}")
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"{path}, line {number}: {line[:30]!r} is not like '3 qid:1 # p7 trail shoes'")


def _from_table(path: Path, first: str, lines: Iterator[str], grade: str | None) -> Iterator[Judgment]:
    """Yield the rows of a table with a header, or of one with ``|`` between query, document and grade."""
    separator = max(",\t;|", key=first.count)
    rows = csv.reader(lines, delimiter=separator, strict=True)
    if separator == "|":
        places: dict[str, int] = {"query": 0, "doc": 1, "grade": 2}
    else:
        places = _columns(path, next(rows), grade)
    try:
        for row in rows:
            if not row:
                continue
            found = {what: re.sub("^ (?=[-=+@])", "", row[place]) for what, place in places.items()}
            if separator == "|":
                found = {what: text.strip() for what, text in found.items()}
            if found["doc"] and found["grade"]:  # Quepid has rows for queries without ratings
                number = rows.line_num
                value = _grade(path, number, found["grade"])
                yield Judgment(found.get("id"), found.get("query"), found["doc"], value, f"line {number}")
    except (csv.Error, IndexError) as error:
        raise ValueError(f"{path}, line {rows.line_num}: no row of the table ({error})") from None


def _columns(path: Path, header: list[str], grade: str | None) -> dict[str, int]:
    """Return the places of query, id, document and grade."""
    if EVENT in header:
        raise ValueError(_raw_events(path))
    plain = [re.sub("[^a-z]", "", name.lower()) for name in header]
    places = {
        what: next(place for place, name in enumerate(plain) if name in usual)
        for what, usual in COLUMNS.items()
        if set(usual) & set(plain)
    }
    if grade is not None:
        if grade not in header:
            raise ValueError(f"{path}: there is no column {grade!r}; --grade is one of {', '.join(header)}")
        places["grade"] = header.index(grade)
    known = places.keys() | ({"query"} if "id" in places else set())
    lacking = [what for what in ("query", "doc", "grade") if what not in known]
    if lacking:
        remedy = "name it by --grade" if lacking == ["grade"] else "judgments have columns such as query,docid,rating"
        raise ValueError(f"{path}: no column is a {' or '.join(lacking)} among {', '.join(header)[:80]}; {remedy}")
    return places


def _grade(path: Path, line: int, text: str) -> float:
    try:
        return _finite(text)
    except ValueError as error:
        raise ValueError(f"{path}, line {line}: {error}") from None


def _finite(grade: object) -> float:
    with suppress(ValueError, TypeError):
        if isfinite(value := float(cast("str", grade))):
            return value
    raise ValueError(f"the grade {str(grade)[:30]!r} is no number")


def _from_json(path: Path, value: Any) -> Iterator[Judgment]:
    """Yield the judgments of the Search Relevance Workbench, or of Rated Ranking Evaluator."""
    try:
        if "hits" in value:
            value = value["hits"]["hits"][0]
        value = value.get("_source", value)
        if "judgmentRatings" in value:
            for entry in value["judgmentRatings"]:
                query = as_text(entry["query"])
                for rating in entry["ratings"]:
                    doc, place = str(as_text(rating["docId"])), f"query {query!r}"
                    yield Judgment(None, query, doc, _finite(rating["rating"]), place)
            return
        topics = value.get("topics", [value])
        groups = [group for topic in topics for group in topic.get("query_groups", [topic])]
        for group in groups:
            yield from _from_group(group, value.get("query_placeholder", "$query"))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"{path}: JSON of judgments has judgmentRatings, topics or queries ({error!r})") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _from_group(group: Any, placeholder: str) -> Iterator[Judgment]:
    """Yield the judgments of a group of Rated Ranking Evaluator: its grades hold for all its queries."""
    for query in group["queries"]:
        relevant = query.get("relevant_documents", group.get("relevant_documents", {}))
        text = as_text(query["placeholders"][query.get("query_placeholder", placeholder)])
        for key, found in relevant.items():
            if isinstance(found, list):
                grades = [(str(as_text(doc)), key) for doc in found]
            else:
                grades = [(key, found.get("gain", found.get("rating")))]
            for doc, grade in grades:
                yield Judgment(None, text, doc, _finite(grade), f"query {text!r}")


def labels_by(rule: str | None, grades: Callable[[], Vector]) -> Callable[[float], int]:
    """Return the function that makes the label of a grade.

    ``scale=K`` is K times the grade, rounded, halves up; ``bins=.25,.5`` the number of bounds that the grade reaches;
    ``quantiles=N`` the number of the N-quantiles of all `grades` that it exceeds, from 0 to N − 1; ``clip`` 0 for a
    grade below 0. By default a grade must be an integer from 0. Other rules and grades are a ValueError.
    """
    name, _, text = (rule or "").partition("=")
    try:
        numbers = [float(part) for part in text.split(",")] if text else []
    except ValueError:
        numbers = []
    one = len(numbers) == 1
    if name == "bins" and numbers and numbers == sorted(set(numbers)):
        return lambda grade: int(np.searchsorted(numbers, grade, side="right"))
    if name == "quantiles" and one and numbers[0] == int(numbers[0]) >= 2:
        inner = np.arange(1, int(numbers[0])) / numbers[0]
        bounds = np.quantile(grades(), inner)
        return lambda grade: int(np.searchsorted(bounds, grade, side="left"))
    if rule not in (None, "clip") and not (name == "scale" and one and numbers[0] > 0):
        raise ValueError(f"--grades {rule}: write scale=K, bins=.25,.5,.75 (rising), quantiles=N (from 2) or clip")

    def label(grade: float) -> int:
        value = max(grade, 0.0) if rule == "clip" else floor(numbers[0] * grade + 0.5) if one else grade
        if not 0 <= value <= MOST_LABEL or value != int(value):
            raise ValueError(
                f"the grade {grade:g} is no label, an integer from 0; --grades makes labels: scale=K, bins=.25,.5,.75, "
                "quantiles=N, or clip for grades below 0"
            )
        return int(value)

    return label


def write_run(path: str | os.PathLike[str], data: RankingData, scores: ArrayLike, *, tag: str = "moerank") -> None:
    """Write a ranking of documents as a TREC run.

    The scores are written in single precision, in which ``trec_eval`` compares them. It orders equal scores by document
    id, and moerank by row; where scores would be equal the later row gets the next smaller number, so that every tool
    computes the metrics of this ranking.

    Parameters
    ----------
    path : path-like
        The file, which is replaced.
    data : RankingData
        With ids of documents.
    scores : array-like, shape (n_documents,)
        Finite; the largest ranks first.
    tag : str, default "moerank"
        The name of the run.

    Raises
    ------
    ValueError
        For data without ids of documents, a document that is twice in a query, ids with spaces, and malformed scores.
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
    largest = float(np.finfo(np.float32).max) / 2  # so that there are smaller numbers
    single = checked.clip(-largest, largest).astype(np.float32)
    lines = []
    for begin, end in pairwise(data.offsets.tolist()):
        last = np.float32(np.inf)
        for rank, row in enumerate(begin + np.argsort(-checked[begin:end], kind="stable"), start=1):
            last = min(single[row], np.nextafter(last, np.float32(-np.inf)))
            query, document = keys[row]
            lines.append(f"{query} Q0 {document} {rank} {last:.9g} {tag}\n")
    replace_file(Path(path), "".join(lines).encode())


def write_qrels(path: str | os.PathLike[str], data: RankingData) -> None:
    """Write the relevance labels of documents as TREC qrels; arguments and errors as in `write_run`."""
    labels = zip(document_keys(data), data.y.tolist(), strict=True)
    lines = (f"{query} 0 {document} {label}\n" for (query, document), label in labels)
    replace_file(Path(path), "".join(lines).encode())


def read_run(path: str | os.PathLike[str], data: RankingData) -> Vector:
    """Return the scores (n_documents,) that a TREC run gives to documents, for `Metric.score` and `Metric.per_query`.

    Documents that are not in the run rank behind all others, in the order of their rows. Documents of the run that are
    not in `data` do not count, as they have no label.

    Parameters
    ----------
    path : path-like
        A file, plain or ``.gz``.
    data : RankingData
        With ids of documents.

    Raises
    ------
    ValueError
        For a line that is none of a run, a document that is twice in a query, and a run without any document of `data`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> data = RankingData([[0.1], [0.9]], y=[0, 1], qid=[7, 7], documents=["a", "b"])
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "bm25.run").write_text("7 Q0 b 1 12.5 bm25")
    ...     read_run(Path(folder, "bm25.run"), data).argsort().tolist()
    [0, 1]
    """
    path, found, keys = Path(path), {}, document_keys(data)
    with text_of(path) as lines:
        for number, line in enumerate(lines, start=1):
            words = line.split()
            if not words:
                continue
            try:
                query, _, document, _, score, _ = words
                value = float(score)
                if not np.isfinite(value):
                    raise ValueError
            except ValueError:
                raise ValueError(
                    f"{path}, line {number}: {line[:40]!r} is not like 'q1 Q0 p7 1 12.5 bm25', with a finite score"
                ) from None
            if (query, document) in found:
                raise ValueError(
                    f"{path}, line {number}: document {document} is twice in query {query}; leave one line"
                )
            found[query, document] = value
    scores = np.array([found.get(key, -np.inf) for key in keys])
    ranked = np.isfinite(scores)
    if not ranked.any():
        raise ValueError(
            f"{path}: none of its documents is in {data.name}, whose first is {keys[0][1]!r} of query "
            f"{data.qid[0]}; give the run for these queries"
        )
    scores[~ranked] = np.nextafter(scores[ranked].min(), -np.inf)
    return scores


def read_qrels(path: str | os.PathLike[str], data: RankingData | None = None) -> RankingData:
    r"""Return documents with the relevance labels of TREC qrels.

    Parameters
    ----------
    path : path-like
        A file, plain or ``.gz``. A negative label, as of spam, becomes 0.
    data : RankingData, optional
        Documents with ids, whose labels are replaced; one without a label gets 0. By default the documents are those of
        the qrels, with a feature that is 0: enough for a metric.

    Raises
    ------
    ValueError
        For a line that is none of qrels, a label that is no integer, two labels of a document, and qrels without any
        document of `data`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "test.qrels").write_text("7 0 a 0\n7 0 b 2\n")
    ...     judged = read_qrels(Path(folder, "test.qrels"))
    >>> judged.documents.tolist(), judged.y.tolist()
    (['a', 'b'], [0, 2])
    """
    path = Path(path)
    found: dict[str, dict[str, int]] = {}
    for query, _, document, grade, place in read_judgments(path):
        label = max(int(grade), 0)
        if grade != int(grade) or grade > MOST_LABEL:
            raise ValueError(f"{path}, {place}: the label {grade:g} is not an integer up to {MOST_LABEL:,}")
        if found.setdefault(str(query), {}).setdefault(document, label) != label:
            raise ValueError(f"{path}, {place}: a second label of document {document} in query {query}; leave one")
    if data is None:
        rows = [(query, *labelled) for query, labels in found.items() for labelled in labels.items()]
        if not rows:
            raise ValueError(f"{path}: there is no label in the file")
        qid, documents, y = zip(*rows, strict=True)
        return RankingData(np.zeros((len(y), 1)), y, qid, name=str(path), documents=documents)
    known = [found.get(query, {}).get(document) for query, document in document_keys(data)]
    if set(known) == {None}:
        raise ValueError(f"{path}: none of its documents is in {data.name}; give the qrels of these queries")
    return data.with_labels(np.array([label or 0 for label in known]))


def document_keys(data: RankingData) -> list[tuple[str, str]]:
    """Return query and document of each row; refuse data in which they do not tell rows apart."""
    if data.documents is None:
        raise ValueError(
            f"{data.name}: the documents have no ids; give documents= in Python, document = in [data] of a problem "
            "file, or LETOR files with ids in the comments"
        )
    keys = list(zip(data.qid.astype(np.str_).tolist(), data.documents.tolist(), strict=True))
    known = set()
    for key in keys:
        if key in known:
            raise ValueError(f"{data.name}: document {key[1]} is twice in query {key[0]}; leave one of the rows out")
        if any(word.split() != [word] for word in key):
            raise ValueError(f"{data.name}: a query or document {key} holds a space, which ends a field; give ids")
        known.add(key)
    return keys
