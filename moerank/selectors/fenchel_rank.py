"""FenchelRank: sparse ranking inside an ℓ₁ ball, by Frank–Wolfe steps with a duality gap (Lai et al., 2013)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from moerank.arrays import Matrix
from moerank.checks import Count, NotNegative, Positive
from moerank.data import RankingData, centre_in_queries
from moerank.kernels.losses import hinge_line_search, sort_by_label
from moerank.kernels.threads import one_blas_thread
from moerank.rankers.base import Grid
from moerank.rankers.selection import LargestWeightsPath


@dataclass(eq=False, repr=False)
class FenchelRank(LargestWeightsPath):
    """Squared hinge loss of preference pairs, minimised over weights of bounded ℓ₁ norm.

    Minimises, over the p preference pairs (i, j),

        F(w) = (1 / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))²   subject to ‖w‖₁ ≤ r

    from w = 0. A step goes from w towards the vertex v of the ball where the gradient falls most, ± r in one
    coordinate, by the exact minimiser on the segment. So at most one feature joins a step.

    Parameters
    ----------
    r : float, default 1.0
        Radius of the ball, > 0. The larger, the more features.
    tol : float, default 1e-3
        Ends when the duality gap ∇F(w)ᵀ(w − v) ≤ tol, ≥ 0. The gap bounds F(w) − min F; F(0) is 1.
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
    >>> from moerank.selectors.fenchel_rank import FenchelRank
    >>> X = [[0.0, 0.6], [0.5, 0.4], [1.0, 0.6], [0.2, 0.4]]
    >>> FenchelRank(r=1.0).fit(X, y=[0, 1, 2, 0]).coef_.tolist()
    [1.0, 0.0]
    """

    r: Positive = 1.0
    tol: NotNegative = 1e-3
    max_iter: Count = 1000

    def default_grid(self, train: RankingData) -> Grid:
        """Return r = 2⁻² … 2¹⁰; the paper tunes r but its grid is not known."""
        return [{"r": 2.0**power} for power in range(-2, 11)]

    def _fit_warnings(self) -> Iterator[str]:
        yield from super()._fit_warnings()
        if self.n_iter_ == self.max_iter and self.gap_ > self.tol:
            yield (
                f"stopped at max_iter={self.max_iter} steps with a duality gap of {self.gap_:.3g}; raise max_iter or "
                "tol, or lower r"
            )

    def _weights(self, train: RankingData) -> Matrix:
        with one_blas_thread():
            return self._minimise(train)

    def _minimise(self, train: RankingData) -> Matrix:
        rows, runs = train.remember("sorted by label", lambda: sort_by_label(train.y, train.offsets))
        columns = np.ascontiguousarray(centre_in_queries(train.X, train.offsets)[rows].T)
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
