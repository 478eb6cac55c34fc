"""Sparse rankers: FenchelRank, RankSVM with nonconvex penalties, and the baselines of the paper on FSMRank."""

from collections.abc import Sequence
from itertools import product
from typing import Literal, Self

import numpy as np

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import Count, NotNegative, Parameters, Positive, Share
from moerank.data import RankingData, centre_in_queries
from moerank.kernels.losses import hinge_line_search, sort_by_label
from moerank.kernels.run_pass import RESIDUALS
from moerank.kernels.scores import linear_scores
from moerank.kernels.threads import one_blas_thread
from moerank.metrics import Metric
from moerank.rankers.base import Grid
from moerank.rankers.fsm_rank import FSMRank, measures_of, weights_of
from moerank.rankers.importance import FeatureImportance, FeatureSimilarity, feature_importance
from moerank.rankers.selection import LargestWeightsPath
from moerank.selectors.filter import Filter
from moerank.training.masks import Masks
from moerank.training.pairs import SQUARED_HINGE, CountedPairs, ListedPairs, Penalties
from moerank.training.sorted import PairedDocuments

# The weighted ℓ₁ problems end when a step changes their objective by at most this fraction, or after so many steps.
INNER_TOL = 1e-8
INNER_STEPS = 2000


class FenchelRank(LargestWeightsPath):
    """Squared hinge loss of preference pairs, minimised over weights of bounded ℓ₁ norm.

    Minimises, over the p preference pairs (i, j),

        F(w) = (1 / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))²   subject to ‖w‖₁ ≤ r

    from w = 0. A step goes from w towards the vertex v of the ball where the gradient falls most, ± r in one
    coordinate, by the exact minimiser on the segment. So at most one feature joins in a step.

    Parameters
    ----------
    r : float, default 1.0
        Radius of the ball, > 0. A larger radius keeps more features.
    tol : float, default 1e-3
        Training ends when the duality gap ∇F(w)ᵀ(w − v) is at most this, ≥ 0. The gap bounds F(w) − min F; F(0) is 1.
    max_iter : int, default 1000
        Largest number of steps.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    support_ : ndarray of bool, shape (n_features,)
        Features with a weight other than 0.
    objective_ : float
        F at the weights.
    gap_ : float
        The duality gap there: no weights in the ball have an objective below ``objective_ - gap_``.
    n_iter_ : int
        Steps taken.

    Notes
    -----
    O(p + n_documents · n_features) per step, O(1 / tol) steps. The paper's problem, (r² / p) Σ max(0, 1/r − wᵀ(xᵢ −
    xⱼ))² in the unit ball, is the same with weights divided by r; gap and objective are equal. The segment is
    searched by Newton's method instead of by sorting the breakpoints of the piecewise quadratic.

    References
    ----------
    H. Lai, Y. Pan, C. Liu, L. Lin, J. Wu: Sparse learning-to-rank via an efficient primal-dual algorithm. IEEE
    Transactions on Computers 62, 2013.

    Examples
    --------
    >>> from moerank.selectors.sparse_rankers import FenchelRank
    >>> X = [[0.0, 0.6], [0.5, 0.4], [1.0, 0.6], [0.2, 0.4]]
    >>> FenchelRank(r=1.0).fit(X, y=[0, 1, 2, 0], qid=0).coef_.tolist()
    [1.0, 0.0]
    """

    r: Positive = 1.0
    tol: NotNegative = 1e-3
    max_iter: Count = 1000

    def default_grid(self, train: RankingData) -> Grid:
        """Return r = 2⁻² … 2¹⁰; the paper tunes r but its grid is not known."""
        return [{"r": 2.0**power} for power in range(-2, 11)]

    def _fit_warning(self) -> str:
        if self.n_iter_ < self.max_iter or self.gap_ <= self.tol:
            return ""
        return (
            f"stopped at max_iter={self.max_iter} steps with a duality gap of {self.gap_:.3g}; "
            "raise max_iter or tol, or lower r"
        )

    @one_blas_thread()
    def _weights(self, train: RankingData) -> Matrix:
        documents = PairedDocuments.of(train)
        rows, runs = sort_by_label(train.y[documents.rows], documents.pairs.offsets)
        X = centre_in_queries(train.X, train.offsets)[documents.rows]
        columns = np.ascontiguousarray(X[rows].T)
        w = np.zeros(len(columns))
        scores, residual = np.zeros((2, len(rows)))
        # A search of length 0 gives the loss and the residuals at w = 0.
        step, loss = hinge_line_search(runs, scores, scores, 0.0, 0.0, residual)
        self.n_iter_ = 0
        while True:
            descent = 2.0 / len(train.pairs) * (columns @ residual)  # −∇F(w)
            feature = int(np.argmax(np.abs(descent)))
            vertex = np.copysign(self.r, descent[feature])
            self.gap_ = float(vertex * descent[feature] - descent @ w)
            self.objective_ = float(loss / len(train.pairs))
            if self.gap_ <= self.tol or self.n_iter_ == self.max_iter:
                return w
            change = vertex * columns[feature] - scores
            step, loss = hinge_line_search(runs, scores, change, step, 1.0, residual)
            if step == 0.0:
                return w
            w *= 1.0 - step
            w[feature] += step * vertex
            scores += step * change
            self.n_iter_ += 1


class NonconvexRanker(LargestWeightsPath):
    """Squared hinge loss of preference pairs and a penalty that grows ever more slowly with a weight.

    Finds a local minimum, over the preference pairs (i, j), of

        Σ h(|wₖ|) + (C / n_pairs) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))²

    by majorisation: h is concave, so h(|wₖ|) ≤ h(|vₖ|) + h′(|vₖ|) (|wₖ| − |vₖ|). Each solution v gives the
    costs h′(|vₖ|) of the next ℓ₁ problem, which is convex; in the first every feature costs lam. The penalties are

    * ``"lp"``: h(u) = lam ((u + eps)ᵖ − epsᵖ), a pseudo-norm, smoothed at 0
    * ``"log"``: h(u) = lam log(1 + u / eps)
    * ``"mcp"``: h(u) = lam u − u² / (2 gamma) up to u = gamma · lam, constant from there on: minimax concave

    Parameters
    ----------
    penalty : {"lp", "log", "mcp"}, default "lp"
    lam : float, default 1e-2
        Weight of the penalty, ≥ 0. A larger one keeps fewer features.
    C : float, default 1.0
        Weight of the loss, > 0.
    p : float, default 0.5
        Exponent of "lp", in (0, 1].
    gamma : float, default 2.0
        "mcp" is constant for weights above gamma · lam, > 0.
    eps : float, default 1e-2
        Size of a weight up to which "lp" and "log" are steep, > 0.
    max_iter : int, default 20
        Largest number of weighted ℓ₁ problems.
    tol : float, default 1e-4
        Training ends when no weight changes by more than this from one problem to the next.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    support_ : ndarray of bool, shape (n_features,)
        Features with a weight other than 0.
    n_iter_ : int
        Weighted ℓ₁ problems solved.
    objectives_ : ndarray, shape (n_iter_,)
        The objective after each of them; it never rises.

    Notes
    -----
    Each ℓ₁ problem starts from the solution of the one before and takes accelerated forward–backward steps, those of
    FSMRank without its similarity term, O(n_pairs + n_documents · n_features) each, at most 2,000 of them. Up to eight
    entries of a grid are solved together.

    References
    ----------
    L. Laporte, R. Flamary, S. Canu, S. Déjean, J. Mothe: Nonconvex regularizations for feature selection in ranking
    with sparse SVM. IEEE Transactions on Neural Networks and Learning Systems 25, 2014.

    Examples
    --------
    >>> from moerank.selectors.sparse_rankers import NonconvexRanker
    >>> X = [[0.0, 0.6], [0.5, 0.4], [1.0, 0.6], [0.2, 0.4]]
    >>> NonconvexRanker("mcp", lam=0.1).fit(X, y=[0, 1, 2, 0], qid=0).support_.tolist()
    [True, False]
    """

    penalty: Literal["lp", "log", "mcp"] = "lp"
    lam: NotNegative = 1e-2
    C: Positive = 1.0
    p: Share = 0.5
    gamma: Positive = 2.0
    eps: Positive = 1e-2
    max_iter: Count = 20
    tol: NotNegative = 1e-4

    _trained_together = None
    _remedy = (
        "a smaller lam or a larger C keeps more features, "
        "and comparable scales of the features help"
    )

    def default_grid(self, train: RankingData) -> Grid:
        """Return lam = 10⁰ … 10⁻⁵ in steps of a third of a decade: no feature, then few, then all.

        The grid of the paper is not known.
        """
        return [{"lam": float(lam)} for lam in np.logspace(0, -5, 16)]

    def penalties(self, u: Matrix) -> Matrix:
        """Return h at the absolute weights u ≥ 0, elementwise."""
        if self.penalty == "lp":
            return self.lam * ((u + self.eps) ** self.p - self.eps**self.p)
        if self.penalty == "log":
            return self.lam * np.log1p(u / self.eps)
        bent = np.minimum(u, self.gamma * self.lam)
        return self.lam * bent - bent**2 / (2.0 * self.gamma)

    def costs(self, u: Matrix) -> Matrix:
        """Return h′, the costs of the next ℓ₁ problem, at the absolute weights u ≥ 0, elementwise."""
        if self.penalty == "lp":
            return self.lam * self.p * (u + self.eps) ** (self.p - 1.0)
        if self.penalty == "log":
            return self.lam / (u + self.eps)
        return np.maximum(0.0, self.lam - u / self.gamma)

    def _weights(self, train: RankingData) -> Matrix:
        W, (objectives,), (self._change,) = _solve(train, [self])
        self.objectives_ = np.array(objectives)
        self.n_iter_ = len(objectives)
        return W[0]

    def _fit_warning(self) -> str:
        if self.n_iter_ < self.max_iter or self._change <= self.tol:
            return ""
        return (
            f"stopped at max_iter={self.max_iter} weighted ℓ₁ problems, the last of which "
            f"changed a weight by {self._change:.3g}; raise max_iter, tol, lam or gamma, "
            "or lower C"
        )

    def _candidate_scores(
        self, train: RankingData, validation: RankingData, candidates: list[Self]
    ) -> Matrix:
        return linear_scores(validation.X, _solve(train, candidates)[0])


def _solve(
    train: RankingData, rankers: Sequence[NonconvexRanker]
) -> tuple[Matrix, list[list[float]], Vector]:
    """Train rankers that may differ in all their parameters; each ends by its own rules.

    Returns their weights, the objectives after each ℓ₁ problem, and the largest change of a weight in the last one.
    """
    W, changes = np.zeros((len(rankers), train.n_features)), np.full(len(rankers), np.inf)
    cost = np.repeat([[float(ranker.lam)] for ranker in rankers], train.n_features, axis=1)
    scale = np.array([1.0 / ranker.C for ranker in rankers])
    objectives: list[list[float]] = [[] for _ in rankers]
    moving = np.arange(len(rankers))
    while len(moving):
        u, v, values = _solve_weighted(train, W[moving], cost[moving], scale[moving])
        going = np.zeros(len(moving), bool)
        for row, i in enumerate(moving.tolist()):
            ranker, w = rankers[i], u[row] - v[row]
            loss = ranker.C * values[row] - cost[i] @ (u[row] + v[row])
            value = float(loss + ranker.penalties(np.abs(w)).sum())
            # Where the objective rises, the gain was the rounding of the solution.
            if objectives[i] and value > objectives[i][-1]:
                continue
            objectives[i].append(value)
            changes[i] = np.abs(w - W[i]).max()
            W[i], cost[i] = w, ranker.costs(np.abs(w))
            going[row] = changes[i] > ranker.tol and len(objectives[i]) < ranker.max_iter
        moving = moving[going]
    return W, objectives, changes


def _solve_weighted(
    train: RankingData, W: Matrix, costs: Matrix, scales: Vector
) -> tuple[Matrix, Matrix, Vector]:
    """Minimise (1 / n_pairs) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))² + scale Σ costₖ |wₖ| for each row, from `W`.

    Returns u and v, of which w = u − v is the solution, and the minima.
    """
    start = np.hstack([W.clip(0.0), (-W).clip(0.0)])
    penalties = Penalties(np.zeros((0, 0)), costs, np.zeros(len(W)), scales)
    masks = Masks(np.ones(W.shape, bool))
    variables, n_iter, history = ListedPairs.of(train).minimise_penalised(
        penalties, masks, start, INNER_STEPS, INNER_TOL
    )
    u, v = np.hsplit(variables, 2)
    return u, v, history[n_iter, np.arange(len(W))]


class FSMRankSubgradient(LargestWeightsPath):
    """The objective of `FSMRank`, minimised by projected sub-gradient steps instead of accelerated ones.

    With F the objective of problem (2) over the non-negative variables w = [u; v] of the weights u − v, from w = 0,

        w ← max(0, w − η₀ / √t · ∇F(w))   for t = 1 … max_iter

    A step may raise F; the best of all points counts.

    Parameters
    ----------
    lambda1, lambda2, importance, similarity, convex
        As in `FSMRank`.
    eta0 : float, default 0.3
        Length of the first step, η₀ > 0.
    max_iter : int, default 400
        Number of steps.

    Attributes
    ----------
    coef_, support_
        As in `FSMRank`.
    variables_ : ndarray, shape (2 * n_features,)
        The best point [u; v].
    n_iter_ : int
        Number of steps, `max_iter`.
    objectives_ : ndarray, shape (max_iter + 1,)
        The objective at the start and after each step.

    Notes
    -----
    O(p + n_documents · n_features + n_features²) per step for p pairs. The error is O(1 / √max_iter), while
    FSMRank's is O(1 / max_iter²). The paper gives neither the length nor the number of its steps. The entries of a grid
    are solved together.

    References
    ----------
    H. Lai, Y. Pan, Y. Tang, R. Yu: FSMRank: feature selection algorithm for learning to rank. IEEE Transactions on
    Neural Networks and Learning Systems 24, 2013, section IV-E.

    Examples
    --------
    >>> from moerank.selectors.sparse_rankers import FSMRankSubgradient
    >>> X = [[0.0, 0.6], [0.5, 0.4], [1.0, 0.6], [0.2, 0.4]]
    >>> FSMRankSubgradient(lambda2=0.1).fit(X, y=[0, 1, 2, 0], qid=0).support_.tolist()
    [True, False]
    """

    lambda1: NotNegative = 1e-3
    lambda2: NotNegative = 1e-3
    eta0: Positive = 0.3
    max_iter: Count = 400
    importance: FeatureImportance = "pearson"
    similarity: FeatureSimilarity = "pearson"
    convex: bool = True

    _trained_together = ("lambda1", "lambda2", "eta0")
    _remedy = (
        "no step has a lower objective than no features: "
        "lower eta0 or lambda2, or scale the features"
    )

    def default_grid(self, train: RankingData) -> Grid:
        """Return lambda1 and lambda2 in 10⁻⁶ … 10⁰, each with eta0 = 1, 10⁻¹, 10⁻² and 10⁻³: 196 entries.

        FSMRank's grid also has half powers of ten; here there is one more parameter to choose.
        """
        powers = [10.0**k for k in range(0, -7, -1)]
        entries = product(powers, powers, powers[:4])
        return [
            {"lambda1": lambda1, "lambda2": lambda2, "eta0": eta0}
            for lambda2, lambda1, eta0 in entries
        ]

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        variables, history = _minimise(train, [self])
        self.variables_, self.objectives_ = variables[0], history[:, 0].copy()
        self.n_iter_ = self.max_iter
        self._set_weights(weights_of(variables)[0])

    def _candidate_scores(
        self, train: RankingData, validation: RankingData, candidates: list[Self]
    ) -> Matrix:
        return linear_scores(validation.X, weights_of(_minimise(train, candidates)[0]))


def _minimise(train: RankingData, rankers: Sequence[FSMRankSubgradient]) -> tuple[Matrix, Matrix]:
    """Train rankers that differ only in lambda1, lambda2 and eta0.

    Returns their variables (n_rankers, 2 n_features) and histories (max_iter + 1, n_rankers).
    """
    pairs = CountedPairs.of(train)
    n = len(rankers)
    s, A, cost = measures_of(train, rankers[0])
    lambda1 = np.array([[ranker.lambda1] for ranker in rankers], float)
    linear = np.array([[ranker.lambda2] for ranker in rankers], float) * cost
    eta0 = np.array([[ranker.eta0] for ranker in rankers], float)
    masks = Masks(np.tile(s > 0, (n, 1)))
    tasks = np.full(n, RESIDUALS)
    w = best = np.zeros((n, 2 * len(s)))
    history = np.empty((rankers[0].max_iter + 1, n))
    for step in range(len(history)):
        u, v = np.hsplit(w, 2)
        size, W = u + v, u - v
        sums, slack = pairs.sums(SQUARED_HINGE, np.float64, tasks, masks, W, np.zeros_like(W))
        similar = lambda1 * np.einsum("fg,ng->nf", A, size)
        # Where steps diverge, the best ones before them stay.
        with np.errstate(over="ignore", invalid="ignore"):
            loss = (slack - (W * sums).sum(axis=1)) / train.n_pairs
            history[step] = loss + (size * (0.5 * similar + linear)).sum(axis=1)
        is_best = history[step] == np.fmin.reduce(history[: step + 1])
        best = np.where(is_best[:, None], w, best)
        step_length = eta0 / np.sqrt(step + 1.0)
        w = _stepped(w, step_length, similar + linear, 2.0 / train.n_pairs * sums, s > 0)
    return best, history


def _stepped(w: Matrix, length: Matrix, rise: Matrix, pull: Matrix, varying: Mask) -> Matrix:
    """Return w after a step along −∇F, from the slopes of the penalty in |w| and the descent of the loss in w."""
    w = w - length * np.hstack([rise - pull, rise + pull])
    return np.where(np.tile(varying, 2), w.clip(0.0), 0.0)


class FSMSVM(Filter):
    """Order the features by FSMRank, then train RankSVM on the first ones.

    The order is that of |w|, with w the minimum of FSMRank's objective

        (1 / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))² + ½ lambda1 |w|ᵀA|w| + lambda2 Σ |wᵢ| / sᵢ

    Parameters
    ----------
    n_features_to_select, ranker
        As in `moerank.selectors.filter.Filter`.
    lambda1, lambda2 : float, optional
        As in `FSMRank`, ≥ 0. `tune` first chooses those that are None, as FSMRank itself would on the validation data,
        then the number of features and the ranker. Without `tune`, None means FSMRank's default.

    Attributes
    ----------
    order_, support_, population_, coef_
        As in `moerank.selectors.filter.Filter`.

    Notes
    -----
    It trains one FSMRank and one ranker. Features without a weight follow those with one, by importance.

    References
    ----------
    H. Lai, Y. Pan, Y. Tang, R. Yu: FSMRank: feature selection algorithm for learning to rank. IEEE Transactions on
    Neural Networks and Learning Systems 24, 2013, section V.

    Examples
    --------
    >>> X = [[0.0, 0.6], [0.5, 0.4], [1.0, 0.6], [0.2, 0.4]]
    >>> FSMSVM(1).fit(X, y=[0, 1, 2, 0], qid=0).order_.tolist()
    [0, 1]
    """

    lambda1: NotNegative | None = None
    lambda2: NotNegative | None = None

    def _settled(self, train: RankingData, validation: RankingData, metric: Metric) -> Parameters:
        fsm_rank = self._first_stage()
        names = [name for name in ("lambda1", "lambda2") if getattr(self, name) is None]
        entries = {}
        for entry in fsm_rank.default_grid(train):
            values = {name: entry[name] for name in names}
            entries[repr(values)] = values
        tuned = fsm_rank.tune(train, validation, list(entries.values()), metric)
        return {name: getattr(tuned, name) for name in names}

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        weights = self._first_stage().fit_population(train)[0]
        return np.lexsort((-feature_importance(train), -np.abs(weights)))

    def _first_stage(self) -> FSMRank:
        default = FSMRank()
        return FSMRank(
            lambda1=default.lambda1 if self.lambda1 is None else self.lambda1,
            lambda2=default.lambda2 if self.lambda2 is None else self.lambda2,
        )
