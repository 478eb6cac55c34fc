"""Drafts of problem files for tables: which columns are the label, the query and the features, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from moerank.checks import toml_value, unknown
from moerank.data.read import table as tables
from moerank.data.read.table import LABELS, MISSING, NUMBER, QUERIES, usual_column

if TYPE_CHECKING:
    import pyarrow as pa

MOST_GRADES = 10
"""Largest number of different values in a column that may hold relevance labels."""

LARGEST_EXPONENT = 15
"""Largest label y for the gain 2^y − 1; with larger ones, only the largest label would matter."""

DOCUMENTS = ("doc", "docid", "doc_id", "document", "document_id", "item_id", "product_id", "prop_id", "sku", "asin")
"""Usual names of the column of document ids."""

SEARCH = "mofsrank-staircase[instance_selection=false]"


@dataclass(frozen=True)
class Draft:
    """A problem file that is not written yet: the roles of the columns, with reasons, and columns with gaps."""

    table: Path
    n_rows: int
    label: str
    query: str
    why: tuple[str, str]
    document: str | None
    left_out: dict[str, str]
    gaps: tuple[str, ...]
    largest: float

    @property
    def path(self) -> Path:
        """The path of the problem file, next to the table."""
        return self.table.with_name(f"{self.table.stem}.toml")

    @property
    def reasons(self) -> list[str]:
        """A sentence about each guess."""
        reasons = [f"label: {self.label!r}, {self.why[0]}", f"query: {self.query!r}, {self.why[1]}"]
        reasons += [f"document ids: {self.document!r}, by its name"] if self.document else []
        reasons += [f"left out: {name!r}, {why}" for name, why in self.left_out.items()]
        reasons += [f"missing values, first in {name!r}, become 0" for name in self.gaps[:1]]
        return reasons

    @property
    def text(self) -> str:
        """The problem file: TOML with comments."""
        several, name = self.table.is_dir(), self.table.name
        lines = [
            f"# The problem of {toml_value(name)}, guessed from its first {self.n_rows:,} rows. Correct wrong guesses.",
            f"name = {toml_value(re.sub(r'[^A-Za-z0-9_.-]+', '-', self.table.stem))}",
            "",
            "[data]",
            'source = "table"',
            f"folder = {toml_value(name)}" if several else f"file = {toml_value(name)}",
            f"label = {toml_value(self.label)}  # {self.why[0]}",
            f"query = {toml_value(self.query)}  # {self.why[1]}",
            f"document = {toml_value(self.document)}" if self.document else "",
            f"exclude = {toml_value([*self.left_out])}  # not features" if self.left_out else "",
            "missing = 0.0  # search engines, too, count an absent value as 0" if self.gaps else "",
            'normalize = "standard"  # every export can include this scaling',
            "" if several else "split = {validation = 0.2, test = 0.2}  # shares of the queries",
            "",
            "[metric]",
            'name = "NDCG@10"',
            'gain = "linear"  # labels are too large for 2^y − 1' if self.largest > LARGEST_EXPONENT else "",
            "",
            "[backend]",
            'name = "additive"  # a step function of each feature; "rankrls" is linear, and faster',
            "",
            "[solver]",
            f'name = "{SEARCH}"  # the recommended search; "mofsrank" is the published method',
        ]
        # Drop empty lines that do not stand before a table.
        spaced = [line for line, following in pairwise([*lines, "["]) if line or following.startswith("[")]
        return "\n".join(spaced) + "\n"


@dataclass(frozen=True)
class _Column:
    """The first values of a column: `odd` is the first row with no number, `together` if equal values are adjacent."""

    odd: int | None
    values: tuple[str, ...]
    together: bool
    n_rows: int
    n_missing: int

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> _Column:
        texts = column.cast("string").to_pandas()
        texts = texts[~texts.isin(MISSING) & texts.notna()]
        values = tuple(texts.unique())
        n_runs = int((texts != texts.shift()).sum())
        text = next((value for value in values if not NUMBER.fullmatch(value)), None)
        odd = None if text is None else int(texts.index[texts == text][0])
        return cls(odd, values, n_runs == len(values), len(column), len(column) - len(texts))

    @property
    def is_grade(self) -> bool:
        """Whether the values are whole numbers from 0 with few different ones."""
        few = self.odd is None and 1 < len(self.values) <= MOST_GRADES
        return few and all(float(value) >= 0 and float(value).is_integer() for value in self.values)

    @property
    def is_group(self) -> bool:
        """Whether equal values stand together, on average at least two of each, and none is missing."""
        return self.together and 1 < len(self.values) <= self.n_rows // 2 and not self.n_missing


def draft_problem(
    table: str | Path,
    *,
    label: str | None = None,
    query: str | None = None,
    exclude: Sequence[str] = (),
) -> Draft:
    r"""Draft a problem file for a table, or for a folder with a training, validation and test table.

    The guesses come from the first 20,000 rows. By default the label and the query are columns with usual names. Else
    the label is the only column with few different whole numbers from 0, and the query is the first column whose equal
    values stand together. Columns with values other than numbers, document ids and the columns in `exclude` are not
    features. Missing values become 0.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "shop.csv")
    ...     _ = path.write_text("session,title,price,clicks\na,Shoe,9.5,0\na,Boot,8,1\nb,Hat,7,0\nb,Cap,2,2\n")
    ...     draft = draft_problem(path)
    >>> draft.path.name, draft.label, draft.query
    ('shop.toml', 'clicks', 'session')
    """
    path = Path(table)
    first = tables.find_part(path) if path.is_dir() else path
    if first is None or not first.exists():
        raise FileNotFoundError(f"there is no table {path}; give a CSV or Parquet file, or a folder with such files")
    columns = {name: _Column.of(column) for name, column in tables.sample_table(first).items()}
    stored = tables.stored_roles(first)
    for name in (label, query, *exclude):
        if name is not None and name not in columns:
            raise ValueError(f"{first}: {unknown('column', name, list(columns))}")
    given = {"label": label, "query": query}
    why = {role: "as given" if name else "as the file tells" for role, name in given.items()}
    label, query = (name or stored.get(role) for role, name in given.items())
    if not label:
        likely = [name for name, column in columns.items() if column.is_grade]
        reason = "the only column with few different whole numbers"
        label, why["label"] = _guess(first, "label: relevance labels", [*columns], LABELS, likely, reason)
    if not query:
        rest = [name for name in columns if name != label]
        groups = [name for name in rest if columns[name].is_group][:1]
        reason = "the first column whose equal values stand together"
        query, why["query"] = _guess(first, "query: query ids", rest, QUERIES, groups, reason)
    roles = (label, query, stored.get("document") or usual_column(columns, DOCUMENTS))
    others = {name: columns[name] for name in stored.get("features", columns) if name not in roles}
    odd = {name: column.odd for name, column in others.items() if column.odd is not None}
    left_out = {name: f"{tables.row_name(first, row)} holds no number" for name, row in odd.items()}
    left_out |= dict.fromkeys(exclude, "as given")
    features = others.keys() - left_out.keys()
    if not features:
        texts = "".join(f"; {name!r}: {reason}" for name, reason in list(left_out.items())[:5])
        raise ValueError(f"{first}: besides {label!r} and {query!r} there is no column of numbers{texts}")
    gaps = tuple(name for name, column in others.items() if name in features and column.n_missing)
    numbers = columns[label].values if columns[label].odd is None else ()
    largest = max(map(float, numbers), default=0.0)
    reasons = (why["label"], why["query"])
    return Draft(path, columns[label].n_rows, label, query, reasons, roles[2], left_out, gaps, largest)


def _guess(
    path: Path, role: str, columns: Sequence[str], usual: Sequence[str], likely: Sequence[str], reason: str
) -> tuple[str, str]:
    """Return the column with a usual name, or else the only likely one, and the reason."""
    if name := usual_column(columns, usual):
        return name, "by its name"
    if len(likely) == 1:
        return likely[0], reason
    option, what = role.split(": ")
    shown = ", ".join((likely or columns)[:10])
    raise ValueError(f"{path}: which column holds the {what}? Name it by --{option}, such as one of {shown}")
