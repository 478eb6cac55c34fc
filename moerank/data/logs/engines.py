"""The features in responses of search engines, and in tables that tools of theirs have written.

`ENGINES` has a row for each kind of log. A reader takes a response and yields its hits; values are as they are logged.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import nan
from typing import Any, Literal, NamedTuple

from moerank.data.logs.responses import FeatureList, Logged, LogOptions, as_text, read_names
from moerank.data.read.letor import LARGEST_FEATURE
from moerank.files import Json


class Hit(NamedTuple):
    """A document with the values of its features by name; tables also say its label."""

    doc: str
    values: Json
    label: float | None = None


class Reading(NamedTuple):
    """The options of a log, and counts of what its readers left out, by the remark on it."""

    options: LogOptions
    remarks: Counter[str]


def _ltr_plugin(response: Json, reading: Reading) -> Iterator[Hit]:
    """Yield the hits of the LTR plug-ins of Elasticsearch and OpenSearch, with ``fields._ltrlog``."""
    for hit in response["hits"]["hits"]:
        doc, entries = as_text(hit["_id"]), hit.get("fields", {}).get("_ltrlog")
        if not entries:
            raise ValueError(f"the hit {doc!r} has no _ltrlog; ask for it by ext.ltr_log in the request")
        logs: Json = entries[0]
        chosen = {reading.options.log: logs[reading.options.log]} if reading.options.log in logs else logs
        if reading.options.log is not None and chosen is logs:
            raise ValueError(f"there is no log {reading.options.log!r}; there are {', '.join(logs)}")
        values: Json = {}
        for log, features in chosen.items():
            for feature in features:
                name, value = feature["name"], feature.get("value")
                if name == "extra_logging" and isinstance(value, dict):
                    reading.remarks["entries of extra_logging, left out"] += 1
                elif name in values:
                    raise ValueError(f"the logs {', '.join(chosen)} all hold {name!r}; choose one with --log {log}")
                else:
                    values[name] = value
        yield Hit(str(doc), values)


def _elastic(response: Json, reading: Reading) -> Iterator[Hit]:
    """Yield the hits of Elastic's own LTR, with the scores of named queries."""
    for hit in response["hits"]["hits"]:
        values = hit.get("matched_queries", {})
        if isinstance(values, list):
            raise ValueError("matched_queries has no scores; search with ?include_named_queries_score=true")
        yield Hit(str(as_text(hit["_id"])), values)


def _solr(response: Json, reading: Reading) -> Iterator[Hit]:
    """Yield the documents of Solr, also those of groups, with the text of their ``[features]``."""
    options = reading.options
    lists = [response["response"]] if "response" in response else []
    lists += [group["doclist"] for found in response.get("grouped", {}).values() for group in found["groups"]]
    for doc in (doc for entry in lists for doc in entry["docs"]):
        field = options.field or next((name for name in doc if re.fullmatch(r"\[.*\]", name)), "[features]")
        if field not in doc:
            reading.remarks[f"documents without the field {field}, left out"] += 1
            continue
        name = options.id or "id"
        if name not in doc:
            raise ValueError(f"a document has no field {name!r}; add it to fl, or name the unique key by --id")
        yield Hit(str(as_text(doc[name])), _solr_values(doc[field], options.separators))


def _solr_values(text: str, separators: str | None) -> Json:
    """Return the features of a text such as ``title=6.25,stars=NaN``; names may hold the first sign."""
    for signs in [separators] if separators else ["=,", ": "]:
        with suppress(ValueError):
            delimiter, separator = tuple(signs)
            pairs = [pair.rpartition(delimiter) for pair in text.split(separator) if pair]
            values = {name: float(value) for name, _, value in pairs}
            if "" not in values:
                return values
    raise ValueError(
        f"the features {text[:40]!r} are not separated as in 'a=1,b=2' or 'a:1 b:2'; give both signs by --separators"
    )


VESPA_LOGS = ("matchfeatures", "summaryfeatures", "rankfeatures")


def _vespa(response: Json, reading: Reading) -> Iterator[Hit]:
    """Yield the hits of Vespa outside of groups."""
    for child in response["root"].get("children", []):
        identifier, fields = str(child.get("id", "")), child.get("fields", {})
        if identifier.startswith("group:"):
            continue
        log = _chosen(VESPA_LOGS, fields, reading.options.log, f"the hit {identifier!r}")
        doc = fields.get("documentid", identifier) if reading.options.id is None else fields[reading.options.id]
        if reading.options.id is None and not doc.startswith("id:"):
            raise ValueError(
                f"{doc!r} is an internal id, which may change; return documentid, or name a field with an id by --id"
            )
        values = {}
        for name, value in fields[log].items():
            if stripped := re.fullmatch(r"rankingExpression\((.*)\)", name):
                reading.remarks["names without the rankingExpression(…) around them"] += 1
            if name != "vespa.summaryFeatures.cached":
                values[stripped[1] if stripped else name] = value
        yield Hit(str(as_text(doc)), values)


def _chosen(logs: tuple[str, ...], there: Any, asked: str | None, where: str) -> str:
    """Return the log that is there, or the one of several that was asked for."""
    found = [log for log in logs if log in there]
    if asked in found:
        return str(asked)
    if not found:
        raise ValueError(f"{where} has no {' or '.join(logs)}; list match-features in the rank profile")
    if asked is not None:
        raise ValueError(f"{where} has no {asked!r}; --log is one of {', '.join(found)}")
    if len(found) > 1:
        raise ValueError(f"{where} has {' and '.join(found)}; choose one with --log {found[0]}")
    return found[0]


PREFIXES = ("match", "rank", "summary")


def pyvespa_lines(lines: Iterator[str], reading: Reading) -> Iterator[Logged]:
    """Yield the lines of a CSV file of pyvespa's ``VespaFeatureCollector``."""
    rows = csv.DictReader(lines, strict=True)
    names = list(rows.fieldnames or ())
    asked = reading.options.log
    prefix = _chosen(PREFIXES, {name.partition("_")[0] for name in names[2:]}, asked, "the table") + "_"
    features = {name: name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    for row in rows:
        line = rows.line_num
        if None in row or None in row.values():
            raise ValueError(f"line {line}: another number of fields than in the header")
        try:
            values = {name: float(row[column] or nan) for column, name in features.items()}
            label = float(row["relevance_label"]) if row.get("relevance_label") else None
        except ValueError as error:
            raise ValueError(f"line {line}: a value is no number ({error})") from None
        yield Logged(line, row["query_id"], row.get("query"), [Hit(row["doc_id"], values, label)])


def letor_lines(lines: Iterator[str], reading: Reading) -> Iterator[Logged]:
    """Yield the lines of a LETOR file, whose comments say the document, and maybe the query."""
    texts: dict[str, str] = {}
    names = read_names(reading.options.names)
    for number, line in enumerate(lines, start=1):
        if header := re.fullmatch(r"#\s*qid:(\S+?):\s*(.*?)(?:\*[\d.]+)?\s*", line):
            texts[header[1]] = header[2]
        row, _, comment = line.partition("#")
        if not row.strip():
            continue
        found = re.fullmatch(r"\s*(-?[0-9.]+)\s+qid:(\S+)((?:\s+[1-9]\d*:\S+)*)\s*", row)
        if found is None:
            raise ValueError(f"line {number}: {line[:30]!r} is not like '3 qid:1 1:6.25 2:4.5 # p7 trail shoes'")
        said = re.match(r"\s*(?:docid\s*=\s*)?(\S+)\s*(.*?)\s*$", comment)
        if said is None:
            raise ValueError(f"line {number}: no document behind #; moerank run reads files without documents, too")
        pairs = [pair.partition(":") for pair in found[3].split()]
        width = max((int(place) for place, _, _ in pairs), default=0)
        if width > (len(names) or LARGEST_FEATURE):
            raise ValueError(
                f"line {number}: feature {width}, but there are names for {len(names)}; add lines to --names"
            )
        values: Json = dict.fromkeys(names or map(str, range(1, width + 1)), 0.0)
        for place, _, value in pairs:
            try:
                name = names[int(place) - 1] if names else place
                values[name] = nan if value.upper() == "NULL" else float(value)
            except ValueError:
                raise ValueError(f"line {number}: the value {value[:30]!r} of feature {place} is no number") from None
        query = None if said[2].startswith("inc =") else said[2] or None
        yield Logged(number, found[2], texts.get(found[2], query), [Hit(said[1], values, float(found[1]))])


def _table(body: Any, reading: Reading) -> Iterator[Hit]:
    yield from body


@dataclass(frozen=True)
class Engine:
    """A kind of log."""

    title: str  # in messages
    hits: Callable[[Any, Reading], Iterator[Hit]]  # yields the hits of a response in their order
    takes: tuple[str, ...] = ()  # options of `LogOptions` that only some engines have
    precision: Literal["f", "d"] = "f"  # of the values: single or double
    dense: bool = True  # every hit lists all features
    ranked: bool = True  # the order of hits is the one that the user saw
    fills: bool | None = False  # a 0 may be logged for a missing value; None: unless the log lacks some value
    lines: Callable[[Iterator[str], Reading], Iterator[Logged]] | None = None
    total: tuple[str, ...] = ("hits", "total", "value")  # the path to the number of documents that a search found

    def features(self, options: LogOptions) -> FeatureList:
        """Return the list of features of a log."""
        sparse = options.sparse_default
        absent = 0.0 if self.lines or options.missing_as_zero else nan
        dense = self.dense and sparse is None
        return FeatureList(options, self.precision, dense=dense, absent=absent if sparse is None else sparse)


_SEARCH = ("log", "requests", "query_param")
_VESPA_TOTAL = ("root", "fields", "totalCount")

ENGINES = {
    "elasticsearch": Engine("elasticsearch (o19s)", _ltr_plugin, _SEARCH, fills=None),
    "opensearch": Engine("opensearch", _ltr_plugin, _SEARCH, fills=None),
    "elastic": Engine("elastic", _elastic, ("names", "requests", "query_param"), dense=False, ranked=False),
    "solr": Engine(
        "solr",
        _solr,
        ("field", "id", "separators", "sparse_default", "query_param"),
        fills=True,
        total=("response", "numFound"),
    ),
    "vespa": Engine("vespa", _vespa, ("log", "id"), precision="d", fills=True, total=_VESPA_TOTAL),
    "pyvespa": Engine("pyvespa", _table, ("log",), precision="d", ranked=False, fills=True, lines=pyvespa_lines),
    "letor": Engine("letor", _table, ("names",), precision="d", dense=False, ranked=False, lines=letor_lines),
}


def engine_of(response: Json) -> str | None:
    """Return which engine wrote a response; None for a response without hits."""
    if "root" in response:
        return "vespa" if response["root"].get("children") else None
    if "response" in response or "grouped" in response:
        return "solr" if response.get("grouped") or response["response"].get("docs") else None
    hits = response.get("hits", {}).get("hits", [])
    if any("_ltrlog" in hit.get("fields", {}) for hit in hits):
        return "elasticsearch"
    return "elastic" if any(isinstance(hit.get("matched_queries"), dict) for hit in hits) else None


def trouble(response: Json) -> str | None:
    """Say why a response is an error, or has not all hits; None for a whole one."""
    for failed in (response.get("error"), response.get("root", {}).get("errors")):
        if failed:
            return f"an error instead of hits ({str(failed)[:60]})"
    if response.get("timed_out") or response.get("responseHeader", {}).get("partialResults"):
        return "the search timed out"
    if response.get("_shards", {}).get("failed") or response.get("root", {}).get("coverage", {}).get("full") is False:
        return "some shards failed"
    return None
