"""FS-ED: features that rank well and differ between the grades of relevance (Gupta and Rosso, 2012)."""

from itertools import combinations
from typing import Any

import numpy as np

from moerank.arrays import Matrix
from moerank.data import RankingData
from moerank.data.describe import SMALLEST_SQUARED
from moerank.kernels.counted_sums import gaussian_density
from moerank.metrics import NDCG, as_metric
from moerank.rankers.base import MetricOrNone
from moerank.rankers.importance import single_feature_values
from moerank.rankers.structural_svm import RankSVMStruct
from moerank.selectors.filter import Filter

FLOOR = 1e-12  # smallest probability of a point: the logarithm of a smaller one would be noise
# Quartiles closer than this share of the deviation differ only by rounding.
MIN_QUARTILE_SHARE = 1e-100


class FSED(Filter):
    """Select the features with the largest sum of importance and expected divergence.

    A feature f scores ψ(f) = s(f) + d(f), with s(f) the metric of ranking the training queries by f, larger values
    first, and

        d(f) = Σ_{a < b} (b − a) JS(fᵃ, fᵇ)

    over the relevance labels a and b. fᵃ is the density of the feature over the training documents with label a,
    estimated by Gaussian kernels and evaluated at the values of the validation documents; JS is the Jensen–Shannon
    divergence.

    Parameters
    ----------
    n_features_to_select
        As in `moerank.selectors.filter.Filter`.
    ranker : estimator, optional
        As in `moerank.selectors.filter.Filter`. Default: ``RankSVMStruct()``, the loss of the paper's svm_rank.
    metric : Metric or its name, default NDCG(10)
        Measure of a ranking.

    Attributes
    ----------
    order_, support_, population_, coef_
        As in `moerank.selectors.filter.Filter`.
    importance_, divergence_ : ndarray, shape (n_features,)
        s and d of each feature; their sum is ψ.

    Notes
    -----
    O((n_documents + n_validation) · n_features) and a sort of each feature. Our choices where the paper is silent: the
    bandwidth is h = 0.9 min(σ, IQR / 1.34) M^(−1/5) over M documents, with σ alone where the quartiles coincide;
    densities are scaled to sum 1 over the points, no less than 1e-12 each; the logarithm is natural; JS is 0 with a
    label that has fewer than two documents or a single value. `fit` and `tune` need validation data.

    References
    ----------
    P. Gupta, P. Rosso: Expected divergence based feature selection for learning to rank. COLING 2012, posters,
    equations (1)-(4). The rule for h is that of B. W. Silverman: Density estimation for statistics and data analysis,
    1986.

    Examples
    --------
    >>> X = [[0.0, 0.3], [0.2, 0.1], [0.9, 0.2], [1.0, 0.3]]
    >>> held_out = ([[0.0, 0.1], [0.5, 0.2], [1.0, 0.2]], [0, 1, 1])
    >>> FSED(1).fit(X, y=[0, 0, 1, 1], qid=0, validation=held_out).order_.tolist()
    [0, 1]
    """

    metric: MetricOrNone = None

    def _chosen_ranker(self) -> Any:
        return RankSVMStruct() if self.ranker is None else self.ranker

    def _arrange(self, train: RankingData, validation: RankingData | None) -> None:
        if validation is None:
            raise ValueError(
                "FSED evaluates the densities of features on validation data: give them to fit, "
                "as validation=(X, y, qid) or RankingData"
            )
        self.order_, self.importance_, self.divergence_ = self._once(train, validation)

    def _arrangement(self, train: RankingData, validation: Any) -> Any:
        """Return the order, and importance and divergence of each feature."""
        importance = single_feature_values(train, as_metric(self.metric, NDCG(10)))[0]
        divergences = expected_divergence(train, validation.X64)
        order = np.argsort(-(importance + divergences), kind="stable")
        return order[self.varying_[order]], importance, divergences


def expected_divergence(train: RankingData, points: Matrix) -> Matrix:
    """Return d(f) of each feature, shape (n_features,), with densities at `points` (n_points, n_features)."""
    labels = np.unique(train.y)
    total = np.zeros(train.n_features)
    for f, (column, at) in enumerate(zip(train.X64.T, points.T, strict=True)):
        densities = {int(a): _density(column[train.y == a], at) for a in labels}
        for (a, low), (b, high) in combinations(densities.items(), 2):
            if low is not None and high is not None:
                middle = 0.5 * (low + high)
                divergence = 0.5 * np.sum(low * np.log(low / middle) + high * np.log(high / middle))
                total[f] += (b - a) * float(divergence)
    return total


def _density(sample: Matrix, points: Matrix) -> Matrix | None:
    """Return the density of a sample as a distribution over the points; None if all its values are equal."""
    extent = np.ptp(sample)
    if extent == 0:
        return None
    if extent < SMALLEST_SQUARED:  # the distribution is that of all values times a power of 2
        exponent = -int(np.frexp(extent)[1])
        # A point that goes to infinity was far from every sample before.
        with np.errstate(over="ignore"):
            sample = np.ldexp(sample, exponent)
            points = np.ldexp(points, exponent)
    deviation = sample.std(ddof=1)
    quartiles = np.percentile(sample, [25, 75])
    width = min(deviation, (quartiles[1] - quartiles[0]) / 1.34)
    if width <= MIN_QUARTILE_SHARE * deviation:
        width = deviation
    bandwidth = 0.9 * width / len(sample) ** 0.2
    density = gaussian_density(np.array(sample), np.array(points), bandwidth)
    total = density.sum()
    return np.maximum(density / total if total > 0 else density, FLOOR)
