"""Logs and judgments become one table, which `load_table` reads without being told its columns.

Hits are sorted and joined in a temporary database on the disk: memory does not grow with the log.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from moerank.arrays import Floats
from moerank.checks import check_at_least, check_choice, plain_name, toml_value
from moerank.data.logs.judgments import labels_by, read_judgments
from moerank.data.logs.responses import (
    ENGINES,
    Engine,
    FeatureList,
    Logged,
    LogOptions,
    Reading,
    engine_of,
    log_files,
    read_definitions,
    read_names,
    responses,
    text_of,
    trouble,
)
from moerank.data.measured_costs import Profiles
from moerank.data.read.files import report_reading
from moerank.data.read.parquet import ROLES
from moerank.files import Json, cannot_write, replacing

OWN = ("qid", "label", "query", "doc", "position")
"""Columns of the table in front of the features."""

WEIGHT = "query_weight"
"""A further one, if queries have weights."""

ROWS = 2**13
"""Rows that are written together."""

EVERY = 1000
"""Responses after which progress is reported."""

TABLES = """
PRAGMA cache_size = -65536; -- KiB that are held in memory
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = FILE;
CREATE TABLE queries (q INTEGER PRIMARY KEY, id TEXT UNIQUE, query TEXT, n INTEGER DEFAULT 0);
CREATE TABLE hits (q INTEGER, doc TEXT, position INTEGER, label REAL, place INTEGER, "values" BLOB,
                   PRIMARY KEY (q, doc)) WITHOUT ROWID;
CREATE TABLE judgments (id TEXT, query TEXT, doc TEXT, grade REAL, place TEXT);
BEGIN
"""


@dataclass(frozen=True)
class Ingested:
    """A table that was made of logs.

    Attributes
    ----------
    table : Path
    engine : str
        A key of `moerank.data.logs.responses.ENGINES`.
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
    judgments: str | Path | None = None,
    join: Literal["query", "id"] | None = None,
    grade: str | None = None,
    grades: str | None = None,
    unjudged: int | None = None,
    repeats: Literal["first", "last"] | None = None,
    positions: bool = True,
    weigh_queries: bool = False,
    costs: str | Path | None = None,
    definitions: str | Path | None = None,
    force: bool = False,
    options: LogOptions | None = None,
) -> Ingested:
    r"""Make a table for training of the feature logs of a search engine.

    Parameters
    ----------
    logs : path-like or sequence of path-like
        Files of responses (a JSON object a line, with ``query`` or ``query_id`` beside ``response``; an array of them;
        a single response, named after its query; ``_msearch``), of pyvespa (CSV) or LETOR lines with documents in
        comments; plain or ``.gz``. Folders stand for their files, ``-`` for standard input.
    table : path-like
        The file to write: ``.parquet``, ``.csv`` or ``.csv.gz``.
    judgments : path-like, optional
        See `read_judgments`; by default the labels of the logs.
    join : {"query", "id"}, optional
        Judgments belong to the query of the same text, or of the same id; by default of the same text, if both sides
        have texts.
    grade : str, optional
        The column of grades in a table of judgments.
    grades : str, optional
        How labels are made of grades that are no integers from 0, see `labels_by`.
    unjudged : int, optional
        The label of documents without a judgment; by default they are left out.
    repeats : {"first", "last"}, optional
        Which values count when a query and document are logged again with others; by default that is an error.
    positions : bool, default True
        Whether the order of hits is one that users saw; it is not after a search for documents by their ids.
    weigh_queries : bool, default False
        Whether the weight of a query is the number of its responses in a log of live searches.
    costs : path-like, optional
        A table of the features' costs to write, of the profiles in the responses; see `Profiles`.
    definitions : path-like, optional
        The engine's own definitions of features, which go into ``features.toml``; see `read_definitions`.
    force : bool, default False
        Replace the tables if they are there.
    options : LogOptions, optional
        How the logs are read.

    Returns
    -------
    Ingested
        The table has the columns qid, label, query, doc, position and maybe query_weight, and then the features. A
        query's rows stand by
        position, or else by document; missing values are null. A Parquet file tells which columns are features.
        ``features.toml`` beside it, for `moerank.export`, is written unless it is there.

    Raises
    ------
    ValueError
        For what cannot be read, joined or made a label, with file and line. Nothing is written then.
    OSError
        If a file cannot be read or written, or is there already.

    Notes
    -----
    Time O(n log n) for n logged hits; memory O(n_features · n documents of a block), beside the judgments of a JSON
    file, while the hits lie in a temporary file of about their size.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     log = Path(folder, "log.txt")
    ...     _ = log.write_text("1 qid:7 1:0.5 # a\n0 qid:7 1:2 2:1 # b\n")
    ...     done = ingest(log, Path(folder, "table.parquet"))
    >>> done.engine, done.features, done.n_documents
    ('letor', ('1', '2'), 2)
    """
    path, options = Path(table), options or LogOptions()
    if not path.name.endswith((".parquet", ".csv", ".csv.gz")):
        raise ValueError(f"{path}: the table ends in .parquet, .csv or .csv.gz")
    for file in (path, *([] if costs is None else [Path(costs)])):
        if file.exists() and not force:
            raise FileExistsError(f"{file} exists; choose another file, or replace it with --force")
    if options.engine is not None:
        check_choice(ENGINES, engine=options.engine)
    check_choice(("query", "id"), join=join or "id")
    check_choice(("first", "last"), repeats=repeats or "first")
    check_at_least(0, or_none=True, unjudged=unjudged)
    labels_by(grades, lambda: np.zeros(1))  # a wrong rule is refused before the work
    paths = log_files([logs] if isinstance(logs, str | Path) else logs)
    with closing(sqlite3.connect("", isolation_level=None)) as database:
        try:
            job = _Ingestion(database, options, repeats, positions, unjudged, weigh_queries)
            job.definitions = {} if definitions is None else read_definitions(definitions)
            job.profiles = None if costs is None else Profiles(tuple(read_names(options.names)))
            if judgments is not None:
                job.take_judgments(Path(judgments), grade)
            job.take_logs(paths)
            job.join(judgments, join, grades)
            inputs = [*paths, *([] if judgments is None else [Path(judgments)])]
            if costs is not None:
                job.write_costs(Path(costs))
            job.write(path, inputs, {"grades": grades, "unjudged": unjudged, "repeats": repeats})
        except sqlite3.OperationalError as error:
            raise OSError(f"temporary files: {error}; name a folder with more room by TMPDIR") from None
        return job.done(path)


@dataclass
class _Ingestion:
    """The hits and judgments of one call, in a database."""

    _database: sqlite3.Connection
    _options: LogOptions
    _repeats: Literal["first", "last"] | None
    _ranked: bool
    _unjudged: int | None
    _weigh_queries: bool

    def __post_init__(self) -> None:
        self.profiles: Profiles | None = None
        self.definitions: dict[str, Json] = {}
        self._reading = Reading(self._options, Counter())
        self._kind = self._options.engine
        self._features: FeatureList | None = None
        self._paths: list[Path] = []
        self._last: tuple[str, int] | None = None
        self._whole_ids = True
        self._grade, self._judged = "h.label", ""
        self._labels: dict[float | str, int] = {}
        self._counts = Counter[str]()
        self._said: list[str] = []
        self._missing = np.zeros(0, np.int64)
        self._database.executescript(TABLES)

    def _one(self, question: str, *values: object) -> Any:
        """Return the first row of an answer; None without one."""
        return self._database.execute(question, values).fetchone()

    # Reading

    def take_judgments(self, path: Path, grade: str | None) -> None:
        """Read the judgments."""
        self._database.executemany("INSERT INTO judgments VALUES (?, ?, ?, ?, ?)", read_judgments(path, grade))
        if not self._one("SELECT 1 FROM judgments"):
            raise ValueError(f"{path}: there is no judgment in the file")
        self._whole_ids = bool(self._one("SELECT 1 FROM judgments WHERE doc LIKE 'id:%'"))
        if grade is not None and re.search("click|ctr", grade.lower()):
            self._said.append(f"the grades are {grade!r}: clicks favour documents that stood above others")

    def take_logs(self, paths: list[Path]) -> None:
        """Read all files."""
        self._paths = paths
        for index, path in enumerate(paths):
            with text_of(path) as lines:
                for logged in self._responses(path, lines):
                    try:
                        self._take(index, logged)
                    except ValueError as error:
                        raise ValueError(f"{path}, line {logged.line}: {error}") from None
                    if self._counts["responses"] % EVERY == 0 and str(path) != "-":
                        stored = getattr(lines.buffer, "fileobj", lines.buffer)
                        report_reading(path, min(stored.tell() / path.stat().st_size, 0.999))
            report_reading(path, 1.0)
        if self._features is None:
            raise ValueError(f"{paths[0]}: no response has a hit with features; --from names the kind of log")
        self._features.check()
        for name in self._features.names:
            if name in (*OWN, *([WEIGHT] if self._weigh_queries else [])):
                raise ValueError(f"the feature {name!r} has the name of another column; leave it out by --exclude")

    def _responses(self, path: Path, lines: TextIO) -> Iterator[Logged]:
        """Yield the responses of a file of JSON, or the lines of a table."""
        head: list[str] = []
        for line in lines:
            head.append(line)
            if line.strip():
                break
        first, rest = head[-1].lstrip() if head else "", chain(head, lines)
        if not first or first.startswith(("{", "[")):
            yield from responses(path, rest, self._options)
            return
        letor = first.startswith("#") or re.search(r"\sqid:", first)
        if not letor and not {"query_id", "doc_id"} <= set(first.strip().split(",")):
            raise ValueError(f"{path}: neither JSON, nor LETOR lines, nor a table of pyvespa with query_id and doc_id")
        try:
            engine = self._be("letor" if letor else "pyvespa")
            assert engine.lines is not None
            yield from engine.lines(rest, self._reading)
        except ValueError as error:
            if isinstance(error, UnicodeDecodeError):
                raise
            raise ValueError(f"{path}, {error}") from None

    def _be(self, kind: str) -> Engine:
        """Take a response for one of this kind; another kind than before is refused."""
        engine = ENGINES[self._kind or kind]
        if (engine.hits, engine.lines) != (ENGINES[kind].hits, ENGINES[kind].lines):
            raise ValueError(f"a log of {ENGINES[kind].title}, not of {engine.title}; ingest one kind at a time")
        if self._features is None:
            defaults = LogOptions()
            for name in sorted({name for other in ENGINES.values() for name in other.takes} - set(engine.takes)):
                if getattr(self._options, name) != getattr(defaults, name):
                    raise ValueError(f"--{name.replace('_', '-')} is not for logs of {engine.title}")
            self._features = engine.features(self._options)
            self._kind = self._kind or kind
        return engine

    def _take(self, index: int, logged: Logged) -> None:
        """Store the hits of a response."""
        self._counts["responses"] += 1
        try:
            engine = self._engine(logged.body)
            hits = [] if engine is None else list(engine.hits(logged.body, self._reading))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a response of a search engine ({error!r})") from None
        if engine is None:
            return
        assert self._features is not None
        query, place = self._query(logged), logged.line * len(self._paths) + index
        if self._weigh_queries:
            if engine.lines is not None:
                raise ValueError(f"--weigh-queries counts responses, and {engine.title} has lines of documents")
            self._database.execute("UPDATE queries SET n = n + 1 WHERE q = ?", (query,))
        if self.profiles is not None:
            self.profiles.add(str(query), logged.body)
        for number, hit in enumerate(hits, start=1):
            position = number if engine.ranked and self._ranked else None
            doc = hit.doc if self._whole_ids or self._kind != "vespa" else hit.doc.rpartition("::")[2]
            self._store((query, doc, position, hit.label, place, self._features.pack(hit.values)))
        if _total(logged.body, engine.total) > len(hits):
            self._reading.remarks["responses with fewer hits than were found (ask for larger pages)"] += 1
        if logged.named:
            self._reading.remarks["queries that only the name of a file tells"] += 1

    def _engine(self, body: Any) -> Engine | None:
        """Return the engine of a response with hits; None for one without hits."""
        if isinstance(body, list):
            return ENGINES[str(self._kind)]
        if reason := trouble(body):
            if not self._options.partial:
                raise ValueError(f"{reason}; log it again, or take the hits that are there with --partial")
            self._reading.remarks["responses that were not whole"] += 1
        found = engine_of(body)
        if found is None and not body.get("hits", {}).get("hits"):
            return None
        if found is None and self._kind is None:
            raise ValueError(
                "the hits have neither _ltrlog, nor matched_queries with ?include_named_queries_score=true"
            )
        return self._be(str(found or self._kind))

    def _query(self, logged: Logged) -> int:
        """Return the number of a query."""
        name = logged.query if logged.id is None else logged.id
        if self._last is None or self._last[0] != name:
            known = "INSERT INTO queries (id, query) VALUES (?, ?) ON CONFLICT DO NOTHING"
            self._database.execute(known, (name, logged.query))
            self._last = str(name), self._one("SELECT q FROM queries WHERE id = ?", name)[0]
        return self._last[1]

    def _store(self, row: tuple[int, str, int | None, float | None, int, bytes]) -> None:
        """Store a hit: query, document, position, label, place and values; those of a known document count once."""
        self._counts["hits"] += 1
        if self._database.execute("INSERT INTO hits VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", row).rowcount:
            return
        self._reading.remarks["hits that were logged before"] += 1
        if self._repeats == "last":
            self._database.execute("REPLACE INTO hits VALUES (?, ?, ?, ?, ?, ?)", row)
        elif self._repeats is None:
            known = self._one('SELECT label, "values", place FROM hits WHERE q = ? AND doc = ?', *row[:2])
            if known[:2] != (row[3], row[5]):
                raise ValueError(
                    f"document {row[1]!r} has other values or another label for the same query than in "
                    f"{self._place(known[2])}; --repeats first or last chooses"
                )

    def _place(self, place: int) -> str:
        """Return the file and the line of a hit."""
        line, index = divmod(place, len(self._paths))
        return f"{self._paths[index]}, line {line}"

    def write_costs(self, path: Path) -> None:
        """Write the costs of the features, of the profiles of all responses."""
        assert self.profiles is not None
        found = self.profiles.costs()
        beside = found.write(path)
        self._said.append(
            f"wrote {path}: costs of {len(found.names)} features in µs a query, by the profiles of {found.n_measured} "
            f"queries; standard errors in {beside.name}"
        )

    # Joining

    def join(self, path: str | Path | None, join: Literal["query", "id"] | None, grades: str | None) -> None:
        """Give each hit the grade of its judgment, and make labels of grades."""
        if path is None:
            if unlabelled := self._one("SELECT place FROM hits WHERE label IS NULL"):
                raise ValueError(f"{self._place(unlabelled[0])}: the log has no labels; name judgments by --judgments")
            found = "SELECT label, min(place) FROM hits GROUP BY label", "SELECT label FROM hits"
        else:
            self._join(path, join)
            found = "SELECT grade, min(place) FROM grades GROUP BY grade", "SELECT grade FROM grades"
        label = labels_by(grades, lambda: np.fromiter((row[0] for row in self._database.execute(found[1])), np.float64))
        self._labels = {} if self._unjudged is None else {"none": self._unjudged}
        for grade, place in self._database.execute(found[0]):
            try:
                self._labels[grade] = label(grade)
            except ValueError as error:
                where = self._place(place) if path is None else f"{path}, {place}"
                raise ValueError(f"{where}: {error}") from None

    def _join(self, path: str | Path, join: Literal["query", "id"] | None) -> None:
        """Move the judgments to a table by query and document, and count which have a hit."""
        texts = self._one("SELECT count(query) > 0 AND (SELECT count(query) FROM queries) > 0 FROM judgments")[0]
        key = join or ("query" if texts else "id")
        keys = f"coalesce({key}, {'id' if key == 'query' else 'query'})"
        twice = self._one(
            f"SELECT {keys} AS k, doc, min(rowid), max(rowid) FROM judgments GROUP BY k, doc "
            "HAVING min(grade) < max(grade)"
        )
        if twice:
            places = [self._one("SELECT place FROM judgments WHERE rowid = ?", row)[0] for row in twice[2:]]
            raise ValueError(
                f"{path}, {' and '.join(dict.fromkeys(places))}: two grades of document {twice[1]!r} for query "
                f"{twice[0]!r}; leave one"
            )
        self._database.execute(
            "CREATE TABLE grades (k TEXT, doc TEXT, grade REAL, place TEXT, PRIMARY KEY (k, doc)) WITHOUT ROWID"
        )
        self._database.execute(
            f"INSERT INTO grades SELECT {keys} AS k, doc, grade, min(place) FROM judgments GROUP BY k, doc"
        )
        self._database.execute(f"CREATE INDEX keys ON queries ({key})")
        joined, total = self._one(
            "SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM queries q JOIN hits h USING (q) "
            f"WHERE q.{key} = g.k AND h.doc = g.doc)), count(*) FROM grades g"
        )
        if not joined:
            raise ValueError(f"0 of {total:,} judgments joined by query {_WORD[key]}; {self._why_nothing(key)}")
        self._grade, self._judged = "g.grade", f"LEFT JOIN grades g ON g.k = q.{key} AND g.doc = h.doc"
        text = f"joined {joined:,} of {total:,} judgments by query {_WORD[key]}"
        if left := self._one(f"SELECT count(*) {self._hits()} WHERE g.grade IS NULL")[0]:
            one = left == 1
            became = f"{'was' if one else 'were'} left out (--unjudged 0 keeps {'it' if one else 'them'})"
            if self._unjudged is not None:
                became = f"got the label {self._unjudged}"
            text += f"; {left:,} document{'s' * (not one)} without a judgment {became}"
        self._said.append(text)
        asked = f"SELECT {key} FROM queries WHERE {key} IS NOT NULL"
        others = self._database.execute(f"SELECT DISTINCT k FROM grades WHERE k NOT IN ({asked})")
        if absent := [repr(name) for (name,) in others]:
            self._said.append(f"judged queries that are not in the log: {len(absent):,} ({_some(absent)})")

    def _why_nothing(self, key: str) -> str:
        """Say what of the log and the judgments would fit, from some of their queries and documents."""
        judged = dict(islice(self._database.execute("SELECT k, doc FROM grades"), 1000))
        asked = f"SELECT {key} FROM queries WHERE {key} NOT NULL ORDER BY q LIMIT 1000"
        logged = dict.fromkeys(row[0] for row in self._database.execute(asked))
        other = "id" if key == "query" else "query"
        if any(self._one(f"SELECT 1 FROM queries WHERE {other} = ?", name) for name in judged):
            return f"the judgments have the log's {'ids' if other == 'id' else 'texts'} of queries: --join {other}"
        for name, doc in judged.items():
            if name in logged:
                here = self._one(f"SELECT doc FROM hits JOIN queries USING (q) WHERE {key} = ?", name)[0]
                return f"for query {name!r} the log has documents such as {here!r}, the judgments {doc!r}"
        for difference, same in (("blanks", lambda text: " ".join(text.split())), ("case", str.casefold)):
            folded = {same(name): name for name in logged}
            for name in judged:
                if (fits := folded.get(same(name))) is not None:
                    return f"the log has {fits!r}, the judgments {name!r}: they differ in {difference}"
        return f"the log has queries such as {next(iter(logged), None)!r}, the judgments {next(iter(judged))!r}"

    # Writing

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield number, id, text, document, position, values and grade of each hit that is written, in their order."""
        grade = self._grade if self._unjudged is None else f"ifnull({self._grade}, 'none')"
        return self._database.execute(
            f'SELECT q, q.id, q.query, h.doc, h.position, q.n, h."values", {grade} {self._hits()} '
            f"WHERE {grade} NOT NULL ORDER BY h.q, h.position IS NULL, h.position, h.doc"
        )

    def _hits(self) -> str:
        return f"FROM hits h JOIN queries q USING (q) {self._judged}"

    def write(self, path: Path, inputs: list[Path], rules: dict[str, object]) -> None:
        """Write the table, and features.toml beside it unless it is there."""
        assert self._features is not None
        assert self._kind is not None
        names, single = self._features.names, ENGINES[self._kind].precision == "f"
        number = pa.float32() if single and path.suffix == ".parquet" else pa.float64()
        about = {
            "roles": {"label": "label", "query": "qid", "document": "doc", "features": names}
            | ({WEIGHT: WEIGHT} if self._weigh_queries else {}),
            "engine": self._kind,
            "options": {key: value for key, value in (asdict(self._options) | rules).items() if value},
            "sha256": {str(source): _digest(source) for source in inputs if str(source) != "-"},
        }
        kinds = dict(zip(OWN, (pa.string(), pa.int64(), pa.string(), pa.string(), pa.int64()), strict=True))
        if self._weigh_queries:
            kinds[WEIGHT] = pa.int64()
        schema = pa.schema(
            [*kinds.items(), *((name, number) for name in names)], {ROLES: json.dumps(about, default=str)}
        )
        rows, absent = self._rows(), np.array([self._features.absent], "f4" if single else "f8").tobytes()
        try:
            with _writer(path, schema) as writer:
                while block := list(islice(rows, ROWS)):
                    q, ids, queries, docs, positions, times, values, grades = zip(*block, strict=True)
                    width = len(names) * len(absent)
                    padded = b"".join(v + absent * ((width - len(v)) // len(absent)) for v in values)
                    X = np.frombuffer(padded, "f4" if single else "f8").reshape(len(block), len(names))
                    labels = [self._labels[grade] for grade in grades]
                    self._count(q, labels, positions, X)
                    features = [
                        pa.array(column, number, from_pandas=True) for column in X.T.astype(number.to_pandas_dtype())
                    ]
                    own = [ids, labels, queries, docs, positions, times][: len(kinds)]
                    columns = [pa.array(entries, kind) for entries, kind in zip(own, kinds.values(), strict=True)]
                    writer.write_batch(pa.record_batch([*columns, *features], schema=schema))
        except OSError as error:
            raise cannot_write(path, error) from None
        self._write_features(path.with_name("features.toml"), names)

    def _write_features(self, path: Path, names: Sequence[str]) -> None:
        """Write what is known of the features, for exports; a file that is there may hold the user's definitions."""
        taken = Counter[str]()
        text = (
            "# Features of the search engine, for moerank export --features features.toml; complete each with\n"
            '# solr = {class = "SolrFeature", params = {q = "{!field f=title}${q}"}}\n'
            '# elasticsearch = {params = ["q"], template = {match = {title = "{{q}}"}}}\n'
        )
        for name in names:
            plain = plain_name(name)
            taken[plain] += 1
            quoted = toml_value(name)
            text += f'\n[{quoted}]\nname = "{plain}{f"_{taken[plain]}" if taken[plain] > 1 else ""}"\n'
            text += f"vespa = {quoted}\n" * (self._kind in ("vespa", "pyvespa"))
            text += "".join(f"{key} = {toml_value(table)}\n" for key, table in self.definitions.get(name, {}).items())
        if self.definitions and (undefined := [name for name in names if name not in self.definitions]):
            self._said.append(f"features without a definition: {_some(undefined)}")
        alike = [name for name, n in taken.items() if n > 1]
        if alike:
            self._said.append(f"got numbers, as engines take them for the same: features called {_some(alike)}")
        if path.exists():
            self._said.append(f"kept {path}{'; remove it to take the definitions' * bool(self.definitions)}")
        else:
            with replacing(path) as file:
                file.write(text.encode())

    def _count(self, queries: Sequence[int], labels: list[int], positions: Sequence[int | None], X: Floats) -> None:
        """Count rows that are written, X (n_rows, n_features)."""
        counts = self._counts
        counts["queries"] += len({*queries} - {counts["last query"]})
        counts["last query"] = queries[-1]
        counts["documents"] += len(X)
        counts["zeros"] += int((X == 0).sum())
        counts["position"] = max(counts["position"], *(position or 0 for position in positions))
        counts["largest label"] = max(counts["largest label"], *labels)
        counts["least label"] = min(counts.get("least label", labels[0]), *labels)
        unknown = np.isnan(X).sum(axis=0)
        self._missing = unknown + self._missing if len(self._missing) else unknown

    def done(self, path: Path) -> Ingested:
        """Return what was done, in sentences."""
        assert self._features is not None
        assert self._kind is not None
        engine, names, counts = ENGINES[self._kind], self._features.names, self._counts
        n = counts["documents"]
        log = f', log "{self._options.log}"' if self._options.log else ""
        lines = [
            f"read {counts['responses']:,} {'lines' if engine.lines else 'responses'} of {engine.title}{log}: "
            f"{counts['hits']:,} documents, {len(names)} features",
            *self._said,
            *(f"{text}: {times:,}" for text, times in self._reading.remarks.items()),
        ]
        missing = [(name, count) for name, count in zip(names, self._missing.tolist(), strict=True) if count]
        shown = _some([f"{name} {count:,}" for name, count in missing])
        text = f"missing: {shown} of {n:,}" if missing else "no value is missing"
        lines.append(text + f"; positions 1 to {counts['position']}" * (counts["position"] > 0))
        if nowhere := [name for name, count in missing if count == n]:
            lines.append(f"features that are missing in every row: {_some(nowhere)}")
        if counts["zeros"] and (engine.fills or (engine.fills is None and not missing)):
            lines.append("a 0 may stand for a missing value: this log does not tell them apart")
        labels = f"labels {counts['least label']} to {counts['largest label']}"
        lines.append(f"wrote {path}: {counts['queries']:,} queries, {n:,} documents, {labels}")
        if path.suffix != ".parquet":
            lines.append(f"features = {json.dumps(names, ensure_ascii=False)}")
        lines.append(f"next: moerank data describe {path}{' --missing query-min' * bool(missing)}")
        return Ingested(path, self._kind, names, counts["queries"], n, tuple(lines))


def _some(texts: Sequence[str]) -> str:
    """Return the first five of some texts, for a message."""
    return ", ".join(texts[:5]) + ", …" * (len(texts) > 5)


_WORD = {"query": "text", "id": "id"}


def _total(body: Any, path: tuple[str, ...]) -> int:
    """Return how many documents a search found, 0 if the response does not say."""
    for key in path:
        body = body.get(key, 0) if isinstance(body, dict) else body
    return body if isinstance(body, int) else 0


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _writer(path: Path, schema: pa.Schema) -> Iterator[Any]:
    """Open a writer of record batches for a table that is complete or not there."""
    with ExitStack() as opened:
        file: Any = opened.enter_context(replacing(path))
        if path.suffix == ".gz":
            file = opened.enter_context(gzip.GzipFile(fileobj=file, mode="wb", mtime=0))
        kind = pq.ParquetWriter if path.suffix == ".parquet" else pa.csv.CSVWriter
        yield opened.enter_context(kind(file, schema))
