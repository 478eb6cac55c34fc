"""Responses of search engines in files of logs, read one at a time, and the values of the features of their hits.

`ENGINES` has a row for each kind of log. A reader takes a response and yields its hits; values are as they are logged.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from math import isinf, isnan, nan
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

from moerank.checks import unknown
from moerank.data.read.csv import opened, text_lines
from moerank.data.read.letor import LARGEST_FEATURE
from moerank.files import Json, read_text

MOST_NAMES = 2**24
"""Bytes of a file of names, at most."""


@dataclass(frozen=True)
class LogOptions:
    """How a log is read; the command line has the same options.

    Attributes
    ----------
    engine : str, optional
        A key of `moerank.data.logs.responses.ENGINES`; by default the first response decides.
    log : str, optional
        Which log of several: of the log specs of the LTR plug-ins, or ``matchfeatures``, ``summaryfeatures`` or
        ``rankfeatures`` of Vespa (``match``, ``summary`` or ``rank`` of pyvespa).
    field : str, optional
        The field of Solr that holds the features; by default the only one in brackets, as ``[features]``.
    id : str, optional
        The field of Solr or Vespa that holds the document id.
    names : path-like, optional
        A file of feature names: one a line, an XGBoost feature map, or a model of Elastic.
    features, exclude : tuple of str
        The only features that are read, and features that are left out.
    separators : str, optional
        Solr's sign between name and value, and its sign between features, as ``"=,"``.
    sparse_default : float, optional
        The log of Solr is sparse, and a feature that it leaves out has this value (0, or NaN for missing).
    requests : path-like, optional
        The requests of a file of ``_msearch``, two lines each.
    query_param : str, optional
        The parameter of a request that holds the user's query; for `requests` by default ``keywords``.
    missing_as_zero : bool, default False
        Missing values become 0.
    partial : bool, default False
        Take responses that timed out or lack shards, and skip those that are errors.
    """

    engine: str | None = None
    log: str | None = None
    field: str | None = None
    id: str | None = None
    names: str | Path | None = None
    features: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    separators: str | None = None
    sparse_default: float | None = None
    requests: str | Path | None = None
    query_param: str | None = None
    missing_as_zero: bool = False
    partial: bool = False


class Logged(NamedTuple):
    """A response with its query, or a line of a table that is a hit by itself."""

    line: int
    id: str | None
    query: str | None
    body: Any
    named: bool = False
    """Whether the query is the name of the file."""


def as_text(value: object) -> str | None:
    """Return an id or a query as text, None if there is none; refuse tables, and floats, which may mean several ids."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{str(value)[:30]!r} is no id or query; write it as a text")


def log_files(logs: Sequence[str | Path]) -> list[Path]:
    """Return the files, with those of folders in the order of their names; ``-`` is standard input."""
    files: list[Path] = []
    for path in map(Path, logs):
        inside = sorted(entry for entry in path.iterdir() if entry.is_file()) if path.is_dir() else [path]
        files += [entry for entry in inside if not entry.name.startswith(".")]
    if not files:
        raise FileNotFoundError(f"no file of logs in {', '.join(map(str, logs)) or 'an empty list'}; name one")
    return files


@contextmanager
def text_of(path: Path) -> Iterator[TextIO]:
    """Open the text of a file, plain or ``.gz``, or that of standard input."""
    if str(path) == "-":
        with text_lines(sys.stdin.buffer) as lines:
            yield lines
        return
    with opened(path) as (file, _), text_lines(file) as lines:
        yield lines


def responses(path: Path, lines: Iterator[str], options: LogOptions) -> Iterator[Logged]:
    """Yield the responses of a JSON file: one a line, an array, ``_msearch``, or a single one."""
    requests = _requests(Path(options.requests), options.query_param or "keywords") if options.requests else None
    bare: Logged | None = None
    n_read = 0
    for line, document in _documents(path, lines):
        for query, response in _unwrapped(path, document, requests):
            n_read += 1
            logged = _with_query(path, line, query, response, options.query_param)
            if logged.id is None and logged.query is None:
                bare = bare or logged
            else:
                yield logged
            if bare is not None and n_read > 1:
                raise ValueError(
                    f"{path}, line {bare.line}: no response says which query it answers; write lines like "
                    '{"query": "trail shoes", "response": {…}}, or one response a file, named after its query'
                )
    if bare is not None:
        yield bare._replace(query=path.name.partition(".")[0], named=True)


def _documents(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, Any]]:
    """Yield JSON values and their lines: one a line, or the entries of a single value over all lines."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except RecursionError:
            raise ValueError(f"{path}, line {number}: nested too deeply") from None
        except json.JSONDecodeError as error:
            if number > 1:
                raise ValueError(f"{path}, line {number}: not JSON ({error.msg}, column {error.colno})") from None
            try:
                value = json.loads("".join(chain([line], lines)))
            except (json.JSONDecodeError, RecursionError) as whole:
                raise ValueError(f"{path}: not JSON ({whole})") from None
        for entry in value if isinstance(value, list) else [value]:
            yield number, entry


def _unwrapped(path: Path, document: Any, requests: Iterator[str] | None) -> Iterator[tuple[Json, Any]]:
    """Yield what an envelope says of the query, and its response; of ``_msearch`` all responses."""
    if not isinstance(document, dict):
        raise ValueError(f"{path}: a response is an object of JSON, not {str(document)[:30]!r}")
    if "responses" in document:
        if requests is None:
            raise ValueError(f"{path}: _msearch does not say which queries it answers; name the requests by --requests")
        for response in document["responses"]:
            query = next(requests, None)
            if query is None:
                raise ValueError(f"{path}: there are more responses than requests")
            yield {"query": query}, response
        if next(requests, None) is not None:
            raise ValueError(f"{path}: there are more requests than responses")
    elif "response" in document and ("query" in document or "query_id" in document):
        yield document, document["response"]
    else:
        yield {}, document


def _with_query(path: Path, line: int, query: Json, response: Any, parameter: str | None) -> Logged:
    try:
        told = as_text(query.get("query"))
        if told is None and parameter is not None:
            told = as_text(response.get("responseHeader", {}).get("params", {}).get(parameter))
        return Logged(line, as_text(query.get("query_id")), told, response)
    except ValueError as error:
        raise ValueError(f"{path}, line {line}: {error}") from None


def _requests(path: Path, parameter: str) -> Iterator[str]:
    """Yield the user's query of each request of ``_msearch``: the first text that `parameter` has in it."""
    with text_of(path) as lines:
        for number, request in _documents(path, lines):
            if number % 2 == 0:  # a header stands before each
                found = next(_texts(request, parameter), None)
                if found is None:
                    raise ValueError(
                        f"{path}: request {number // 2} has no text called {parameter!r}; name the parameter of the "
                        "user's query by --query-param"
                    )
                yield found


def _texts(value: object, key: str) -> Iterator[str]:
    """Yield all texts that a key has at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key and isinstance(inner, str):
                yield inner
            yield from _texts(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)


def read_names(path: str | Path | None) -> list[str]:
    """Return the names in a file: one a line, of an XGBoost feature map from ``1 name q`` on, or of Elastic's model."""
    if path is None:
        return []
    text = read_text(Path(path), MOST_NAMES)
    if text.lstrip().startswith("{"):
        return [str(json.loads(name)) for name in re.findall(r'"feature_name"\s*:\s*("(?:[^"\\]|\\.)*")', text)]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    mapped = [re.fullmatch(r"(\d+)[ \t]+(.+?)[ \t]+(?:q|i|int|float|c)", line) for line in lines]
    return [found[2] for found in mapped if found and int(found[1])] if all(mapped) else lines


def read_definitions(path: str | Path) -> dict[str, Json]:
    """Return the definitions of features in a file of an engine, as `moerank.export` takes them, by their names.

    It is JSON that holds, at any depth, features of Solr (name, class, params) or of the plugins of Elasticsearch and
    OpenSearch (name, template), or feature extractors of Elasticsearch's own learning to rank.
    """
    found: dict[str, Json] = {}

    def read(value: Any) -> None:
        if isinstance(value, list):
            for inner in value:
                read(inner)
        elif isinstance(value, dict):
            query = value.get("query_extractor")
            if isinstance(query, dict) and {"feature_name", "query"} <= query.keys():
                template = query["query"]
                params = dict.fromkeys(re.findall(r"\{\{[{&]?\s*(\w+)", json.dumps(template)))
                found[str(query["feature_name"])] = {"elasticsearch": {"params": list(params), "template": template}}
            elif {"name", "class"} <= value.keys():
                found[str(value["name"])] = {"solr": {key: value[key] for key in ("class", "params") if key in value}}
            elif {"name", "template"} <= value.keys():
                keys = ("params", "template", "template_language")
                found[str(value["name"])] = {"elasticsearch": {key: value[key] for key in keys if key in value}}
            else:
                read(list(value.values()))

    try:
        read(json.loads(read_text(Path(path), MOST_NAMES)))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON ({error})") from None
    if not found:
        raise ValueError(f"{path}: no feature is defined; give the feature store of Solr, a feature set or a model")
    return found


class FeatureList:
    """The features of a log and their values as bytes; one that a hit of a log not `dense` lacks is `absent`."""

    def __init__(self, options: LogOptions, precision: Literal["f", "d"], *, dense: bool, absent: float) -> None:
        self._options, self._precision, self._dense = options, precision, dense
        self.absent = absent
        self._unknown = 0.0 if options.missing_as_zero else nan
        self._seen: dict[str, None] = {}
        self._known: tuple[str, ...] | None = None
        self._last: tuple[str, ...] = ()
        self._at: list[int | None] = []
        self._places: dict[str, int] = {}
        for name in read_names(options.names):
            self._add(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(self._places)

    def _add(self, name: str) -> None:
        self._seen[name] = None
        wanted = name in self._options.features if self._options.features else name not in self._options.exclude
        if wanted and name not in self._places:
            self._places[name] = len(self._places)

    def pack(self, values: Mapping[str, object]) -> bytes:
        """Return the values of a hit as bytes; values `absent` at the end are left out."""
        names = tuple(values)
        if names != self._last:
            self._known = names if self._known is None else self._known
            for name in sorted(set(names) ^ set(self._known)) if self._dense else ():
                here, there = ("lacks", "have") if name in self._known else ("has", "lack")
                raise ValueError(
                    f"this hit {here} the feature {name!r}, and the hits before {there} it; log the same features for "
                    "all"
                )
            for name in names:
                self._add(name)
            self._last, self._at = names, [self._places.get(name) for name in names]
        row = array(self._precision, [self.absent]) * len(self._places)
        for place, (name, value) in zip(self._at, values.items(), strict=True):
            if place is not None:
                number = value if type(value) is float else _number(value, name)
                if isinf(number):
                    raise ValueError(
                        f"the value of {name!r} is infinite; leave the feature out with --exclude {name!r}"
                    )
                row[place] = self._unknown if isnan(number) else number
        end = len(row)
        while end and (row[end - 1] == self.absent or (isnan(row[end - 1]) and isnan(self.absent))):
            end -= 1
        return row[:end].tobytes()

    def check(self) -> None:
        """Raise a ValueError for a feature that was asked for, or left out, and is in no hit."""
        for option, names in (("--features", self._options.features), ("--exclude", self._options.exclude)):
            for name in names:
                if name not in self._seen:
                    raise ValueError(f"{option}: {unknown('feature', name, self._seen)}")
        if not self._places:
            raise ValueError("the log holds no feature")


def _number(value: object, name: str) -> float:
    """Return the value of a feature as a number, NaN if it is missing."""
    if value is None or value == "NaN":
        return nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    what = "a tensor" if isinstance(value, dict | list) else f"the value {str(value)[:30]!r}"
    raise ValueError(f"the feature {name!r} holds {what}, not a number; leave it out with --exclude {name!r}")


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
