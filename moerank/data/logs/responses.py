"""Files of logged responses, read one response at a time, and the feature values of their hits."""

from __future__ import annotations

import json
import re
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from math import isinf, isnan, nan
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

from moerank.checks import unknown
from moerank.data.read.csv import opened, text_lines
from moerank.files import Json, read_text

MOST_NAMES = 2**24
"""Bytes of a file of names, at most."""


@dataclass(frozen=True)
class LogOptions:
    """How a log is read; the command line has the same options.

    Attributes
    ----------
    engine : str, optional
        A key of `moerank.data.logs.engines.ENGINES`; by default the first response decides.
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
    """The features of a log in the order of their first appearance, and their values as bytes of one precision.

    In a `dense` log every hit has the same features; in others a feature that a hit does not list is `absent`.
    """

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
            self._refuse_other(names)
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

    def _refuse_other(self, names: tuple[str, ...]) -> None:
        """Refuse a hit with other features than the first one had, where all must have the same."""
        if self._known is None:
            self._known = names
        for name in sorted(set(names) ^ set(self._known)) if self._dense else ():
            here, there = ("lacks", "have") if name in self._known else ("has", "lack")
            raise ValueError(
                f"this hit {here} the feature {name!r}, and the hits before {there} it; log the same features for all"
            )

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
