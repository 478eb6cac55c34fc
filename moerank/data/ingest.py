"""Join the feature logs of a search engine and relevance judgments in one table, which `load_table` reads.

`ENGINES` has a row for each kind of log, with a function that yields the hits of a response.
"""

import json
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from math import nan
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from moerank.arrays import Floats
from moerank.checks import check_at_least, unknown
from moerank.data.inputs import MAX_LABEL
from moerank.data.read import Lines, Rows, WrongRowError, text_lines
from moerank.data.read import table as tables
from moerank.data.read.delimited import NUMBER, csv_table
from moerank.data.trec import trec_lines
from moerank.files import Json, read_json

# The columns of the table in front of the features.
OWN_COLUMNS = {
    "qid": pa.string(),
    "label": pa.int64(),
    "query": pa.string(),
    "doc": pa.string(),
    "position": pa.int64(),
}

# The document of a hit, and the names and values of its features.
Hit: TypeAlias = tuple[str | None, list[tuple[str, object]]]


@dataclass(frozen=True)
class Ingested:
    """A table that was made from logs.

    Attributes
    ----------
    table : Path
    engine : str
        "elasticsearch" (also for OpenSearch), "solr" or "vespa".
    features : tuple of str
    n_queries, n_documents : int
    lines : tuple of str
        What was read, joined, left out and written, in sentences.
    """

    table: Path
    engine: str
    features: tuple[str, ...]
    n_queries: int
    n_documents: int
    lines: tuple[str, ...]


def ingest(
    logs: str | Path | Sequence[str | Path],
    table: str | Path,
    *,
    judgments: str | Path,
    columns: Sequence[str] | None = None,
    labels: tables.Labels | None = None,
    log: str | None = None,
    document: str | None = None,
    exclude: Sequence[str] = (),
    unjudged: int | None = None,
) -> Ingested:
    r"""Make a training table from the feature logs of a search engine and relevance judgments.

    Parameters
    ----------
    logs : path-like or sequence of path-like
        Files, plain or ``.gz``, with a response of Elasticsearch, OpenSearch, Solr or Vespa on each line, and its query
        with it: ``{"query": "trail shoes", "response": {…}}``, or ``query_id``, or both. A response of Solr may stand
        alone; the query is then its parameter ``q``.
    table : path-like
        The Parquet file to write, which must not exist yet.
    judgments : path-like
        A table with a header (CSV or TSV), TREC qrels, or lines such as ``3 qid:1 # p7`` as in the demo of the LTR
        plug-in of Elasticsearch, plain or ``.gz``. Grades are integers from 0.
    columns : sequence of str, optional
        The columns of query, document and grade in the table of judgments; by default those with usual names. The query
        is a text, or an id in a column such as ``query_id``.
    labels : mapping of str to int, or sequence of float, optional
        The label of each grade, or limits of grades; see `load_table`.
    log : str, optional
        Which log to read if there are several: a log spec of Elasticsearch or OpenSearch, a field of Solr, or
        "matchfeatures", "summaryfeatures" or "rankfeatures" of Vespa.
    document : str, optional
        The field of Solr or Vespa that holds the document id; by default ``id`` for Solr and ``documentid`` for Vespa.
    exclude : sequence of str
        Features to leave out.
    unjudged : int, optional
        The label of documents without a judgment; by default they are left out.

    Returns
    -------
    Ingested
        The table has the columns qid, label, query, doc and position, and then the features. The rows of a query are
        sorted by position; missing values are null. The metadata of the file say which columns are features.

    Raises
    ------
    ValueError
        For input that cannot be read or joined, or contradicts itself; the message names file and line. Nothing is
        written then.
    OSError
        If a file cannot be read or written, or the table exists already.

    Notes
    -----
    Time O(n log n) and memory O(n) for n logged values.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> hits = [{"id": "a", "[features]": "bm25=0.5"}, {"id": "b", "[features]": "bm25=2.0"}]
    >>> with TemporaryDirectory() as folder:
    ...     log, judged = Path(folder, "log.jsonl"), Path(folder, "judged.csv")
    ...     _ = log.write_text(json.dumps({"query": "shoes", "response": {"response": {"docs": hits}}}))
    ...     _ = judged.write_text("query,doc,grade\nshoes,a,1\nshoes,b,0\n")
    ...     done = ingest(log, Path(folder, "table.parquet"), judgments=judged)
    >>> done.engine, done.features, done.n_documents
    ('solr', ('bm25',), 2)
    """
    paths = [Path(logs)] if isinstance(logs, str | Path) else list(map(Path, logs))
    path, judgments_path = Path(table), Path(judgments)
    if path.suffix != ".parquet":
        raise ValueError(f"{path}: the table is a Parquet file; write --out NAME.parquet")
    if path.exists():
        raise FileExistsError(f"{path} exists; remove it, or choose another file")
    check_at_least(0, MAX_LABEL, or_none=True, unjudged=unjudged)
    grades = read_judgments(judgments_path, columns, tables.checked_labels_rule(labels))
    result = _Log(paths, log, document, set(exclude))
    result.read()
    hits, X = result.hits(grades)
    label, joined = _labels(hits, grades, judgments_path, unjudged)
    rows = hits.assign(label=label, order=pd.factorize(hits["qid"])[0])[label >= 0]
    rows = rows.sort_values(["order", "position", "doc"], kind="stable")
    X = X[rows.index]
    _write(path, rows, X, result)
    n_missing = int(np.isnan(X).sum())
    lines = [
        f"read {result.n_responses:,} responses of {ENGINES[result.engine].title}: "
        f"{len(hits):,} documents, {len(result.names)} features",
        *joined,
        f"missing values: {n_missing:,}",
    ]
    if (X == 0).any() and (result.engine != "elasticsearch" or not n_missing):
        lines.append("a 0 may stand for a missing value: this log does not tell them apart")
    n_queries = rows["qid"].nunique()
    lines += [
        f"wrote {path}: {n_queries:,} queries, {len(rows):,} documents, labels "
        f"{min(rows.label)} to {max(rows.label)}",
        f"next: moerank data describe {path}",
    ]
    return Ingested(path, result.engine, result.names, n_queries, len(rows), tuple(lines))


def _write(path: Path, rows: pd.DataFrame, X: Floats, result: "_Log") -> None:
    """Write the table: the columns of `OWN_COLUMNS`, then the features."""
    arrays = {name: pa.array(rows[name], kind) for name, kind in OWN_COLUMNS.items()}
    for name, column in zip(result.names, X.T, strict=True):
        arrays[name] = pa.array(column, from_pandas=True)
    roles = {"label": "label", "query": "qid", "document": "doc", "features": result.names}
    tables.write_table(path, arrays, {"roles": roles, "engine": result.engine})


# Reading


@dataclass
class _Log:
    """The hits of log files; `values` holds the values of one hit after the other."""

    paths: list[Path]
    log: str | None
    document: str | None
    exclude: set[str]
    engine: str = ""
    names: tuple[str, ...] = ()
    n_responses: int = 0
    rows: list[tuple[str | None, str | None, str, int, str]] = field(default_factory=list)
    values: "array[float]" = field(default_factory=lambda: array("d"))
    seen: set[str] = field(default_factory=set)

    def read(self) -> None:
        """Read all files."""
        for path in self.paths:
            for line, text in text_lines(path):
                location = f"{path}, line {line}"
                try:
                    if text.strip():
                        self._add(location, read_json(text, float))
                except json.JSONDecodeError as error:
                    raise ValueError(
                        f"{location}: not JSON ({error.msg}, column {error.colno}); "
                        "write one response per line"
                    ) from None
                except (KeyError, TypeError, AttributeError) as error:
                    raise ValueError(
                        f"{location}: not a response of a search engine ({error!r})"
                    ) from None
                except (ValueError, OverflowError) as error:
                    raise ValueError(f"{location}: {error}") from None
        if not self.names:
            raise ValueError(
                f"{self.paths[0]}: no response has a hit with features that --exclude keeps"
            )
        for name in self.exclude - self.seen:
            raise ValueError(f"--exclude: {unknown('feature', name, sorted(self.seen))}")
        for name in set(self.names) & set(OWN_COLUMNS):
            raise ValueError(
                f"the feature {name!r} has the name of another column; leave it out by --exclude"
            )

    def _add(self, location: str, entry: Any) -> None:
        """Add the hits of a line."""
        query, text, response = _envelope(entry)
        self.engine = _engine_of(response)
        self.n_responses += 1
        hits = ENGINES[self.engine].hits(response, self.log, self.document)
        for position, (doc, features) in enumerate(hits, start=1):
            if doc is None:
                raise ValueError("a hit has no document id; log it again with one")
            values = self._numbers(doc, features)
            if not self.rows:
                self.names = tuple(values)
            for name in sorted(values.keys() ^ set(self.names)):
                has = "has no" if name in self.names else "has a further"
                remedy = f"log the same features for all, or leave it out by --exclude {name!r}"
                raise ValueError(
                    f"the hit {doc!r} {has} feature {name!r}, unlike the hits before; {remedy}"
                )
            self.values.extend(values[name] for name in self.names)
            self.rows.append((query, text, doc, position, location))

    def _numbers(self, doc: str, features: Sequence[tuple[str, object]]) -> dict[str, float]:
        """Return the values of a hit by the names of the features; NaN is missing."""
        values = {}
        for name, value in features:
            self.seen.add(name)
            if name in self.exclude:
                continue
            if name in values:
                raise ValueError(
                    f"the hit {doc!r} has the feature {name!r} twice; keep one, or choose a log by "
                    "--log"
                )
            value = nan if value is None or value == "NaN" else value
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise ValueError(
                    f"the feature {name!r} holds {repr(value)[:30]}, not a number; leave it out by "
                    f"--exclude {name!r}"
                )
            values[name] = float(value)
        return values

    def hits(self, judgments: pd.DataFrame) -> tuple[pd.DataFrame, Floats]:
        """Return each document of a query once, and its values; refuse one that occurs twice with other values."""
        hits = pd.DataFrame(
            self.rows, columns=["id", "query", "doc", "position", "location"], dtype=object
        )
        location = hits["location"]
        check_texts(hits)
        kind = next((kind for kind in ("id", "query") if hits[kind].notna().all()), None)
        if kind is None:
            row = int(hits["query"].isna().argmax())
            raise ValueError(
                f"{location[row]}: no query with the query_id, which other lines lack; give both"
            )
        hits["qid"] = hits[kind]
        if self.engine == "vespa" and self.document is None:
            hits["doc"] = _short_ids(hits, judgments)
        values = np.frombuffer(self.values).reshape(-1, len(self.names))
        with np.errstate(over="ignore"):
            X = values.astype(ENGINES[self.engine].dtype)  # in which all values must be finite
        for row, column in np.argwhere(np.isinf(X)):
            name = self.names[column]
            raise ValueError(
                f"{location[row]}: the value of {name!r} is infinite or too large; "
                f"--exclude {name!r}"
            )
        numbers = hits.index.to_series()
        earlier = numbers.groupby([hits["qid"], hits["doc"]], sort=False).transform("first")
        is_first = earlier == hits.index
        for row in hits.index[~is_first]:
            if not np.array_equal(X[row], X[earlier[row]], equal_nan=True):
                pair = f"document {hits['doc'][row]!r} of query {hits['qid'][row]!r}"
                raise ValueError(
                    f"{location[row]}: {pair} has other values than in "
                    f"{location[earlier[row]]}; keep one (documents of two indices need ids of "
                    "their own)"
                )
        return hits[is_first].reset_index(drop=True), X[is_first]


def _short_ids(hits: pd.DataFrame, judgments: pd.DataFrame) -> pd.Series:
    """Return Vespa's ids after the fourth colon, unless the judgments have whole ids."""
    ids = hits["doc"]
    if judgments["doc"].str.startswith("id:").all():
        return ids
    short = ids.str.split(":", n=4).str[4]
    for row in np.flatnonzero(ids.groupby(short).transform("nunique") > 1).tolist()[-1:]:
        other = ids[(short == short[row]) & (ids != ids[row])].iloc[0]
        raise ValueError(
            f"{hits['location'][row]}: {ids[row]!r} and {other!r} end alike; pass judgments with "
            "whole ids"
        )
    return short


def _envelope(entry: Any) -> tuple[str | None, str | None, Json]:
    """Return the id and the text of a query, at least one of them, and the response."""
    is_wrapped = "response" in entry and not {"query", "query_id"}.isdisjoint(entry)
    response = entry["response"] if is_wrapped else entry
    query, text = _text(entry.get("query_id")), _text(entry.get("query"))
    if not is_wrapped:
        text = _text(response.get("responseHeader", {}).get("params", {}).get("q"))
    if query is None and text is None:
        raise ValueError(
            "no response says which query it answers; write "
            '{"query": "trail shoes", "response": {…}}'
        )
    return query, text, response


def _text(value: object) -> str | None:
    """Return an id or a query as text, None if there is none; refuse tables, and floats, which may mean several ids."""
    if value is None or (isinstance(value, str) and value):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{str(value)[:30]!r} is neither an id nor a query; write it as a text")


# Engines


def _plugin_hits(response: Json, log: str | None, document: str | None) -> Iterator[Hit]:
    """Yield the hits of the LTR plug-ins of Elasticsearch and OpenSearch, with ``fields._ltrlog``."""
    if document is not None:
        raise ValueError(
            "--id is not for logs of Elasticsearch and OpenSearch, whose hits have an _id"
        )
    for hit in response["hits"]["hits"]:
        doc, entries = _text(hit["_id"]), hit.get("fields", {}).get("_ltrlog")
        if not entries:
            raise ValueError(
                f"the hit {doc!r} has no _ltrlog; ask for it by ext.ltr_log in the request"
            )
        logs = [(name, features) for entry in entries for name, features in entry.items()]
        if log not in (None, *dict(logs)):
            raise ValueError(f"--log: {unknown('log', str(log), dict(logs))}")
        lists = [features for name, features in logs if log in (None, name)]
        yield doc, [(feature["name"], feature.get("value")) for feature in chain(*lists)]


def _solr_hits(response: Json, log: str | None, document: str | None) -> Iterator[Hit]:
    """Yield the documents of Solr, with the text of their ``[features]``."""
    name = document or "id"
    for doc in response["response"]["docs"]:
        if name not in doc:
            raise ValueError(
                f"a document has no field {name!r}; add it to fl, or name the unique key by --id"
            )
        text = doc.get(log or "[features]")
        if not isinstance(text, str):
            raise ValueError(
                f"the document {doc[name]!r} has no {log or '[features]'}; add it to fl, or name "
                "it by --log"
            )
        yield _text(doc[name]), _solr_values(text)


def _solr_values(text: str) -> list[tuple[str, object]]:
    """Return the features of a text such as ``title=6.25,stars=NaN`` or ``title:6.25 stars:NaN``."""
    number = f"(?:NaN|[+-]?Infinity|{NUMBER.pattern})"
    for delimiter, separator in ("=,", ": "):
        pairs = [pair.rpartition(delimiter) for pair in text.split(separator) if pair]
        are_features = (
            # A name with a number is the feature before, behind an unknown separator.
            name and re.fullmatch(number, value) and not re.search(rf"[:;=]\s*{number}", name)
            for name, _, value in pairs
        )
        if all(are_features):
            return [(name, float(value)) for name, _, value in pairs]
    raise ValueError(f"the features {text[:40]!r} are not separated as in 'a=1,b=2' or 'a:1 b:2'")


def _vespa_children(node: Json) -> Iterator[Json]:
    """Yield what is below a node of Vespa's answer, without groups and lists of them."""
    for child in node.get("children", []):
        if re.match("(group|grouplist|hitlist):", str(child.get("id"))):
            yield from _vespa_children(child)
        else:
            yield child


VESPA_LOGS = ("matchfeatures", "summaryfeatures", "rankfeatures")


def _vespa_hits(response: Json, log: str | None, document: str | None) -> Iterator[Hit]:
    """Yield the hits of Vespa, those in groups too."""
    for child in _vespa_children(response["root"]):
        identifier, fields = str(child.get("id", "")), child.get("fields", {})
        logs = [name for name in VESPA_LOGS if name in fields and log in (None, name)]
        if len(logs) != 1:
            if logs:
                reason = f"has {' and '.join(logs)}; choose one by --log"
            else:
                reason = f"has no {log or VESPA_LOGS[0]}; list match-features in the rank profile"
            raise ValueError(f"the hit {identifier!r} {reason}")
        doc = _text(fields.get("documentid", identifier) if document is None else fields[document])
        if document is None and not re.match("id:[^:]*:[^:]*:[^:]*:.", str(doc), re.DOTALL):
            raise ValueError(
                f"{doc!r} is an internal id, which may change; return documentid, or name a field "
                "by --id"
            )
        features = [
            (re.sub(r"^rankingExpression\((.*)\)$", r"\1", name), value)
            for name, value in fields[logs[0]].items()
            if name != "vespa.summaryFeatures.cached"
        ]
        yield doc, features


class Engine(NamedTuple):
    """A kind of log."""

    title: str  # in messages
    # Yields the hits of a response in order.
    hits: Callable[[Json, str | None, str | None], Iterator[Hit]]
    dtype: Literal["f4", "f8"]


ENGINES = {
    "elasticsearch": Engine("Elasticsearch or OpenSearch", _plugin_hits, "f4"),
    "solr": Engine("Solr", _solr_hits, "f4"),
    "vespa": Engine("Vespa", _vespa_hits, "f8"),
}


def _engine_of(response: Json) -> str:
    """Return which engine wrote a response; refuse an error, and one that lacks hits because of a failure."""
    root = response.get("root", {})
    if failed := response.get("error") or root.get("errors"):
        raise ValueError(f"an error instead of hits ({str(failed)[:60]}); log it again")
    if response.get("timed_out") or response.get("responseHeader", {}).get("partialResults"):
        raise ValueError("the search timed out; log it again")
    if response.get("_shards", {}).get("failed") or root.get("coverage", {}).get("full") is False:
        raise ValueError("some shards failed; log it again")
    kinds = {"root": "vespa", "response": "solr", "hits": "elasticsearch"}
    engine = next((engine for key, engine in kinds.items() if key in response), None)
    if engine is None:
        raise ValueError(
            "not a response of Elasticsearch, OpenSearch, Solr or Vespa, or a grouped one"
        )
    return engine


# Judgments

USUAL_COLUMNS = {  # by their content, in lower case and without other characters
    "query": "query querytext keywords userquery",
    "id": "queryid qid",
    "doc": "docid doc documentid document corpusid",
    "grade": "grade rating gain label relevance relevancelabel judgment judgement score",
}


def read_judgments(
    path: Path, columns: Sequence[str] | None, rule: tables.Labels | None = None
) -> pd.DataFrame:
    """Return the judgments of a file, plain or ``.gz``: CSV or TSV with a header, qrels of TREC, or LETOR's form.

    The columns are ``query`` (a text) or ``id`` or both, ``doc``, ``grade`` and ``location``. `columns` names those of
    the query, document and grade in a table. A malformed line is a ValueError with its number.
    """
    lines, remarks, start = text_lines(path), [], (1, "")
    for start in lines:
        if start[1].strip() and not start[1].startswith("#"):
            break
        remarks.append(start)
    lines, grade = chain([start], lines), "grade"
    rows: Iterator[dict[str, str]]
    if columns is None and re.fullmatch(r"([^\s,;]+\s+){3}-?[0-9.]+\s*", start[1]):
        qrels = trec_lines(path, lines, "q1 0 p7 3")
        rows = (
            {"id": words[0], "doc": words[2], "grade": words[3], "location": f"{path}, line {line}"}
            for line, words in qrels
        )
    elif columns is None and re.match(r"[0-9.]+\s+qid:", start[1]):
        rows = _letor_rows(path, chain(remarks, lines))
    else:
        table = csv_table(path, lines)[0]
        header = [name.strip() for name in next(table, (0, []))[1]]
        indices = _indices(path, header, columns)
        rows, grade = _table_rows(path, table, indices), header[indices["grade"]]
    judgments = pd.DataFrame(list(rows))
    if judgments.empty:
        raise ValueError(f"{path}: there is no judgment in the file")
    try:
        grades = pa.chunked_array([pa.array(judgments["grade"], pa.string())])
        judgments["grade"] = tables.labels_of(grades, path, grade, rule)
    except WrongRowError as error:
        raise ValueError(f"{judgments['location'][error.row]}: {error.reason}") from None
    check_texts(judgments)
    return judgments


def _letor_rows(path: Path, lines: Lines) -> Iterator[dict[str, str]]:
    """Yield the judgments of lines such as ``3 qid:1 # p7 Boots``; remarks such as ``# qid:1: boots`` name queries."""
    texts = {}
    for number, line in lines:
        # A text may have a weight.
        if remark := re.match(r"#\s*qid:(\S+):\s*(.*?)(?:\*[0-9.]+)?\s*$", line):
            texts[remark[1]] = remark[2]
        elif line.strip() and not line.startswith("#"):
            location = f"{path}, line {number}"
            judgment = re.match(r"([0-9.]+)\s+qid:(\S+)[^#]*#\s*(\S+)", line)
            if judgment is None:
                raise ValueError(f"{location}: {line[:40]!r} is not like '3 qid:1 # p7'")
            grade, query, doc = judgment.groups()
            row = {"id": query, "doc": doc, "grade": grade, "location": location}
            if texts:
                if query not in texts:
                    raise ValueError(
                        f"{location}: no remark '# qid:{query}: text' names the query; add one"
                    )
                row["query"] = texts[query]
            yield row


def check_texts(queries: pd.DataFrame) -> None:
    """Refuse an ``id`` that has two texts in the column ``query``."""
    if {"id", "query"} <= set(queries):
        texts = queries[["id", "query"]].dropna().drop_duplicates()
        for row in texts.index[texts["id"].duplicated()][:1]:
            query, text = texts.loc[row]
            earlier = texts[texts["id"] == query]["query"].iloc[0]
            both = f"the query id {query!r} has the text {text!r}, and {earlier!r} before"
            raise ValueError(
                f"{queries['location'][row]}: {both}; give each query an id of its own"
            )


def _table_rows(path: Path, rows: Rows, indices: Mapping[str, int]) -> Iterator[dict[str, str]]:
    """Yield the rows of a table that have a grade; Quepid has rows without one."""
    for line, row in rows:
        # Quepid writes a space before a character that could begin a formula.
        fields = {role: re.sub(r"^ (?=[-=+@])", "", row[index]) for role, index in indices.items()}
        if not fields["grade"].strip():
            continue
        location = f"{path}, line {line}"
        if "" in fields.values():
            raise ValueError(f"{location}: a grade without a query or a document")
        yield {**fields, "grade": fields["grade"].strip(), "location": location}


def _indices(path: Path, header: list[str], columns: Sequence[str] | None) -> dict[str, int]:
    """Return the indices of the columns by their content."""
    letters = [re.sub("[^a-z]", "", name.lower()) for name in header]
    names_of = {}
    for role, usual_names in USUAL_COLUMNS.items():
        is_usual = [word in usual_names.split() for word in letters]
        names_of[role] = list(compress(header, is_usual))
    if columns is not None:
        if len(columns) != 3:
            raise ValueError(
                f"--columns names three columns, QUERY,DOCUMENT,GRADE, not {','.join(columns)!r}"
            )
        for name in columns:
            if name not in header:
                raise ValueError(f"{path}: {unknown('column', name, header)}")
        query, doc, grade = columns
        kind = "id" if query in names_of["id"] else "query"
        names_of = {kind: [query], "doc": [doc], "grade": [grade]}
    for role, names in names_of.items():
        if len(names) > 1 or header.count("".join(names)) > 1:
            raise ValueError(
                f"{path}: several columns may hold the {role}, {' and '.join(map(repr, names))}; "
                "choose one by --columns"
            )
    indices = {role: header.index(names[0]) for role, names in names_of.items() if names}
    if not {"query", "id"} & set(indices) or not {"doc", "grade"} <= set(indices):
        raise ValueError(
            f"{path}: no columns of query, document and grade among {', '.join(header)[:60]}; name "
            "them by --columns"
        )
    return indices


# Joining


def _labels(
    hits: pd.DataFrame, judgments: pd.DataFrame, path: Path, unjudged: int | None
) -> tuple[pd.Series, list[str]]:
    """Return the label of each hit, −1 if it is left out, and what was joined, in sentences."""
    kinds = [kind for kind in ("query", "id") if kind in judgments]
    # If both sides have no kind of name in common, the ids of one side are the texts of the other.
    kind = next((kind for kind in kinds if hits[kind].notna().all()), kinds[0])
    kind_of_log = kind if hits[kind].notna().all() else "qid"
    keys = pd.MultiIndex.from_frame(judgments[[kind, "doc"]])
    groups = judgments.set_index(keys)["grade"].groupby(level=[0, 1], sort=False)
    grades = groups.agg(["min", "max"])
    for query, doc in grades.index[grades["min"] < grades["max"]]:
        locations = " and ".join(judgments["location"][keys == (query, doc)])
        raise ValueError(
            f"{locations}: several grades of document {doc!r} for query {query!r}; keep one"
        )
    index = grades.index.get_indexer(pd.MultiIndex.from_frame(hits[[kind_of_log, "doc"]]))
    is_judged = index >= 0
    word = "text" if kind == "query" else "id"
    n_joined = len(set(index[is_judged]))
    joined = f"joined {n_joined:,} of {len(grades):,} judgments by query {word}"
    if not n_joined:
        logged, graded = hits.iloc[0], judgments.iloc[0]
        raise ValueError(
            f"{path}: {joined}: the log has document {logged['doc']!r} of query "
            f"{logged[kind_of_log]!r}, the judgments {graded['doc']!r} of {graded[kind]!r}; write "
            "both alike, and ids of queries in a column query_id"
        )
    sentences = [joined]
    if n_unjudged := int((~is_judged).sum()):
        how = "left out (--unjudged 0 keeps them)"
        if unjudged is not None:
            how = f"with the label {unjudged}"
        sentences.append(f"documents without a judgment: {n_unjudged:,}, {how}")
    absent = judgments[kind][~judgments[kind].isin(hits[kind_of_log])].unique()
    if len(absent):
        sentences.append(
            f"judged queries that are not in the log: {len(absent):,}, such as {absent[0]!r}"
        )
    label_of_others = -1 if unjudged is None else unjudged
    return pd.Series(
        np.where(is_judged, grades["max"].to_numpy()[index], label_of_others)
    ), sentences
