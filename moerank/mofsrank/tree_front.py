"""Fronts of trees: features or their cost, splits that a document passes, and error, with cascades of two steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from moocore import is_nondominated
from sklearn.utils.validation import check_is_fitted

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import AtLeastTwo, Count, Positive, most_workers
from moerank.data import RankingData
from moerank.evolution import search
from moerank.kernels.ranks import mean_over_queries
from moerank.metrics import NDCG, Metric, as_metric
from moerank.mofsrank.feature_selection import FeatureSelection
from moerank.mofsrank.front import Front
from moerank.mofsrank.instance_selection import evenly_spaced
from moerank.mofsrank.objectives import Candidates, ObjectiveLike, read_objectives, values_of
from moerank.mofsrank.refit import OutOfFold, halves
from moerank.mofsrank.searching import REFIT_POPULATION, REFIT_SEARCH, search_arguments
from moerank.mofsrank.settings import FeatureSelectionSettings, StageProgress
from moerank.rankers import LambdaMART, Ranker, Selection, SelectionPath, train_on_subsets, varying_for
from moerank.rankers.arguments import read_masks
from moerank.rankers.lambda_mart import leaf_sizes
from moerank.rankers.model import Forest
from moerank.rankers.selection import best_of_each_size
from moerank.rankers.tree_population import NO_STEP, TreePopulation
from moerank.selectors import CEGB
from moerank.selectors.filter import MetricOrNone

N_SIZES = 20
"""Numbers of trees that are looked at, in a geometric series."""

SHORT = 4
"""Divisor of the number of trees in the sweep: few trees use few features."""

N_FIRST_STEPS = 8
"""First steps that are tried before each second step."""


@dataclass(eq=False, repr=False)
class TreeFront(Selection, Ranker):
    """Search the front of boosted trees in features or cost, time to score, and error, with cascades of two forests.

    1. A sweep of cost-efficient boosting, see `CEGB`, gives feature subsets to start from.
    2. A search by Staircase goes on from them. It judges a subset by a LambdaMART out of fold: the training queries are
       dealt into halves, and each half is scored by the trees that the other one trained. A single query is not dealt.
    3. LambdaMART is trained on all training queries and each subset that is on the front with some number of trees.
       Its first trees are members, each with the error out of fold of as many trees.
    4. Cascades are formed of them: the first step ranks all documents, and the second one, which is more accurate,
       orders the first `reranked` documents of each query anew. They need "visits" among the objectives: where time
       counts for nothing, a cascade has no price.

    Parameters
    ----------
    n_trees : int, default 100
        Largest number of trees of a forest.
    learning_rate : float, default 0.1
    n_leaves : int, default 10
    min_leaf : int, optional
        As in `LambdaMART`; by default 0.25 % of the training documents.
    evaluations : int, default 100
        Feature subsets that the search judges, each by two trainings on half of the queries.
    reranked : int, default 20
        Documents of a query that the second step of a cascade orders anew.
    objectives : sequence of str or Objective, default ("features", "visits", "error")
        Of the front. "visits" is the mean number of splits that a document passes, which time to score follows on any
        machine. In a cascade "features" counts those of both steps, and "cost" counts those of the second step for the
        documents that reach it. The search minimises features and error, and the cost if it is among the objectives.
    metric : Metric or its name, default NDCG(10)
        The error is 1 − this metric.
    random_state : int, optional
        Deals the queries, and draws in the search.
    workers : int, default 1
        Threads; the result is the same for any number.
    progress : callable, optional
        As in `MOFSRank`.

    Attributes
    ----------
    front_ : DataFrame
        A row for each member: n_features, error (out of fold), the other objectives, validation (the metric on
        validation data), features, and steps: features and trees of its forest, of a cascade of both.
    front_support_ : ndarray of bool, shape (n_members, n_features)
    front_rankers_ : TreePopulation
        The members. Its ``microseconds(data)`` measures their times to score.
    chosen_ : int
        The row of the member that `predict` uses: the best on validation data, otherwise that with the least error. It
        is no cascade, because scores of a cascade depend on the other documents of a query.
    support_ : ndarray of bool, shape (n_features,)
    forest_ : Forest
        The trees of this member.
    n_evaluations_ : int

    Notes
    -----
    2 · `evaluations` trainings of LambdaMART on half of the queries, and one in full for each subset on the front. The
    errors choose the front, so that they are too small on the average; those of validation data are not, but for the
    member that they choose.

    References
    ----------
    S. Peter, F. Diego, F. A. Hamprecht, B. Nadler: Cost efficient gradient boosting. NIPS 2017. P. Viola, M. Jones:
    Robust real-time face detection. IJCV 57, 2004, for cascades. The search and the choice of cascades are ours.

    Examples
    --------
    >>> from moerank.data import load_planted_fold
    >>> train, vali, test = load_planted_fold(1, n_queries=40, n_documents=10)
    >>> solver = TreeFront(n_trees=20, evaluations=20, random_state=0).fit(train, validation=vali)
    >>> solver.front_.steps[solver.chosen_]  # features and trees
    ((5, 20),)
    """

    n_trees: Count = 100
    learning_rate: Positive = 0.1
    n_leaves: AtLeastTwo = 10
    min_leaf: Count | None = None
    evaluations: Count = 100
    reranked: Count = 20
    objectives: Annotated[Sequence[ObjectiveLike], read_objectives] = ("features", "visits", "error")
    metric: MetricOrNone = None
    random_state: int | None = None
    workers: Count = 1
    progress: StageProgress | None = None

    _additive = False
    _by_thresholds = True
    _takes_weights = True
    front_coefs_ = None

    def without_selection(self) -> LambdaMART:
        """Return LambdaMART with the same arguments."""
        return LambdaMART(self.n_trees, self.learning_rate, self.n_leaves, self.min_leaf or 1)

    def path(self, train: RankingData) -> SelectionPath:
        """Return the best member of at most 1, 2, … features that is no cascade; nothing is asked of `train`."""
        check_is_fitted(self, "front_")
        single = np.flatnonzero(~self.front_rankers_.is_cascade)
        return best_of_each_size(self.front_support_[single], self.front_rankers_.take(single), self._quality[single])

    @property
    def forest_(self) -> Forest:
        """The trees of the chosen member, over all columns of the training table."""
        return self.front_rankers_.forest(self.chosen_)

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        metric, objectives = as_metric(self.metric, NDCG(10)), read_objectives(self.objectives)
        ranker = self.without_selection().set_params(min_leaf=self.min_leaf or leaf_sizes(train.n_documents)[0])
        tell = self.progress or (lambda stage, share, number, n_eval: None)
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        judge = _Judge(ranker, metric, train, seed, most_workers(self.workers), self.reranked)
        names = [objective.name for objective in objectives]
        priced = "cost" in names
        few = {**ranker.get_params(), "n_trees": max(1, self.n_trees // SHORT)}
        sweep = [member.support_ for member in CEGB(**few).sweep(train)]
        seeds = np.unique([mask for mask in sweep if mask.any()] or [self.varying_], axis=0)
        sought = ("features", *["cost"] * priced, "error")
        stage = FeatureSelection(train, judge, metric, objectives=sought, adaptive=False)
        settings = FeatureSelectionSettings(
            population=REFIT_POPULATION, termination=("n_eval", self.evaluations), initial=stage.strings.bits(seeds)
        )
        arguments = search_arguments("tree_front", stage, "staircase", settings)
        search(stage, *arguments, seed=seed, progress=partial(tell, REFIT_SEARCH))
        self.n_evaluations_ = len(judge.judged)

        singles = judge.members(priced, lambda share, number: tell("refit", share, number, number))
        members = with_cascades(singles, train) if "visits" in names else singles
        errors = 1.0 - metric.batch(train, judge.out_of_fold(members, judge.halves))
        candidates = Candidates(train, metric, members.used, lambda: members, errors=errors)
        F = np.column_stack([objective.values(candidates) for objective in objectives]).astype(np.float64)
        kept = np.flatnonzero(is_nondominated(F))
        front = Front(F[kept], candidates.feature_mask[kept], members.take(kept))
        front, errors = front.by_size(objectives, train, metric)
        found: Any = front.population
        unknown = np.full(len(found), np.nan)
        held_out = unknown if validation is None else mean_over_queries(values_of(validation, metric, found))
        self.front_ = front.table(objectives, errors, held_out).assign(steps=found.steps())
        self.front_support_, self.front_rankers_ = front.feature_mask, found
        self._quality = -errors if validation is None else held_out
        self.chosen_ = int(np.where(found.is_cascade, -np.inf, self._quality).argmax())
        self.support_ = self.front_support_[self.chosen_]

    def _scores(self, X: Matrix) -> Matrix:
        return self.front_rankers_.take(np.array([self.chosen_])).scores(X)[:, 0]


@dataclass(eq=False, repr=False)
class _Judge:
    """Fitness backend: LambdaMART out of fold, with the number of trees among `sizes` that has the least error."""

    ranker: LambdaMART
    metric: Metric
    train: RankingData
    seed: int
    workers: int
    reranked: int
    judged: list[tuple[Mask, tuple[LambdaMART, ...], Vector]] = field(default_factory=list)  # with errors by size

    def __post_init__(self) -> None:
        rows = np.arange(self.train.n_documents)
        dealt = list(halves(self.train, self.seed)) if self.train.n_queries > 1 else [(self.train, rows)]
        self.parts = [part for part, _ in dealt]
        self.held_out = [(self.train.with_rows(rows), rows) for _, rows in dealt]
        self.usable = np.all([varying_for(self.ranker, part) for part in self.parts], axis=0)
        self.sizes = np.unique(np.geomspace(1, self.ranker.n_trees, N_SIZES).round().astype(np.int64))

    def fit_population(self, train: RankingData, *, feature_mask: Mask | None = None, **_: object) -> OutOfFold:
        """Score the training documents for each row of `feature_mask`; see `FitnessBackend`."""
        masks = read_masks(train, None, feature_mask)[2] & self.usable
        scores = np.zeros((train.n_documents, len(masks)))
        some = np.flatnonzero(masks.any(axis=1))
        trained = [self._trained(part, masks[some]) for part in self.parts]
        for i, rankers in zip(some, zip(*trained, strict=True), strict=True):
            steps = np.column_stack([np.zeros_like(self.sizes), self.sizes])
            found = self.out_of_fold(self._forests([rankers[0]], masks[i : i + 1], steps), [rankers])
            curve = 1.0 - self.metric.batch(self.train, found)
            scores[:, i] = found[:, curve.argmin()]
            self.judged.append((masks[i], rankers, curve))
        return OutOfFold(train.X, scores)

    def members(self, priced: bool, progress: Callable[[float, int], object]) -> TreePopulation:
        """Return the non-dominated subsets and numbers of trees, trained on all queries; `halves` are theirs."""
        subsets, halves, curves = zip(*self.judged, strict=True)
        masks = np.array(subsets)
        costs = self.train.costs.sums(masks) if priced and self.train.costs else masks.sum(axis=1)
        subset, size = (numbers.ravel() for numbers in np.indices((len(masks), len(self.sizes))))
        F = np.column_stack([costs[subset], self.sizes[size], np.ravel(curves)])
        kept = is_nondominated(F)
        used, number = np.unique(subset[kept], return_inverse=True)
        self.halves = [halves[i] for i in used]
        rankers = self._trained(self.train, masks[used], progress)
        return self._forests(rankers, masks[used], np.column_stack([number, self.sizes[size[kept]]]))

    def out_of_fold(self, members: TreePopulation, halves: Sequence[tuple[LambdaMART, ...]]) -> Matrix:
        """Return the training scores (n_documents, n_individuals) by the `halves` of each ranker."""
        scores = np.empty((self.train.n_documents, len(members)))
        for rankers, (documents, rows) in zip(zip(*halves, strict=True), self.held_out, strict=True):
            scores[rows] = replace(members, rankers=rankers).scores_of_queries(documents)
        return scores

    def _trained(
        self, part: RankingData, masks: Mask, progress: Callable[[float, int], object] | None = None
    ) -> tuple[LambdaMART, ...]:
        population: Any = train_on_subsets(self.ranker, part, masks, workers=self.workers, progress=progress)
        return tuple(population.rankers)

    def _forests(self, rankers: Sequence[LambdaMART], masks: Mask, steps: Integers) -> TreePopulation:
        return TreePopulation(tuple(rankers), masks, steps, np.tile(NO_STEP, (len(steps), 1)), self.reranked)


def with_cascades(members: TreePopulation, train: RankingData) -> TreePopulation:
    """Return members of one step, in the order of rankers and trees, and cascades of two of them.

    The second step is the forest of each ranker with the most trees. Before it come members that let a document pass
    at most half as many splits, evenly spaced by the number of splits, eight at most.
    """
    visits = members.visits(train)
    by_visits = np.argsort(visits, kind="stable")
    pairs = [(member, -1) for member in range(len(members))]
    for dear in np.flatnonzero(np.diff(members.first[:, 0], append=-1)).tolist():
        cheap = by_visits[visits[by_visits] <= visits[dear] / 2]
        pairs += [(member, dear) for member in cheap[evenly_spaced(len(cheap), N_FIRST_STEPS)]]
    first, second = np.transpose(pairs)
    return replace(members.take(first), second=members.take(second).first)
