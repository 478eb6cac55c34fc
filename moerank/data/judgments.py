"""Relevance judgments: the grade of a document for a query, in a table or in qrels of TREC."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pandas as pd

from moerank.checks import unknown
from moerank.data.read.table import MOST_LABEL
from moerank.data.trec import qrels_lines, text_lines

COLUMNS = {
    "query": ("query", "querytext", "keywords", "userquery"),
    "id": ("queryid", "qid"),
    "doc": ("docid", "doc", "documentid", "document", "corpusid"),
    "grade": ("grade", "rating", "gain", "label", "relevance", "relevancelabel", "judgment", "judgement", "score"),
}
"""Usual names of columns, in small letters and without other signs, by what they hold."""


def read_judgments(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the judgments of a file, plain or ``.gz``: a table of CSV or TSV with a header, or qrels of TREC.

    The columns are ``query`` (a text) or ``id`` or both, ``doc``, ``grade`` and ``line``. `columns` names those of the
    query, document and grade in a table. What is malformed is a ValueError with its line.
    """
    lines = text_lines(path)
    first = next(((n, line) for n, line in lines if line.strip() and not line.startswith("#")), (0, ""))
    rest = chain([first], lines)
    rows: list[dict[str, str | int]] = []
    if columns is None and re.fullmatch(r"([^\s,;]+\s+){3}-?[0-9.]+\s*", first[1]):
        rows = [
            {"id": query, "doc": doc, "grade": grade, "line": n} for n, query, doc, grade in qrels_lines(path, rest)
        ]
    elif first[1].startswith(("{", "[")):
        raise ValueError(f"{path}: judgments in JSON are not read; write a table of query, document and grade")
    elif first[1]:
        rows = list(_table_rows(path, first, rest, columns))
    if not rows:
        raise ValueError(f"{path}: there is no judgment in the file")
    for row in rows:
        if re.fullmatch(r"[0-9]+(\.0*)?", str(row["grade"])) is None or float(row["grade"]) > MOST_LABEL:
            raise ValueError(
                f"{path}, line {row['line']}: the grade {str(row['grade'])[:30]!r} is not an integer from 0 to "
                f"{MOST_LABEL:,}; make such grades first, for example by pandas.cut"
            )
    judgments = pd.DataFrame(rows)
    judgments["grade"] = judgments["grade"].astype(float).astype("int64")
    check_texts(judgments, lambda row: f"{path}, line {judgments['line'][row]}")
    return judgments


def check_texts(queries: pd.DataFrame, where: Callable[[int], str]) -> None:
    """Refuse an ``id`` that has two texts in the column ``query``; `where` says where a row stands."""
    if {"id", "query"} <= set(queries):
        named = queries[["id", "query"]].dropna().drop_duplicates()
        if (twice := named["id"].duplicated()).any():
            query, text = named[twice].iloc[0]
            earlier = named[named["id"] == query]["query"].iloc[0]
            raise ValueError(
                f"{where(int(named[twice].index[0]))}: the query id {query!r} has the text {text!r}, and {earlier!r} "
                "before; give each query an id of its own"
            )


def _table_rows(
    path: Path, first: tuple[int, str], lines: Iterable[tuple[int, str]], columns: Sequence[str] | None
) -> Iterator[dict[str, str | int]]:
    """Yield the rows of a table that have a grade; Quepid has rows without one."""
    rows = csv.reader((line for _, line in lines), delimiter=max("\t;,", key=first[1].count), strict=True)
    try:
        header = [name.strip() for name in next(rows)]
        indices = _indices(path, header, columns)
        for row in rows:
            line = rows.line_num + first[0] - 1
            if row and len(row) != len(header):
                raise ValueError(f"{path}, line {line}: {len(row)} fields, and the header has {len(header)}")
            # Quepid writes a blank before a sign with which a formula could begin.
            fields = {role: re.sub(r"^ (?=[-=+@])", "", row[index]) for role, index in indices.items() if row}
            if not fields or not fields["grade"].strip():
                continue
            if "" in fields.values():
                raise ValueError(f"{path}, line {line}: a grade without a query or a document")
            yield {**fields, "grade": fields["grade"].strip(), "line": line}
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num + first[0] - 1}: no row of CSV or TSV ({error})") from None


def _indices(path: Path, header: list[str], columns: Sequence[str] | None) -> dict[str, int]:
    """Return the indices of the columns by what they hold."""
    for name in header:
        if name and header.count(name) > 1:
            raise ValueError(f"{path}: the column {name!r} is twice in the header; leave one")
    plain = [re.sub("[^a-z]", "", name.lower()) for name in header]
    if columns is not None:
        if len(columns) != 3:
            raise ValueError(f"--columns names three columns, QUERY,DOCUMENT,GRADE, not {','.join(columns)!r}")
        for name in columns:
            if name not in header:
                raise ValueError(f"{path}: {unknown('column', name, header)}")
        query, doc, grade = map(header.index, columns)
        return {"id" if plain[query] in COLUMNS["id"] else "query": query, "doc": doc, "grade": grade}
    indices = {}
    for role, usual in COLUMNS.items():
        named = [index for index, name in enumerate(plain) if name in usual]
        if len(named) > 1:
            listed = " and ".join(repr(header[index]) for index in named)
            raise ValueError(f"{path}: the columns {listed} may both hold the {role}; choose by --columns")
        if named:
            indices[role] = named[0]
    if not {"query", "id"} & set(indices) or not {"doc", "grade"} <= set(indices):
        raise ValueError(
            f"{path}: no columns of query, document and grade among {', '.join(header)[:80]}; name them by --columns "
            "QUERY,DOCUMENT,GRADE, or give qrels of TREC"
        )
    return indices
