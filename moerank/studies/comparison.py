"""Solvers compared by one quantity: the numbers and the words of every table, title and page."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Self, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtr

from moerank import statistics
from moerank.arrays import Integers, Vector
from moerank.studies.results import Results, front_quality
from moerank.verdict import MARGIN, Comparison, compare, short

SolverPairs: TypeAlias = Iterable[tuple[str, str]]

UNDECIDED = "too few to tell"

# The finding where one search continues another, so that its front cannot be worse.
CONSTRUCTED = "true by construction, not tested"

COMPARED = [
    *("solver", "other", "n", "difference", "error", "wins", "ties", "losses"),
    *("p", "adjusted", "finding"),
]

# Largest number of solvers that a sentence names.
MAX_NAMED = 4


@dataclass(frozen=True)
class ComparisonTable:
    """Solvers of one problem compared by one quantity; `compare_solvers` makes it.

    Attributes
    ----------
    quantity : str
    unit : {"query", "fold"}
        What the values are paired by.
    reference : str
        The solver with which the others are compared; "" for all pairs.
    frame : DataFrame
        A row for each pair: ``solver``, ``other``, the number ``n`` of queries or folds, the mean ``difference``
        (solver minus other) with its standard ``error``, the numbers of queries or folds where the solver is above
        (``wins``), equal (``ties``) and below (``losses``), ``p``, the p value ``adjusted`` for the number of rows, and
        the ``finding`` in words.
    """

    quantity: str
    unit: str
    reference: str
    frame: pd.DataFrame

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return the table with other names of solvers."""
        frame = self.frame.replace({"solver": names, "other": names})
        return replace(self, reference=names.get(self.reference, self.reference), frame=frame)

    @property
    def detected(self) -> pd.DataFrame:
        """The rows with a difference that is detected."""
        return self.frame[self.frame["finding"].str.contains("is detected")]

    @property
    def sentence(self) -> str:
        """The findings on all solvers, or on all pairs together; "" without a pair."""
        if self.frame.empty:
            return ""
        quantity = self.quantity.replace("n_features", "number of features")
        head = f"{quantity[0].upper()}{quantity[1:]}"
        count = f"{self.unit} by {self.unit} ({self.frame['n'].max():,})"
        if not self.reference:
            p = self.frame["adjusted"].min()
            return (
                f"{head}, {count}: a difference is detected in {len(self.detected):,} of "
                f"{len(self.frame):,} pairs of solvers (one test of all pairs, p {relation(p)})."
            )
        sentences = [f"{head} against {self.reference}, {count}."]
        for finding, rows in self.frame.groupby("finding", sort=False):
            sentences.append(name_solvers(str(finding).capitalize(), rows["solver"]))
        return " ".join(sentences)


def relation(p: float) -> str:
    """Return a p value with its sign of relation.

    >>> relation(0.0123), relation(1e-5)
    ('= .012', '< .001')
    """
    return "< .001" if p < 0.001 else f"= {short(p)}"


def name_solvers(reason: str, solvers: Collection[str]) -> str:
    """Return a sentence with a reason and the solvers that it concerns, or their number if there are many; else "".

    Examples
    --------
    >>> name_solvers("No search", ["gas", "frank"]), name_solvers("No search", "abcdefg")
    ('No search: gas, frank.', 'No search: 7 solvers.')
    """
    names = ", ".join(solvers) if len(solvers) <= MAX_NAMED else f"{len(solvers)} solvers"
    return f"{reason}: {names}." if len(solvers) else ""


def compare_solvers(results: Results, quantity: str, reference: str = "") -> ComparisonTable:
    """Compare solvers by a quantity: each with the reference, or by default all pairs.

    Values are first averaged over seeds, because more seeds do not make more data. The quantity decides what the test
    is over:

    * A metric on test queries is compared query by query, with the tests of the verdict (`moerank.verdict.compare`).
      p values are adjusted by one test of all rows, `adjust_together`. A query of several folds
      counts once.
    * All other quantities are numbers of training, which are compared fold by fold, with
      `compare_folds` and Holm's adjustment. The hypervolume of a search that continues another one
      and keeps its members cannot be worse. That is not tested.

    Parameters
    ----------
    results : Results
        Results of one problem.
    quantity : str
        "test " and a metric, "hypervolume", or a column of `Results.frame`, such as "n_features".
    reference : str, default ""
        The label of a solver.

    Notes
    -----
    The rankers of a fold are trained on the same data. Tests over queries generalise to other queries for these
    rankers, but not to other training data or seeds. O(n_solvers² · n_queries) for all pairs.
    """
    solvers = results.solvers
    pairs: SolverPairs = combinations(solvers, 2)
    if reference:
        pairs = [(solver, reference) for solver in solvers if solver != reference]
    part, _, metric = quantity.partition(" ")
    if part == "test":
        return ComparisonTable(quantity, "query", reference, _by_query(results, metric, pairs))
    return ComparisonTable(quantity, "fold", reference, _by_fold(results, quantity, pairs))


def _by_query(results: Results, metric: str, pairs: SolverPairs) -> pd.DataFrame:
    """Return the frame of a `ComparisonTable` over the informative test queries of the folds that both solvers have."""
    values, weights = results.query_values(metric), results.query_weights()
    margin = max((run.verdict.margin for run in results if run.verdict), default=MARGIN)
    tail = statistics.Tail()
    for run in results:
        for part in run.query_weights.keys() - {"test"}:
            tail = tail.joined([], run.query_weights[part])
    comparisons, table = {}, {}
    for pair in pairs:
        both = values[list(pair)].dropna().groupby("query", sort=False).mean()
        if len(both):
            d, w = _differences(both), weights[both.index]
            comparisons[pair] = compare(d, w, margin=margin, tail=tail)
            table[pair] = pd.Series(statistics.weigh(d, w)[0], d.index)
    p = [comparison.p for comparison in comparisons.values()]
    adjusted, level = adjust_together(pd.DataFrame(table).fillna(0.0), p)
    rows = []
    for (pair, comparison), *p_values in zip(comparisons.items(), p, adjusted, strict=True):
        finding = _finding(comparison.model_copy(update={"level": level}))
        means = comparison.n_differing, comparison.difference, comparison.error
        rows.append((*pair, *means, *_sides(comparison.differences), *p_values, finding))
    return pd.DataFrame(rows, columns=COMPARED)


def _by_fold(results: Results, quantity: str, pairs: SolverPairs) -> pd.DataFrame:
    """Return the frame of a `ComparisonTable` over the folds that both solvers have; fronts are those of one goal."""
    is_front = quantity == "hypervolume"
    values = front_quality(results) if is_front else results.frame
    means = values.groupby(["fold", "solver"])[quantity].mean().unstack()
    goals, rows = {run.solver: run.goal for run in results}, []
    for pair in pairs:
        both = means[list(pair)].dropna()
        if both.empty or (is_front and len(set(map(goals.get, pair))) > 1):
            continue
        d = _differences(both)
        error, p = compare_folds(d, _shared_queries(results, d.index))
        finding = "an increase is detected" if d.mean() > 0 else "a decrease is detected"
        if is_front and (_is_continued(results, *pair) or _is_continued(results, *pair[::-1])):
            p, finding = np.nan, CONSTRUCTED
        rows.append((*pair, len(d), d.mean(), error, *_sides(d), p, p, finding))
    frame = pd.DataFrame(rows, columns=COMPARED)
    is_tested = frame["p"].notna()
    frame.loc[is_tested, "adjusted"] = statistics.holm(frame.loc[is_tested, "p"])
    is_open = (frame["finding"] != CONSTRUCTED) & ~(frame["adjusted"] <= statistics.LEVEL)
    frame.loc[is_open, "finding"] = UNDECIDED
    return frame


def _finding(comparison: Comparison) -> str:
    """Return what is detected in words; what is likely is no finding, because in a family it errs too often."""
    within = f"within {short(comparison.margin)}"
    if comparison.finding in ("loss", "gain"):
        end = f", {within}" if comparison.equivalent else ""
        return f"a {comparison.finding} is detected{end}"
    return f"equivalent {within}" if comparison.equivalent else UNDECIDED


def _differences(values: pd.DataFrame) -> pd.Series:
    """Return the first column minus the second one."""
    return pd.Series(statistics.paired_differences(*values.to_numpy().T), values.index)


def _sides(differences: ArrayLike) -> Integers:
    """Return the numbers of wins, ties and losses."""
    return np.bincount(1 - np.sign(differences).astype(int), minlength=3)


def _shared_queries(results: Results, folds: Iterable[int]) -> pd.DataFrame:
    """Return the share of training queries that two folds have in common, shape (n_folds, n_folds)."""
    trained = {run.fold: pd.Series(1.0, run.queries["train"]) for run in results}
    table = pd.concat(trained, axis=1)[folds].fillna(0.0)
    table /= np.sqrt(table.sum())
    return table.T @ table


def _is_continued(results: Results, base: str, solver: str) -> bool:
    """Return whether a search has the stages of its base in each run, then one that keeps all members."""
    stages = {(run.fold, run.seed): run.convergence for run in results if run.solver == base}
    for run in results.among([solver]):
        before = stages.get((run.fold, run.seed), {})
        keeps_members = "'keep_members': False" not in str(run.configuration)
        if not (keeps_members and before and before.items() < run.convergence.items()):
            return False
    return True


# Random signs of each query by which `adjust_together` judges the largest of several statistics.
FLIPS = 5_000

# Level at which they hold together: at .05 they err in up to 7 % of the families of which few queries lose much.
AIM = 0.04


def adjust_together(differences: ArrayLike, p: ArrayLike) -> tuple[Vector, float]:
    """Return p values of several tests of means adjusted for their number, and the level of each test.

    If no mean differs from 0, the differences of a query may as well have the opposite sign in all columns. An adjusted
    p value is 1.25 times the share of random signs with which the largest of all t statistics is at least as large as
    the one of this p value. Columns that depend on each other, as the pairs of some solvers do, cost less than in
    Holm's method.

    Parameters
    ----------
    differences : array-like, shape (n_queries, n_means)
        0 for queries that a mean lacks.
    p : array-like, shape (n_means,)
        Two-sided p values that are at least those of the t tests.

    Returns
    -------
    adjusted : ndarray, shape (n_means,)
        Between p and n_means · p, and the same in each call.
    level : float
        Tests at this level hold together at .05: a p value is below it if the adjusted one is at most .05.

    References
    ----------
    P. H. Westfall, S. S. Young: Resampling-based multiple testing. Wiley, 1993. Single-step max-T.

    Examples
    --------
    >>> d = np.random.default_rng(0).normal(size=(400, 10))
    >>> adjusted, level = adjust_together(d[:, [0, 0, 0]], [0.01, 0.02, 0.03])
    >>> adjusted.round(2).tolist(), round(level, 2), round(adjust_together(d, np.ones(10))[1], 4)
    ([0.01, 0.02, 0.03], 0.04, 0.005)
    """
    d, p = statistics.numbers(differences, 2, empty=True), statistics.numbers(p, empty=True)
    n = len(d)
    if n < 2 or not len(p):
        return p, statistics.LEVEL
    z = d / np.maximum(np.sqrt((d**2).sum(axis=0)), 1e-300)
    signs = 2.0 * np.random.default_rng(0).integers(0, 2, (FLIPS, n), np.int8) - 1.0
    u = np.abs(signs @ z).max(axis=1)
    # Σd / √Σd² of random signs as t statistics, and these as p values.
    t = u * np.sqrt((n - 1) / np.maximum(n - u**2, 1e-300))
    minima = np.sort(2 * stdtr(n - 1, -t))
    counts = 1 + np.searchsorted(minima, p * (1 + 1e-9), side="right")
    adjusted = counts / (1 + FLIPS) * (statistics.LEVEL / AIM)
    level = np.clip(minima[int(AIM * (1 + FLIPS)) - 1], statistics.LEVEL / len(p), statistics.LEVEL)
    return adjusted.clip(p, np.minimum(1.0, len(p) * p)), float(level)


def compare_folds(differences: ArrayLike, shared: ArrayLike | None = None) -> tuple[float, float]:
    """Return the standard error of the mean of several folds, and the p value of the hypothesis that it is 0.

    The test is a t test that allows for training queries that folds share. The correlation of a statistic of two
    samples is at most their share of common units (Hoeffding, 1948), and the test assumes this largest correlation.
    Without common queries it is the usual t test.

    Parameters
    ----------
    differences : array-like, shape (n_folds,)
        Differences of a number of training, means over the seeds of each fold.
    shared : array-like, shape (n_folds, n_folds), optional
        The share of training queries that two folds have in common, with 1 on the diagonal; by default 0 elsewhere.

    Returns
    -------
    error, p : float
        NaN for a single fold, and if all have the same training queries. p is 1 if all differences are equal.

    Notes
    -----
    If C is `shared`, and D the same with centred columns, the squared error is s² (k − 1) 1ᵀC1 / (k² tr D), and the
    degrees of freedom are (tr D)² / tr D², as by Satterthwaite. For equal shares this is the test of Nadeau and
    Bengio. We assume that the differences are normally distributed.

    References
    ----------
    C. Nadeau, Y. Bengio: Inference for the generalization error. Machine Learning 52, 2003.

    W. Hoeffding: A class of statistics with asymptotically normal distribution. Annals of Mathematical Statistics 19,
    1948.

    Examples
    --------
    >>> [round(value, 3) for value in compare_folds([0.1, 0.2, 0.3])]
    [0.058, 0.074]
    >>> [round(value, 3) for value in compare_folds([0.1, 0.2, 0.3], 0.5 * (np.eye(3) + 1))]
    [0.115, 0.225]
    """
    d = statistics.numbers(differences)
    k = len(d)
    C = np.eye(k) if shared is None else statistics.numbers(shared, 2)
    spread = k - C.sum() / k  # tr D
    if spread < 1e-9:
        return np.nan, np.nan
    error = d.std(ddof=1) * np.sqrt((k - 1) * C.sum() / spread) / k
    if error <= 1e-9 * np.abs(d).max():
        return 0.0, 1.0
    df = spread**2 / ((C - C.mean(axis=0)) ** 2).sum()
    return float(error), float(2 * stdtr(df, -abs(d.mean()) / error))
