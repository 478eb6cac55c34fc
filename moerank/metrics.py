"""Ranking metrics: NDCG, MAP, precision, recall, MRR, ERR and others, by the usual conventions or LETOR's scripts.

A metric is a small immutable object that carries its conventions. It computes a value for each query, and its score is
their mean; a query without a relevant document has the value 0. A document is relevant if its label is greater than 0,
and equal scores count as the mean over all their orders. Queries count by their weights. The weight of a document
multiplies its gain in NDCG, MeanNDCG and Recall, also in the ideal ranking; the other metrics use the labels alone.

Where LETOR's ``Eval-Score-3.0.pl`` and ``Eval-Score-4.0.pl`` differ (precision of short queries), we follow 4.0.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache, partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, dataclass_transform, overload

import numpy as np
from numpy.typing import ArrayLike

from moerank.arrays import Array, Integers, Matrix, Vector
from moerank.checks import (
    Count,
    Parameters,
    cap_workers,
    check_at_least,
    check_fields,
    is_made_of_fields,
)
from moerank.data import RankingData
from moerank.data.inputs import checked_scores, require_data
from moerank.data.ranking_data import labels_alone
from moerank.kernels.compiled import read_only
from moerank.kernels.counted_ranks import (
    average_precision,
    mean_over_queries,
    normalised_gain,
    reached_value,
    sum_over_queries,
)
from moerank.kernels.linear_gain import gain_of_linear, gain_plan
from moerank.kernels.scores import linear_scores, values_by_blocks
from moerank.solvers import is_code, load_code, plugins

Gain = Literal["exp2", "linear"]
Convention = Literal["usual", "letor"]
Ties = Literal["mean", "order"]
Discount = Literal["letor", "log2"]

Plan = tuple[Array, ...]
# Approximate number of documents that are scored together, so that the scores of a hundred rankers stay in the cache.
SCORED_BLOCK = 4096
# The largest label y for which 2^y fits a 64-bit integer; a larger number is no grade of relevance.
LARGEST_EXP2_LABEL = 62
# Tolerance for values of a metric that rounding brings beyond 0 and 1.
VALUE_TOLERANCE = 1e-9


class Metric(ABC):
    """Base of all ranking metrics: values per query, and their mean, for one ranking or for many at once.

    A metric of your own needs an attribute ``name`` and a method ``values(data, scores)``; all else follows from them.
    It must compare and hash by its parameters, as frozen dataclasses do.

    >>> class FirstIsRelevant(Metric):
    ...     name = "first is relevant"
    ...
    ...     def values(self, data, scores):
    ...         def best(rows):
    ...             return np.maximum.reduceat(np.where(rows[:, None], scores, -np.inf), data.offsets[:-1])
    ...
    ...         return (best(data.y > 0) > best(data.y == 0)).astype(float)
    >>> data = RankingData([[1.0], [2.0], [3.0]], y=[0, 2, 1], qid=0)
    >>> FirstIsRelevant().score(data, [0.3, 0.2, 0.1]), FirstIsRelevant().score(data, [0.0, 2.0, 1.0])
    (0.0, 1.0)
    """

    name: str
    """The name of the metric in tables and figures."""

    @abstractmethod
    def values(self, data: RankingData, scores: Matrix) -> Matrix:
        """Return the value of each query under each ranking, shape (n_queries, n_individuals), between 0 and 1.

        `scores`, of shape (n_documents, n_individuals), is float64, C-contiguous and finite. The documents of a query
        are the rows from ``data.offsets[q]`` to ``data.offsets[q + 1]``. A value must depend on no other query, no
        other individual, and not on the order of the rows, which may be that of the labels.
        """

    def per_query(self, data: RankingData, scores: ArrayLike) -> Matrix:
        """Return the value of each query.

        Parameters
        ----------
        data : RankingData
            The documents that are ranked.
        scores : array-like, shape (n_documents,) or (n_documents, n_individuals)
            Finite scores; the largest ranks first.

        Returns
        -------
        ndarray of float64, shape (n_queries,) or (n_queries, n_individuals)
            Values between 0 and 1.

        Raises
        ------
        ValueError
            For scores that are NaN, infinite or not one per document, for labels too large for the gain, and for values
            of a metric of yours that are not between 0 and 1.
        """
        require_data(data)
        checked = checked_scores(scores, data.n_documents, data.name)
        values = self._in_bounds(data, checked.reshape(data.n_documents, -1))
        return values.reshape(data.n_queries, *checked.shape[1:])

    def _in_bounds(self, data: RankingData, scores: Matrix) -> Matrix:
        """Return `values`, and refuse those that are not between 0 and 1."""
        values = self.values(data, scores)
        if len(outside := np.argwhere(~(np.abs(values - 0.5) <= 0.5 + VALUE_TOLERANCE))):
            query, individual = outside[0]
            raise ValueError(
                f"{self.name} is {values[query, individual]:g} for query {data.query_ids[query]} "
                f"of {data.name}. Return values between 0 and 1"
            )
        return values

    @overload
    def score(
        self, data: RankingData, scores: np.ndarray[tuple[int], np.dtype[Any]] | Sequence[float]
    ) -> float: ...

    @overload
    def score(self, data: RankingData, scores: ArrayLike) -> float | Matrix: ...

    def score(self, data: RankingData, scores: ArrayLike) -> float | Matrix:
        """Return the mean over all queries: a float, or shape (n_individuals,); arguments as in `per_query`.

        It is Σ v_q m_q / Σ v_q for queries with weights v and values m.
        """
        values = self.per_query(data, scores)
        means = mean_over_queries(data.weighted(values.reshape(data.n_queries, -1)))
        return float(means[0]) if values.ndim == 1 else means

    def can_differ(self, data: RankingData) -> Array:
        """Return whether the value of each query depends on the order of its documents, bool, shape (n_queries,).

        Examples
        --------
        >>> data = RankingData([[1.0]] * 5, y=[0, 2, 0, 0, 1], qid=[1, 1, 2, 2, 3])
        >>> MAP().can_differ(data).tolist()
        [True, False, False]
        """
        best_first = data.y.astype(np.float64)
        scores = [best_first, -best_first]
        if data.document_weights is not None:
            scores += [data.document_weights, -data.document_weights]
        values = self._in_bounds(data, np.column_stack(scores))
        return values.min(axis=1) != values.max(axis=1)

    def scorer(self) -> Any:
        """Return a scorer for scikit-learn's ``scoring=``: ``scorer(estimator, X, y, qid=qid)`` scores predictions.

        The scorer requests `qid` by metadata routing. Without `qid` it raises a ValueError, because a whole fold is not
        one query.

        >>> from sklearn import config_context
        >>> from moerank.rankers import RankRLS
        >>> X, y, qid = [[0.1], [0.9], [0.3], [0.5]], [0, 1, 0, 1], [1, 1, 2, 2]
        >>> with config_context(enable_metadata_routing=True):
        ...     MAP().scorer()(RankRLS().fit(X, y, qid=qid), X, y, qid=qid)
        1.0
        """
        from sklearn import config_context
        from sklearn.metrics import make_scorer

        with config_context(enable_metadata_routing=True):
            return make_scorer(self._score_labels, response_method="predict").set_score_request(
                qid=True
            )

    def _score_labels(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, qid: ArrayLike | None = None
    ) -> float:
        if qid is None:
            raise ValueError(
                "a ranking metric needs the query of each document: after "
                "sklearn.set_config(enable_metadata_routing=True), pass qid with X and y, as in "
                "GridSearchCV(…).fit(X, y, qid=qid, groups=qid), "
                "or cross_validate(…, params={'qid': qid, 'groups': qid})"
            )
        return self.score(labels_alone(y_true, qid), np.asarray(y_pred, np.float64).ravel())

    def batch(self, data: RankingData, scores: Vector) -> Matrix:
        """Return the mean of each individual, without checking the input.

        `scores`, of shape (n_documents, n_individuals), is float64, C-contiguous and finite; the result has shape
        (n_individuals,). Runs in one thread, without the interpreter lock, in time O(n_individuals · Σ_q n_relevant ·
        n_documents).
        """
        return mean_over_queries(data.weighted(self._in_bounds(data, scores)))

    def of_linear(self, data: RankingData, W: Matrix, *, workers: int = 1) -> Matrix:
        """Return the values, shape (n_queries, n_individuals), of the linear rankers W, without checking the input.

        `W`, of shape (n_individuals, n_features), is float64. The values equal those of `per_query` bit for bit. The
        metrics of this package never hold all scores at once, and use `workers` threads, whose number changes no bit.
        """
        return self._in_bounds(data, linear_scores(data.X, W))

    def mean_of_linear(self, data: RankingData, W: Matrix, *, workers: int = 1) -> Matrix:
        """Return the mean over the queries for each linear ranker, shape (n_individuals,); see `of_linear`."""
        values = self.of_linear(data, W, workers=workers)
        if data.query_weights is not None:
            values = values * data.query_weights[:, None]
        return sum_over_queries(values) / data.total_weight


@dataclass_transform(frozen_default=True)
class _CountedMetric(Metric):
    """Base of the metrics of this package; each becomes a frozen dataclass of its conventions.

    A value depends only on the labels and weights in the order of the ranks, to the last bit, and not on the other
    individuals of the batch. A perfect ranking has an NDCG and a MAP of exactly 1.
    """

    _title: ClassVar[str]
    _kernel: ClassVar[Callable[..., Matrix]] = staticmethod(normalised_gain)
    ties: Ties

    def __init_subclass__(cls) -> None:
        if is_made_of_fields(cls):
            dataclass(frozen=True)(cls)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name in tables and figures, such as "NDCG@10" or "NDCG@10 (letor)"; defaults are left out."""
        settings = []
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.name != "k" and value != field.default and field.default is not MISSING:
                settings.append(
                    str(value) if field.name == "convention" else f"{field.name}={value}"
                )
        title = self._title.format_map(vars(self)).removesuffix("@None")
        return f"{title} ({', '.join(settings)})" if settings else title

    @abstractmethod
    def _plan(self, data: RankingData) -> Plan:
        """Return the arguments of the kernel that depend on `data` alone: those after scores and query offsets."""

    def values(self, data: RankingData, scores: Matrix) -> Matrix:
        return self._measure(scores, data.offsets, *self._plan_of(data))

    def _measure(self, scores: Matrix, offsets: Integers, *plan: Array) -> Matrix:
        if self.ties == "order":
            scores = _without_ties(scores, offsets)
        return self._kernel(read_only(scores), offsets, *plan)

    def _in_bounds(self, data: RankingData, scores: Matrix) -> Matrix:
        return self.values(data, scores)  # between 0 and 1 by definition

    def of_linear(self, data: RankingData, W: Matrix, *, workers: int = 1) -> Matrix:
        # The kernels that count up to rank 16 compute gains only.
        plan, workers = self._plan_of(data), cap_workers(workers)
        counts_alone = self._kernel is normalised_gain and self.ties == "mean"
        short_plan = gain_plan(*plan) if counts_alone else None
        if short_plan is None:
            n_blocks = workers * -(-data.n_documents // (workers * SCORED_BLOCK))
            blocks = list(data.query_blocks(-(-data.n_documents // n_blocks)))
            return values_by_blocks(self._measure, plan, data.X, W, data.offsets, blocks, workers)
        return gain_of_linear(data.X, lambda: data.columns, W, data.offsets, short_plan, workers)

    def _plan_of(self, data: RankingData) -> Plan:
        return data.remember((self, "plan"), lambda: self._plan(data), labels_only=True)


class NDCG(_CountedMetric):
    """Normalised discounted cumulated gain at rank k.

    NDCG@k = Σ_{j ≤ k} d(j) g(y_j) / Σ_{j ≤ k} d(j) g(y*_j), where y_j is the label at rank j and y* are the labels of
    the query in decreasing order; 0 for a query without a relevant document.

    Parameters
    ----------
    k : int
        The last rank that counts, from 1.
    gain : {"exp2", "linear"}, default "exp2"
        "exp2": g(y) = 2^y − 1 (labels up to 62). "linear": g(y) = y.
    convention : {"usual", "letor"}, default "usual"
        "usual": the discount "log2" and "own_length" for short queries. "letor": "letor" and "zero", as in LETOR's
        scripts.
    discount : {"log2", "letor"}, optional
        "log2": d(j) = 1 / log₂(1 + j). "letor": d(j) = 1 for j ≤ 2 and 1 / log₂(j) from 3 on. By default that of the
        convention.
    short_queries : {"own_length", "zero"}, optional
        The value of a query with fewer than k documents. "own_length": NDCG at its number of documents. "zero": 0. By
        default that of the convention.
    ties : {"mean", "order"}, default "mean"
        "mean": equal scores count as the mean over all their orders. "order": they rank in the order of the rows, as in
        LETOR's scripts. All metrics have this argument.

    Raises
    ------
    ValueError
        For k below 1 or an unknown convention.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], y=[0, 2, 1], qid=0)
    >>> NDCG(1).score(data, [0.3, 0.2, 0.1]), NDCG(2).score(data, [0.0, 2.0, 1.0])
    (0.0, 1.0)
    >>> NDCG(2, convention="letor").score(data, [0.3, 0.2, 0.1])
    0.75
    """

    _title = "NDCG@{k}"

    k: Count
    gain: Gain = "exp2"
    convention: Convention = "usual"
    discount: Discount | None = None
    short_queries: Literal["zero", "own_length"] | None = None
    ties: Ties = "mean"

    def _plan(self, data: RankingData) -> Plan:
        gains = _weighted(data, _label_gains(data, self.gain))
        return _gain_plan(data, gains, _rank_discounts(data, self), self._depths)

    def _depths(self, best: Vector) -> tuple[int, Matrix]:
        short = self.short_queries or ("zero" if self.convention == "letor" else "own_length")
        if short == "zero" and len(best) < self.k:
            return 0, best[:0]
        depth = min(self.k, len(best))
        return depth, best[depth - 1 : depth]


class MeanNDCG(_CountedMetric):
    """Mean over k = 1 … n of NDCG@k, with n the number of documents of the query (LETOR 4.0).

    Parameters
    ----------
    gain, convention, discount, ties : str
        As in `NDCG`; anything else is a ValueError.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], y=[0, 0, 1], qid=0)
    >>> MeanNDCG().score(data, [0.2, 0.1, 0.3]), MeanNDCG(convention="letor").score(data, [0.3, 0.1, 0.2])
    (1.0, 0.6666666666666666)
    """

    _title = "MeanNDCG"

    gain: Gain = "exp2"
    convention: Convention = "usual"
    discount: Discount | None = None
    ties: Ties = "mean"

    def _plan(self, data: RankingData) -> Plan:
        gains = _weighted(data, _label_gains(data, self.gain))
        return _gain_plan(data, gains, _rank_discounts(data, self), lambda best: (len(best), best))


class Precision(_CountedMetric):
    """Fraction of the first k documents that are relevant.

    The divisor is always k, as in LETOR 4.0: ranks that a short query does not have count as irrelevant. (In the script
    of LETOR 3.0 such a query has the value 0.)

    Parameters
    ----------
    k : int
        The last rank that counts, from 1; anything else is a ValueError.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], y=[0, 2, 1], qid=0)
    >>> Precision(2).score(data, [0.3, 0.2, 0.1]), Precision(4).score(data, [0.3, 0.2, 0.1])
    (0.5, 0.5)
    """

    _title = "P@{k}"

    k: Count
    ties: Ties = "mean"

    def _plan(self, data: RankingData) -> Plan:
        divisor = np.array([float(self.k)])
        relevance = (data.y > 0).astype(np.float64)
        return _gain_plan(
            data, relevance, np.ones_like(relevance), lambda best: (min(self.k, len(best)), divisor)
        )


class MAP(_CountedMetric):
    """Mean average precision: the mean of the precision at the ranks of a query's relevant documents.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], y=[0, 2, 1], qid=0)
    >>> MAP().score(data, [0.2, 0.3, 0.1]), MAP().per_query(data, [0.0, 2.0, 1.0])
    (0.8333333333333333, array([1.]))
    """

    _title = "MAP"
    _kernel = staticmethod(average_precision)

    ties: Ties = "mean"

    def _plan(self, data: RankingData) -> Plan:
        return _queries_with_relevant_documents(data), (data.y > 0).astype(np.float64)


class Recall(_CountedMetric):
    """Fraction of a query's relevant documents that are among the first k; 0 for a query without a relevant document.

    Parameters
    ----------
    k : int
        The last rank that counts, from 1; anything else is a ValueError.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], y=[0, 2, 1], qid=0)
    >>> Recall(1).score(data, [0.1, 0.2, 0.3]), Recall(2).score(data, [0.1, 0.2, 0.3])
    (0.5, 1.0)
    """

    _title = "Recall@{k}"

    k: Count
    ties: Ties = "mean"

    def _plan(self, data: RankingData) -> Plan:
        relevance = _weighted(data, (data.y > 0).astype(np.float64))
        return _gain_plan(
            data,
            relevance,
            np.ones_like(relevance),
            lambda best: (min(self.k, len(best)), best[-1:]),
        )


class _Cascade(_CountedMetric):
    """Base of the metrics for a user who reads from the top and stops at document i with probability Rᵢ.

    The value is Σ_{j ≤ k} v(j) R_j Π_{i < j} (1 − R_i), where v(j) is the value of a stop at rank j.
    """

    _kernel = staticmethod(reached_value)
    _discounts_ranks: ClassVar[bool] = True  # whether v(j) is 1 / j; otherwise it is 1

    k: Count | None = None

    def _plan(self, data: RankingData) -> Plan:
        ranks = np.arange(1.0, np.diff(data.offsets).max() + 1.0)[: self.k]
        divisor = ranks if self._discounts_ranks else np.ones_like(ranks)
        return _queries_with_relevant_documents(data), self._stops(data), divisor

    def _stops(self, data: RankingData) -> Vector:
        """Return Rᵢ of each document."""
        return (data.y > 0).astype(np.float64)


class MRR(_Cascade):
    """Mean reciprocal rank: one over the rank of a query's first relevant document, 0 if it is beyond rank k.

    Parameters
    ----------
    k : int, optional
        The last rank that counts, from 1, by default that of the last document; anything else is a ValueError.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], y=[0, 2, 1], qid=0)
    >>> MRR().score(data, [0.3, 0.2, 0.1]), MRR(1).score(data, [0.3, 0.2, 0.1])
    (0.5, 0.0)
    """

    _title = "MRR@{k}"

    ties: Ties = "mean"


class Hit(_Cascade):
    """Fraction of the queries with a relevant document among the first k.

    Parameters
    ----------
    k : int
        The last rank that counts, from 1; anything else is a ValueError.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], y=[0, 2, 1], qid=0)
    >>> Hit(1).score(data, [0.3, 0.2, 0.1]), Hit(2).score(data, [0.3, 0.2, 0.1])
    (0.0, 1.0)
    """

    _title = "Hit@{k}"
    _discounts_ranks = False

    k: Count = None  # type: ignore[assignment]  # required: without it every query with a relevant document is a hit
    ties: Ties = "mean"


class ERR(_Cascade):
    """Expected reciprocal rank of the document at which a user stops; each one satisfies with probability R.

    R = (2^y − 1) / 2^max_label, and ERR@k = Σ_{j ≤ k} 1/j R_j Π_{i < j} (1 − R_i).

    Parameters
    ----------
    k : int, optional
        The last rank that counts, from 1, by default that of the last document; anything else is a ValueError.
    max_label : int, default 4
        The largest possible label, from 1 to 62. The default is that of the paper and of TREC's ``gdeval``.

    Raises
    ------
    ValueError
        On use, for a label above `max_label`.

    References
    ----------
    O. Chapelle, D. Metzler, Y. Zhang, P. Grinspan: Expected reciprocal rank for graded relevance. CIKM, 2009.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], y=[0, 2, 1], qid=0)
    >>> ERR(max_label=2).score(data, [0.3, 0.2, 0.1]), ERR(1, max_label=2).score(data, [0.1, 0.3, 0.2])
    (0.3958333333333333, 0.75)
    """

    _title = "ERR@{k}"

    max_label: Annotated[int, partial(check_at_least, 1, LARGEST_EXP2_LABEL)] = 4
    ties: Ties = "mean"

    def _stops(self, data: RankingData) -> Vector:
        row = int(data.y.argmax())
        if data.y[row] > self.max_label:
            raise ValueError(
                f"{data.name}: y[{row}] is {data.y[row]}, above the largest label "
                f"{self.max_label} of ERR; use ERR(k, max_label={data.y[row]}), "
                "or fewer levels of relevance"
            )
        return np.ldexp(_label_gains(data, "exp2"), -self.max_label)


MAX_UNINFORMATIVE = 0.2  # fraction of uninformative queries above which a run reports them


def check_differing(metric: Metric, data: RankingData) -> str:
    """Return a remark if more than a fifth of the queries are uninformative; else an empty text.

    A query is informative if its value depends on the order of its documents, see `Metric.can_differ`.

    Raises a ValueError if no query is informative, because every ranker then has the same value.
    """
    usual = NDCG(metric.k, metric.gain) if isinstance(metric, NDCG) else metric
    n_queries = data.n_queries
    n_differing = int(metric.can_differ(data).sum())
    n_usual = int(usual.can_differ(data).sum())
    if n_differing >= (1 - MAX_UNINFORMATIVE) * n_queries:
        return ""
    reason = "where all labels are equal, or none is 0"
    if n_usual > n_differing:
        n_more = n_usual - n_differing
        reason = f"{n_more:,} of which can differ by the usual convention ({usual.name})"
    count = f"{n_queries - n_differing:,} of {n_queries:,}" if n_differing else f"all {n_queries:,}"
    message = (
        f"{data.name}: {metric.name} is the same for any order of the documents "
        f"on {count} queries, {reason}"
    )
    if not n_differing:
        raise ValueError(message)
    return message


def make_metric(name: Any, **conventions: str) -> Metric:
    """Return a metric by its name in problem files and on the command line.

    Parameters
    ----------
    name : str
        "NDCG@k", "P@k", "Recall@k", "Hit@k", "MRR", "MRR@k", "ERR", "ERR@k", "MAP" or "MeanNDCG", in upper or lower
        case, with a number for k. Conventions may follow as they are printed: "NDCG@10 (letor)". Or the name of an
        installed entry point ``moerank.metrics``, a class or a function that returns the metric, or
        ``package.module:name`` of one (see `moerank.solvers.allow_code`), with @k if it takes k.
    **conventions
        Keyword arguments of the metric, such as ``convention="letor"``.

    Raises
    ------
    ValueError
        For an unknown name, k below 1 or an unknown convention.

    Examples
    --------
    >>> make_metric("ndcg@10"), make_metric("P@5").name
    (NDCG(k=10, gain='exp2', convention='usual', discount=None, short_queries=None, ties='mean'), 'P@5')
    >>> make_metric(NDCG(10, gain="linear", convention="letor").name).name
    'NDCG@10 (gain=linear, letor)'
    """
    if not isinstance(name, str):
        raise ValueError(f"a metric has a name, such as 'NDCG@10', not {name!r}")
    name = name.strip()
    if name.endswith(")") and " (" in name:
        name, _, printed = name.removesuffix(")").partition(" (")
        arguments: Parameters = {}
        for part in printed.lower().split(", "):
            key, equals, value = part.rpartition("=")
            arguments[key if equals else "convention"] = int(value) if _is_number(value) else value
        try:
            return make_metric(name, **arguments, **conventions)
        except TypeError:
            raise ValueError(
                f"{name} does not have the conventions ({printed}), or has one twice"
            ) from None
    measure, at, k = name.partition("@")
    make = (_WITH_CUTOFF if at else _WITHOUT_CUTOFF).get(measure.lower())
    if make is None and is_code(measure):
        make = load_code(measure)
    elif make is None:
        make = plugins("moerank.metrics", Callable).get(measure)
    if make is not None and (_is_number(k) or not at):
        return make(int(k), **conventions) if at else make(**conventions)
    raise ValueError(
        f"unknown metric {name!r}; choose one of NDCG@k, P@k, Recall@k, Hit@k, MRR@k, ERR@k, "
        "MRR, ERR, MAP and MeanNDCG, with a number for k"
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def as_metric(
    value: Metric | str | None, default: Metric | None = None, *, name: str = "metric"
) -> Metric:
    """Return the metric of an argument: a Metric, a name as in `make_metric`, or None for the default.

    Anything else is a ValueError that names the argument.

    >>> as_metric("map"), as_metric(Precision(5)).name, as_metric(None, NDCG(10)).name
    (MAP(ties='mean'), 'P@5', 'NDCG@10')
    """
    if value is None and default is not None:
        return default
    if isinstance(value, Metric):
        return value
    try:
        return make_metric(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a Metric or the name of one: {error}") from None


_WITH_CUTOFF: dict[str, Callable[..., Metric]] = {
    "ndcg": NDCG,
    "p": Precision,
    "recall": Recall,
    "hit": Hit,
    "mrr": MRR,
    "err": ERR,
}
_WITHOUT_CUTOFF: dict[str, Callable[..., Metric]] = {
    "map": MAP,
    "meanndcg": MeanNDCG,
    "mrr": MRR,
    "err": ERR,
}


def _queries_with_relevant_documents(data: RankingData) -> Integers:
    return np.flatnonzero(np.maximum.reduceat(data.y, data.offsets[:-1]) > 0)


def _gain_plan(
    data: RankingData,
    gain: Vector,
    discount: Vector,
    depths: Callable[[Matrix], tuple[int, Matrix]],
) -> Plan:
    """Return the arguments of `normalised_gain` after scores and query offsets.

    `depths` takes the cumulated gain of a query's perfect ranking at each rank. It returns the last rank that counts
    and the divisor of each depth that is averaged; a query without a divisor has the value 0.
    """
    queries, last_ranks, ideals = [], [], []
    query_of_document = np.repeat(np.arange(data.n_queries), np.diff(data.offsets))
    ordered = gain[np.lexsort((-gain, query_of_document))]

    @cache  # many short queries have the same gains
    def depth_and_ideal(gains: bytes) -> tuple[int, Matrix]:
        best = np.frombuffer(gains)
        return depths(np.cumsum(best * discount[: len(best)]))

    for query in _queries_with_relevant_documents(data):
        gains = ordered[data.offsets[query] : data.offsets[query + 1]]
        depth, ideal = depth_and_ideal(gains.tobytes())
        if len(ideal):
            queries.append(query)
            last_ranks.append(depth)
            ideals.append(ideal)
    return (
        np.array(queries, np.int64),
        gain,
        discount,
        np.array(last_ranks, np.int64),
        np.concatenate([np.empty(0), *ideals]),
        np.cumsum([0, *map(len, ideals)], dtype=np.int64),
    )


def _without_ties(scores: Matrix, offsets: Integers) -> Matrix:
    """Return minus the rank of each document, equal scores in order of the rows; −∞ for one without a rank."""
    orders = [
        np.argsort(-scores[begin:end], axis=0, kind="stable") for begin, end in pairwise(offsets)
    ]
    ranks = np.vstack([np.argsort(order, axis=0) for order in orders])
    return np.where(scores > -np.inf, -ranks, -np.inf)


def _weighted(data: RankingData, gain: Vector) -> Vector:
    """Return the gain of each document times its weight."""
    return gain if data.document_weights is None else gain * data.document_weights


def _label_gains(data: RankingData, gain: Gain) -> Matrix:
    if gain == "linear":
        return data.y.astype(np.float64)
    row = int(data.y.argmax())
    if data.y[row] > LARGEST_EXP2_LABEL:
        raise ValueError(
            f"{data.name}: y[{row}] is {data.y[row]}, too large for the gain 2^y − 1 "
            f"(at most {LARGEST_EXP2_LABEL}); use gain='linear' or fewer levels of relevance"
        )
    return np.ldexp(1.0, data.y) - 1.0


def _rank_discounts(data: RankingData, metric: NDCG | MeanNDCG) -> Matrix:
    """Return the discount of each rank of the longest query."""
    discount = metric.discount or ("letor" if metric.convention == "letor" else "log2")
    rank = np.arange(1, np.diff(data.offsets).max() + 1)
    return 1.0 / np.log2(np.maximum(rank, 2) if discount == "letor" else 1 + rank)
