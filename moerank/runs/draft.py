"""Drafts of problem files for tables, with a reason for each guess, and warnings about features that know too much."""

import re
import tomllib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from moerank.arrays import Mask, Vector
from moerank.checks import toml_value, unknown
from moerank.data import Fold, RankingData
from moerank.data.describe import FEWEST, cautions_about
from moerank.data.overlap import shared_queries
from moerank.data.read import CELLS_AT_A_TIME, quoted
from moerank.data.read import table as tables
from moerank.data.read.delimited import fault_of, parsed_numbers
from moerank.metrics import NDCG, Metric
from moerank.rankers.rank_rls import RankRLS
from moerank.runs.problem import Problem
from moerank.solvers import SERVERS
from moerank.training.pair_moments import PairMoments

# Largest number of different values in a column that may hold relevance labels.
MAX_GRADES = 10

# Largest label y for the gain 2^y − 1; with larger ones, only the largest label would matter.
MAX_EXPONENT = 15

# Usual names of the column of document ids.
DOCUMENTS = (
    "doc",
    "docid",
    "doc_id",
    "document",
    "document_id",
    "item_id",
    "product_id",
    "prop_id",
    "sku",
    "asin",
)

SEARCH = "mofsrank-staircase[instance_selection=false,ensemble=false]"

# Names of columns that are known only after the ranking, or number something; _ separates words.
AFTER = re.compile(
    r"(?i)(?:^|_)(?:(?:click|purchase|cart|position|rank|impression|order|conversion|basket)"
    r"(?:s|d|ed)?(?:_|$)"
    r"|(?:bought|dwell)(?:_|$)|id$)"
)

# Most documents that are ranked by each feature alone; with fewer queries, one orders all of them by chance.
ROWS_FOR_LEAKS = 2**15
QUERIES_FOR_LEAKS = 20

# Level of the test whether some feature ranks better than all together.
LEAK_LEVEL = 0.01


# A problem file for jinja2.
TEMPLATE = """\
# The problem of {{ draft.table.name | toml }}, guessed from its first {{ "{:,}".format(draft.n_rows) }} rows. \
Correct wrong guesses.
name = {{ name | toml }}

[data]
source = "table"
{{ "folder" if is_folder else "file" }} = {{ draft.table.name | toml }}
label = {{ draft.label | toml }}  # {{ draft.reasons_of_roles[0] }}
{% if labels %}
labels = {{ labels | toml }}
{% endif %}
query = {{ draft.query | toml }}  # {{ draft.reasons_of_roles[1] }}
{% if draft.document %}
document = {{ draft.document | toml }}
{% endif %}
{% if draft.left_out %}
exclude = [
{% for column, why in draft.left_out.items() %}
    {{ column | toml }},  # {{ why }}
{% endfor %}
]
{% endif %}
{% if draft.gaps %}
missing = 0.0  # search engines, too, count an absent value as 0
{% endif %}
normalize = "standard"  # every export can include this scaling
{% if not is_folder %}
split = {validation = 0.2, test = 0.2}  # shares of the queries
{% endif %}

[metric]
name = "NDCG@10"
{% if has_large_labels %}
gain = "linear"  # labels are too large for 2^y − 1
{% endif %}

[backend]
name = "additive"  # a step function of each feature; "rankrls" is linear, and faster

[solver]
name = "{{ search }}"  # the recommended search; "mofsrank" is the published method

[serve]
# Cross-validation chooses the ranker that serves; moerank run --ranker linear, additive or trees restricts them.
rankers = [
{% for ranker in rankers %}
    {{ ranker | toml }},
{% endfor %}
]
"""


@dataclass(frozen=True)
class Draft:
    """A problem file that is not written yet: the roles of the columns, with reasons, and columns with gaps."""

    table: Path
    n_rows: int
    label: str
    query: str
    reasons_of_roles: tuple[str, str]  # of label and query
    document: str | None
    left_out: dict[str, str]
    gaps: tuple[str, ...]
    largest: float = 0.0
    labels: tables.Labels | None = None

    @property
    def path(self) -> Path:
        """The path of the problem file, next to the table."""
        return self.table.with_name(f"{self.table.stem}.toml")

    @property
    def reasons(self) -> list[str]:
        """A sentence about each guess."""
        label_reason, query_reason = self.reasons_of_roles
        reasons = [
            f"label: {self.label!r}, {label_reason}",
            f"query: {self.query!r}, {query_reason}",
        ]
        reasons += [f"document ids: {self.document!r}, by its name"] if self.document else []
        reasons += [f"left out: {name!r}, {why}" for name, why in self.left_out.items()]
        reasons += [f"missing values, first in {name!r}, become 0" for name in self.gaps[:1]]
        return reasons

    @property
    def text(self) -> str:
        """The problem file: TOML with comments."""
        from jinja2 import Environment

        environment = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
        environment.filters["toml"] = toml_value
        labels = dict(self.labels) if isinstance(self.labels, dict) else list(self.labels or ())
        return environment.from_string(TEMPLATE).render(
            draft=self,
            labels=labels,
            name=re.sub(r"[^A-Za-z0-9_.-]+", "-", self.table.stem),
            is_folder=self.table.is_dir(),
            has_large_labels=self.largest > MAX_EXPONENT,
            search=SEARCH,
            rankers=[*chain.from_iterable(SERVERS.values())],
        )

    def read(self) -> tuple["Draft", Fold, Metric]:
        """Return the draft with all gaps, and the fold and the metric of its problem; refuse what a run refuses."""
        document = tomllib.loads(replace(self, gaps=("any",)).text)
        document["data"]["overlap"] = "allow"
        parts = Problem.model_validate(document).located_in(self.table.parent).load_fold(1)
        parts[0].require_pairs()
        n_missing = np.sum([part.n_missing for part in parts], axis=0)
        gaps = tuple(parts[0].feature_names[feature] for feature in np.flatnonzero(n_missing))
        largest = max(float(part.y.max()) for part in parts)
        draft = replace(self, gaps=gaps, largest=largest)
        metric = Problem.model_validate(tomllib.loads(draft.text)).metric.make()
        return draft, parts, metric


class _Column:
    """The first values of a column of a table."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.kind, self.cells = column.type, column.combine_chunks()
        try:
            numbers, self.is_odd = parsed_numbers(self.cells.cast(pa.string()))
        except pa.ArrowException:  # lists, for instance
            numbers = pa.nulls(len(self.cells), pa.float64())
            self.is_odd = np.asarray(self.cells.is_valid())
        self.numbers = np.asarray(numbers, float)
        self.is_missing = np.isnan(self.numbers) & ~self.is_odd

    @property
    def is_grade(self) -> bool:
        """Whether the values are whole numbers from 0 with few different ones."""
        if self.is_odd.any():
            return False
        values = np.unique(self.numbers[~self.is_missing])
        is_whole = (values >= 0) & (values == np.floor(values))
        return 1 < len(values) <= MAX_GRADES and bool(is_whole.all())

    @property
    def is_group(self) -> bool:
        """Whether equal values stand together, on average at least two of each, and none is missing."""
        if self.is_missing.any() or pa.types.is_nested(self.kind) or pa.types.is_decimal(self.kind):
            return False
        n_runs = len(pc.run_end_encode(self.cells).values)
        if not 1 < n_runs <= len(self.cells) // 2:
            return False
        return n_runs == pc.count_distinct(self.cells).as_py()

    def why_odd(self, path: Path) -> str:
        """Return the first cells that are no numbers, with their rows, and how many numbers there are."""
        n_numbers = np.count_nonzero(~self.is_odd & ~self.is_missing)
        rows = np.flatnonzero(self.is_odd)[: 3 if n_numbers else 1].tolist()
        texts = [str(self.cells[row].as_py()) for row in rows]
        named_texts = zip(tables.row_names(path, rows), texts, strict=True)
        cells = ", ".join(f"{name} holds {quoted(text)}" for name, text in named_texts)
        numbers = f"; {n_numbers:,} of {len(self.cells):,} rows hold numbers" if n_numbers else ""
        return f"{cells}, which is {fault_of(texts[0])}{numbers}"


def draft_problem(
    table: str | Path,
    *,
    label: str | None = None,
    query: str | None = None,
    exclude: Sequence[str] = (),
    labels: tables.Labels | None = None,
) -> Draft:
    r"""Draft a problem file for a table, or for a folder with a training, validation and test table.

    The guesses come from the first 20,000 rows. By default the label and the query are columns with usual names. Else
    the label is the only column with few different whole numbers from 0, and the query is the first column whose equal
    values stand together. Columns with values other than numbers, document ids, the columns in `exclude` and those
    whose names say that their values are known only after the ranking are not features. Missing values become 0. For
    `labels`, see `load_table`.

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
    part = tables.find_part(path) if path.is_dir() else path
    if part is None or not part.exists():
        raise FileNotFoundError(
            f"there is no table {path}; give a CSV or Parquet file, or a folder with such files"
        )
    columns = _read_columns(part, (label, query, *exclude))
    recorded = tables.table_reader(part).roles(part)
    known_label = _known(label, recorded.get("label"), columns, tables.LABELS)
    label, label_reason = known_label or _guess_label(part, columns)
    rest = {name: column for name, column in columns.items() if name != label}
    known_query = _known(query, recorded.get("query"), rest, tables.QUERIES)
    query, query_reason = known_query or _guess_query(part, rest)
    document = recorded.get("document") or tables.usual_column(columns, DOCUMENTS)
    features, left_out = [], {}
    for name in recorded.get("features", columns):
        if name not in (label, query, document):
            reason = _why_left_out(name, columns[name], part)
            if reason:
                left_out[name] = reason
            elif name not in exclude:
                features.append(name)
    left_out |= dict.fromkeys(exclude, "as given")
    if not features:
        texts = "".join(f"; {name!r}: {reason}" for name, reason in list(left_out.items())[:5])
        raise ValueError(
            f"{part}: besides {label!r} and {query!r} there is no column of numbers{texts}"
        )
    return Draft(
        table=path,
        n_rows=len(columns[label].cells),
        label=label,
        query=query,
        reasons_of_roles=(label_reason, query_reason),
        document=document,
        left_out=left_out,
        gaps=tuple(name for name in features if columns[name].is_missing.any()),
        labels=labels,
    )


def _read_columns(path: Path, names: Iterable[str | None]) -> dict[str, _Column]:
    """Return the first values of all columns; refuse names that no column has."""
    columns = {name: _Column(column) for name, column in tables.sample_table(path).items()}
    for name in names:
        if name is not None and name not in columns:
            raise ValueError(f"{path}: {unknown('column', name, list(columns))}")
    return columns


def _known(
    argument: str | None, recorded: str | None, columns: Iterable[str], usual: Sequence[str]
) -> tuple[str, str] | None:
    """Return the column of a role and the reason, if the user, the file or its own name tells the role."""
    if argument:
        return argument, "as given"
    if recorded:
        return recorded, "as recorded in the file"
    name = tables.usual_column(columns, usual)
    return (name, "by its name") if name else None


def _guess_label(path: Path, columns: Mapping[str, _Column]) -> tuple[str, str]:
    """Return the only column of grades, and the reason."""
    grades = [name for name, column in columns.items() if column.is_grade]
    if len(grades) == 1:
        return grades[0], "the only column with few different whole numbers"
    raise _no_guess(path, "label", "relevance labels", grades or list(columns))


def _guess_query(path: Path, columns: Mapping[str, _Column]) -> tuple[str, str]:
    """Return the first column of groups, and the reason."""
    for name, column in columns.items():
        if column.is_group:
            return name, "the first column whose equal values stand together"
    raise _no_guess(path, "query", "query ids", list(columns))


def _no_guess(path: Path, role: str, content: str, names: Sequence[str]) -> ValueError:
    return ValueError(
        f"{path}: which column holds the {content}? Name it by moerank init --{role}, such as one "
        f"of {', '.join(names[:10])}"
    )


def _why_left_out(name: str, column: _Column, path: Path) -> str:
    """Return why a column is no feature, nothing if it is one."""
    is_counter = len(column.numbers) >= FEWEST and (np.diff(column.numbers) == 1).all()
    if is_counter or tables.ROW_NUMBERS.fullmatch(name):
        return "it numbers the rows"
    if column.is_odd.any():
        return column.why_odd(path)
    if pa.types.is_string(column.kind) and tables.table_reader(path).lines_of is None:
        return "it holds texts"
    words = re.sub(r"[^A-Za-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    match = AFTER.search(words)
    if match is None:
        return ""
    is_id = match[0].lower().endswith("id")
    meaning = "holds ids" if is_id else "is known only after the ranking"
    return f"its name says that it {meaning}; remove it here if that is wrong"


def data_remarks(
    parts: Sequence[RankingData], metric: Metric | None
) -> tuple[list[str], list[str]]:
    """Return warnings about parts before a run: about queries, values and rows, and about leaks in training."""
    remarks = [*shared_queries(parts), *cautions_about(parts[0])]
    return remarks, leak_remarks(parts[0], metric)


def leak_remarks(train: RankingData, metric: Metric | None = None) -> list[str]:
    """Return a sentence for each of the three best features that rank too well alone to be known before the ranking.

    Such a feature orders every query without an error or a tie, or ranks better than RankRLS on all features at equal
    spread, by the metric and a t-test over queries at the level .01 with Bonferroni's adjustment, on the first training
    documents, at most 32,768 or 4 million values. With fewer than 20 queries nothing is said.
    """
    n_rows = min(ROWS_FOR_LEAKS, CELLS_AT_A_TIME // train.n_features)
    n_queries = max(1, int(np.searchsorted(train.offsets, n_rows, side="right")) - 1)
    part = train.with_rows(np.arange(train.offsets[n_queries]))
    if np.count_nonzero(part.label_runs.n_pairs_of) < QUERIES_FOR_LEAKS:
        return []
    metric = metric or NDCG(10, gain="linear")
    together, alone = _compare_with_all(part, metric)
    is_perfect = _orders_all(part)
    sentences = []
    for feature in np.lexsort((-alone, ~is_perfect))[:3].tolist():
        if is_perfect[feature]:
            finding = "orders every query perfectly"
        elif alone[feature] > together:
            scores = f"{metric.name} {alone[feature]:.3f} against {together:.3f}".replace("0.", ".")
            finding = f"ranks better than all features together ({scores})"
        else:
            continue
        name = part.feature_names[feature]
        sentences.append(f"{name!r} alone {finding}: is it known before the user chooses?")
    return sentences


def _compare_with_all(part: RankingData, metric: Metric) -> tuple[float, Vector]:
    """Return the metric of RankRLS on all features, and that of each feature that is detectably better, else 0."""
    # On scales, and of the test on gains that are all equal.
    with warnings.catch_warnings(action="ignore"):
        X = part.X64
        # In units of the differences of pairs, so that alpha shrinks no feature away because its values hardly differ.
        spread = np.sqrt(np.diagonal(PairMoments.of(part).gram))
        scaled = part.with_table(X / np.where(spread > 0.0, spread, 1.0))
        together = RankRLS(alpha=0.1).fit(scaled).predict(scaled)
        scores = np.ascontiguousarray(np.hstack([together[:, None], X, -X]))
        values = part.weighted(metric.values(part, scores))
        test = scipy.stats.ttest_1samp(values[:, 1:] - values[:, :1], 0.0, alternative="greater")
    p_values = np.nan_to_num(test.pvalue, nan=1.0) * len(test.pvalue)
    means = values.mean(axis=0)
    alone = np.where(p_values < LEAK_LEVEL, means[1:], 0.0)
    return means[0], alone.reshape(2, -1).max(axis=0)


def _orders_all(data: RankingData) -> Mask:
    """Return which features separate each label from the next in all queries, rising or falling, without a tie."""
    runs = data.label_runs
    X, begin = data.X[runs.row], runs.begin[:-1]
    smallest, largest = np.minimum.reduceat(X, begin), np.maximum.reduceat(X, begin)
    within = np.setdiff1d(np.arange(len(begin) - 1), runs.query_begin[1:-1] - 1)
    rises, falls = largest[:-1] < smallest[1:], smallest[:-1] > largest[1:]
    return np.asarray(rises[within].all(axis=0) | falls[within].all(axis=0))
