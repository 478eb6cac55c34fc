"""Any scikit-learn style ranker as a fitness backend, by a loop over the population."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from moerank.data import RankingData
from moerank.rankers.base import Mask, Matrix
from moerank.rankers.masks import read_masks
from moerank.rankers.population import AnyRanker, FittedPopulation, population_of

__all__ = ["RankerAdapter"]


class RankerAdapter(BaseEstimator):  # type: ignore[misc]
    """Train a population with a ranker that knows nothing of populations.

    Parameters
    ----------
    ranker : estimator
        With ``fit(X, y)`` and ``predict(X)``; a higher prediction ranks higher. If ``fit`` has a parameter ``group``
        (LightGBM, XGBoost) it is given the number of documents of each query, otherwise, if it has a parameter ``qid``,
        the query of each document. Its own parameters are set as ``ranker__…``.

    Notes
    -----
    Every individual is a clone trained on its own columns of X. Rankers with a ``coef_`` of one number per feature are
    taken for linear: the population is an array of weights then, in which an intercept, which moves no document,
    is left out. All others make a `FittedPopulation`, which can score documents but has no weights to add up in the
    ensemble stage. A `pair_mask` is refused: what is trained on documents cannot leave out single pairs of them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> train = RankingData([[0.1, 0.5], [0.9, 0.4], [0.5, 0.6]], y=[0, 2, 1])
    >>> W = RankerAdapter(Ridge(alpha=0.1)).fit_population(train, feature_mask=np.array([[True, True], [False, True]]))
    >>> (W != 0).tolist()
    [[True, True], [False, True]]
    """

    def __init__(self, ranker: AnyRanker) -> None:
        self.ranker = ranker

    def fit_population(
        self,
        train: RankingData,
        *,
        pair_mask: Mask | None = None,
        feature_mask: Mask | None = None,
        start: Matrix | None = None,
    ) -> Matrix | FittedPopulation:
        """Train one ranker for each row of `feature_mask`; see `FitnessBackend`. `start` is ignored.

        Returns
        -------
        ndarray, shape (n_individuals, n_features), or FittedPopulation

        Raises
        ------
        ValueError
            For a `pair_mask`, or a wrong `feature_mask`.
        """
        if pair_mask is not None:
            raise ValueError(
                f"{type(self.ranker).__name__} is trained on documents, and a pair_mask chooses preference pairs: it "
                "serves feature selection without instance selection; use instance_selection=False, or a backend "
                "trained on pairs such as RankSVM"
            )
        _, _, features = read_masks(train, None, feature_mask)
        found = population_of([self.train_on(train, mask) for mask in features], features)
        return found if isinstance(found, FittedPopulation) else found.coefs

    def train_on(self, train: RankingData, mask: Mask) -> AnyRanker:
        """Return a clone of the ranker trained on the features of `mask`, shape (n_features,)."""
        trained: AnyRanker = clone(self.ranker).fit(train.X[:, mask], train.y, **self._query_argument(train))
        return trained

    def _query_argument(self, train: RankingData) -> dict[str, Any]:
        """Return what the ranker's ``fit`` wants to know of queries, as a keyword argument."""
        parameters = inspect.signature(self.ranker.fit).parameters
        if "group" in parameters:
            return {"group": np.diff(train.offsets)}
        return {"qid": train.qid} if "qid" in parameters else {}
