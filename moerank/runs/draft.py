"""Drafts of problem files for tables, with a reason for each guess, and warnings about features that know too much."""

import re
import tomllib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from moerank.arrays import Integers, Mask
from moerank.checks import toml_value, unknown
from moerank.data import Fold, RankingData
from moerank.data.describe import extreme_remarks
from moerank.data.folds import Draws
from moerank.data.inputs import arrow_numbers
from moerank.data.read import CELLS_AT_A_TIME, quoted
from moerank.data.read import table as tables
from moerank.data.read.delimited import parsed_numbers
from moerank.metrics import NDCG, Metric
from moerank.rankers.rank_rls import RankRLS
from moerank.runs.problem import Problem
from moerank.training.pair_moments import PairMoments

# Largest number of different values in a column that may hold relevance labels.
MOST_GRADES = 10

# Largest label y for the gain 2^y − 1; with larger ones, only the largest label would matter.
LARGEST_EXPONENT = 15

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

SEARCH = "mofsrank-staircase[instance_selection=false]"

# Names of columns that are known only after the ranking, or number something; _ separates words.
AFTER = re.compile(
    r"(?i)(?:^|_)(?:(?:click|purchase|cart|position|rank|impression|order|conversion|basket)(?:s|d|ed)?(?:_|$)"
    r"|(?:bought|dwell)(?:_|$)|id$)"
)

# Most documents that are ranked by each feature alone; with fewer queries, one orders all of them by chance.
ROWS_FOR_LEAKS = 2**15
QUERIES_FOR_LEAKS = 20

# Level of the test whether some feature ranks better than all together.
LEAK_LEVEL = 0.01


@dataclass(frozen=True)
class Draft:
    """A problem file that is not written yet: the roles of the columns, with reasons, and columns with gaps."""

    table: Path
    n_rows: int
    label: str
    query: str
    why: tuple[str, ...]
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
        reasons = [f"label: {self.label!r}, {self.why[0]}", f"query: {self.query!r}, {self.why[1]}"]
        reasons += [f"document ids: {self.document!r}, by its name"] if self.document else []
        reasons += [f"left out: {name!r}, {why}" for name, why in self.left_out.items()]
        reasons += [f"missing values, first in {name!r}, become 0" for name in self.gaps[:1]]
        return reasons

    @property
    def text(self) -> str:
        """The problem file: TOML with comments."""
        several, name = self.table.is_dir(), self.table.name
        left_out = "".join(
            f"\n    {toml_value(column)},  # {why}" for column, why in self.left_out.items()
        )
        labels = dict(self.labels) if isinstance(self.labels, dict) else list(self.labels or ())
        lines = [
            f"# The problem of {toml_value(name)}, guessed from its first {self.n_rows:,} rows. Correct wrong guesses.",
            f"name = {toml_value(re.sub(r'[^A-Za-z0-9_.-]+', '-', self.table.stem))}",
            "",
            "[data]",
            'source = "table"',
            f"folder = {toml_value(name)}" if several else f"file = {toml_value(name)}",
            f"label = {toml_value(self.label)}  # {self.why[0]}",
            f"labels = {toml_value(labels)}" if labels else "",
            f"query = {toml_value(self.query)}  # {self.why[1]}",
            f"document = {toml_value(self.document)}" if self.document else "",
            f"exclude = [{left_out}\n]" if left_out else "",
            "missing = 0.0  # search engines, too, count an absent value as 0" if self.gaps else "",
            'normalize = "standard"  # every export can include this scaling',
            "" if several else "split = {validation = 0.2, test = 0.2}  # shares of the queries",
            "",
            "[metric]",
            'name = "NDCG@10"',
            'gain = "linear"  # labels are too large for 2^y − 1'
            if self.largest > LARGEST_EXPONENT
            else "",
            "",
            "[backend]",
            'name = "additive"  # a step function of each feature; "rankrls" is linear, and faster',
            "",
            "[solver]",
            f'name = "{SEARCH}"  # the recommended search; "mofsrank" is the published method',
        ]
        # Drop empty lines that do not stand before a table.
        spaced = [
            line for line, following in pairwise([*lines, "["]) if line or following.startswith("[")
        ]
        return "\n".join(spaced) + "\n"

    def read(self) -> tuple["Draft", Fold, Metric]:
        """Return the draft with all gaps, and the fold and the metric of its problem; refuse what a run refuses."""
        document = tomllib.loads(replace(self, gaps=("any",)).text)
        problem = Problem.model_validate(document).located_in(self.table.parent)
        parts = problem.load_fold(1)
        parts[0].require_pairs()
        gaps = np.flatnonzero(np.sum([part.n_missing for part in parts], axis=0))
        names = (parts[0].feature_names[feature] for feature in gaps)
        largest = max(float(part.y.max()) for part in parts)
        return replace(self, gaps=tuple(names), largest=largest), parts, problem.metric.make()


class _Column:
    """The first values of a column of a table."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.kind, self.cells = column.type, column.combine_chunks()
        self.is_switch = wrong = np.zeros(len(self.cells), np.bool_)
        if pa.types.is_string(self.kind):
            numbers, self.is_switch, wrong = parsed_numbers(self.cells)
        elif (
            pa.types.is_integer(self.kind)
            or pa.types.is_floating(self.kind)
            or pa.types.is_boolean(self.kind)
        ):
            numbers = pa.array(arrow_numbers(self.cells), pa.float64(), from_pandas=True)
        else:
            numbers, wrong = (
                pa.nulls(len(self.cells), pa.float64()),
                np.asarray(self.cells.is_valid()),
            )
        self.numbers = np.asarray(numbers, np.float64)
        self.is_missing = np.isnan(self.numbers) & ~wrong
        self.is_odd = wrong | (
            self.is_switch & (not self.is_switch[~self.is_missing & ~wrong].all())
        )

    @property
    def is_grade(self) -> bool:
        """Whether the values are whole numbers from 0 with few different ones."""
        if self.is_odd.any():
            return False
        values = np.unique(self.numbers[~self.is_missing])
        return 1 < len(values) <= MOST_GRADES and bool(
            ((values >= 0) & (values == np.floor(values))).all()
        )

    @property
    def is_group(self) -> bool:
        """Whether equal values stand together, on average at least two of each, and none is missing."""
        if self.is_missing.any() or pa.types.is_nested(self.kind) or pa.types.is_decimal(self.kind):
            return False
        n_runs = len(pc.run_end_encode(self.cells).values)
        return (
            1 < n_runs <= len(self.cells) // 2 and n_runs == pc.count_distinct(self.cells).as_py()
        )

    def why_odd(self, path: Path) -> str:
        """Return the first cells that are no numbers, with their rows, and how many numbers there are."""
        rows = np.flatnonzero(self.is_odd)
        n_numbers = np.count_nonzero(~self.is_odd & ~self.is_missing)
        shown = rows[: 3 if n_numbers else 1].tolist()
        names = zip(tables.row_names(path, shown), shown, strict=True)
        cells = ", ".join(
            f"{name} holds {quoted(str(self.cells[row].as_py()))}" for name, row in names
        )
        numbers = f"; {n_numbers:,} of {len(self.cells):,} rows hold numbers" if n_numbers else ""
        return f"{cells}, which is not a number{numbers}"


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
    first = tables.find_part(path) if path.is_dir() else path
    if first is None or not first.exists():
        raise FileNotFoundError(
            f"there is no table {path}; give a CSV or Parquet file, or a folder with such files"
        )
    columns = {name: _Column(column) for name, column in tables.sample_table(first).items()}
    stored = tables.table_reader(first).roles(first)
    for name in (label, query, *exclude):
        if name is not None and name not in columns:
            raise ValueError(f"{first}: {unknown('column', name, list(columns))}")
    given = {"label": label, "query": query}
    why = {role: "as given" if name else "as recorded in the file" for role, name in given.items()}
    label, query = (name or stored.get(role) for role, name in given.items())
    if not label:
        likely = [name for name, column in columns.items() if column.is_grade]
        reason = "the only column with few different whole numbers"
        label, why["label"] = _guess(
            first, "label: relevance labels", [*columns], tables.LABELS, likely, reason
        )
    if not query:
        rest = [name for name in columns if name != label]
        groups = [name for name in rest if columns[name].is_group][:1]
        reason = "the first column whose equal values stand together"
        query, why["query"] = _guess(
            first, "query: query ids", rest, tables.QUERIES, groups, reason
        )
    roles = (label, query, stored.get("document") or tables.usual_column(columns, DOCUMENTS))
    others = {name: columns[name] for name in stored.get("features", columns) if name not in roles}
    left_out = {name: _why_left_out(name, column, first) for name, column in others.items()}
    left_out = {name: reason for name, reason in left_out.items() if reason} | dict.fromkeys(
        exclude, "as given"
    )
    if not others.keys() - left_out.keys():
        texts = "".join(f"; {name!r}: {reason}" for name, reason in list(left_out.items())[:5])
        raise ValueError(
            f"{first}: besides {label!r} and {query!r} there is no column of numbers{texts}"
        )
    gaps = tuple(
        name for name, column in others.items() if name not in left_out and column.is_missing.any()
    )
    n_rows, reasons = len(columns[label].cells), tuple(why.values())
    return Draft(path, n_rows, label, query, reasons, roles[2], left_out, gaps, labels=labels)


def _why_left_out(name: str, column: _Column, path: Path) -> str:
    """Return why a column is no feature, nothing if it is one."""
    if name in ("", "__index_level_0__"):
        return "it numbers the rows"
    if column.is_odd.any():
        return column.why_odd(path)
    if pa.types.is_string(column.kind) and tables.table_reader(path).lines_of is None:
        return "it holds texts"
    words = re.sub(r"[^A-Za-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    match = AFTER.search(words)
    meaning = (
        "holds ids"
        if match and match[0].lower().endswith("id")
        else "is known only after the ranking"
    )
    return f"its name says that it {meaning}; remove it here if that is wrong" if match else ""


def data_remarks(train: RankingData, metric: Metric) -> tuple[list[str], list[str]]:
    """Return what to say of training data before a run: of features with extreme values, and of leaks."""
    extreme = [
        name
        for name, is_extreme in zip(train.feature_names, train.is_extreme, strict=True)
        if is_extreme
    ]
    return extreme_remarks(extreme), leak_remarks(train, metric)


def leak_remarks(train: RankingData, metric: Metric | None = None) -> list[str]:
    """Return a sentence for each of the three best features that rank too well alone to be known before the ranking.

    Such a feature orders every query without an error or a tie, or ranks better than RankRLS on all features at equal
    spread, by the metric and a t-test over queries at the level .01 with Bonferroni's adjustment, on the first training
    documents, at most 32,768 or 4 million values. Equal values rank in random order. With fewer than 20 queries nothing
    is said.
    """
    n_rows = min(ROWS_FOR_LEAKS, CELLS_AT_A_TIME // train.n_features)
    n_queries = max(1, int(np.searchsorted(train.offsets, n_rows, side="right")) - 1)
    queries = np.repeat(np.arange(n_queries), np.diff(train.offsets[: n_queries + 1]))
    part = train.with_rows(np.lexsort((Draws(0).order(len(queries)), queries)))
    if np.count_nonzero(part.label_runs.n_pairs_of) < QUERIES_FOR_LEAKS:
        return []
    metric = NDCG(10, gain="linear") if metric is None else metric
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on scales, and of the test on gains that are all equal
        X = part.X64
        # In units of the differences of pairs, so that alpha shrinks no feature away because its values hardly differ.
        spread = np.sqrt(np.diagonal(PairMoments.of(part).gram))
        scaled = part.with_table(X / np.where(spread > 0.0, spread, 1.0))
        together = RankRLS(alpha=0.1).fit(scaled).predict(scaled)
        values = part.weighted(
            metric.values(part, np.ascontiguousarray(np.hstack([together[:, None], X, -X])))
        )
        p = scipy.stats.ttest_1samp(
            values[:, 1:] - values[:, :1], 0.0, alternative="greater"
        ).pvalue
    own, perfect = values.mean(axis=0), _orders_all(part)
    alone = (
        np.where(np.nan_to_num(p, nan=1.0) * len(p) < LEAK_LEVEL, own[1:], 0.0)
        .reshape(2, -1)
        .max(axis=0)
    )
    sentences = []
    for feature in np.lexsort((-alone, ~perfect))[:3].tolist():
        scores = f"{metric.name} {alone[feature]:.3f} against {own[0]:.3f}".replace("0.", ".")
        better = (
            f"ranks better than all features together ({scores})" if alone[feature] > own[0] else ""
        )
        if how := "orders every query perfectly" if perfect[feature] else better:
            sentences.append(
                f"{part.feature_names[feature]!r} alone {how}: is it known before the user chooses?"
            )
    return sentences


def _orders_all(data: RankingData) -> Mask:
    """Return which features separate each label from the next in all queries, rising or falling, without a tie."""
    runs = data.label_runs
    X, begin = data.X[runs.row], runs.begin[:-1]
    least, greatest = np.minimum.reduceat(X, begin), np.maximum.reduceat(X, begin)
    within: Integers = np.setdiff1d(np.arange(len(begin) - 1), runs.query_begin[1:-1] - 1)
    rises, falls = greatest[:-1] < least[1:], least[:-1] > greatest[1:]
    return np.asarray(rises[within].all(axis=0) | falls[within].all(axis=0))


def _guess(
    path: Path,
    role: str,
    columns: Sequence[str],
    usual: Sequence[str],
    likely: Sequence[str],
    reason: str,
) -> tuple[str, str]:
    """Return the column with a usual name, or else the only likely one, and the reason."""
    if name := tables.usual_column(columns, usual):
        return name, "by its name"
    if len(likely) == 1:
        return likely[0], reason
    option, what = role.split(": ")
    remedy = (
        f"Name it by moerank init --{option}, such as one of {', '.join((likely or columns)[:10])}"
    )
    raise ValueError(f"{path}: which column holds the {what}? {remedy}")
