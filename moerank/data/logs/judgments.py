"""Files of relevance judgments, and the rules that make labels of grades."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from math import floor, isfinite
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from moerank.arrays import Vector
from moerank.data.logs.responses import as_text, text_of
from moerank.data.read.table import MOST_LABEL

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
