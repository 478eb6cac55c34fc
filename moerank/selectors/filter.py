"""Filters: selectors that order the features and train any ranker on the first ones."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, cast

import numpy as np

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.checks import Count
from moerank.data import RankingData
from moerank.metrics import NDCG, as_metric
from moerank.rankers import (
    Population,
    RankRLS,
    RankSVM,
    Selection,
    SelectionPath,
    nested_masks,
    train_on_subsets,
)
from moerank.rankers.adapter import RankerOrNone, train_on
from moerank.rankers.base import Grid, MetricOrNone
from moerank.rankers.importance import (
    N_PERMUTATIONS,
    permutation_losses,
    single_feature_values,
)
from moerank.rankers.model import Forest
from moerank.scikit_learn import check_is_fitted, clone


def parts_with_features(
    mask: Mask, train: RankingData, validation: RankingData | None
) -> tuple[RankingData, RankingData | None]:
    """Return training data and validation data, if any, with these features alone."""
    held_out = None if validation is None else validation.with_features(mask)
    return train.with_features(mask), held_out


class Filter(Selection):
    """Base of the selectors that order the features, and then train any ranker on the first ones.

    A subclass implements `_order`; if it has parameters of its own to choose, `_own_grid`.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Number of features to select; fewer if fewer vary.
    ranker : estimator, optional
        Trained on the selected features: a ranker of the package or any with ``fit(X, y)`` and ``predict(X)``, such
        as LightGBM's ``LGBMRanker``. Default: ``RankSVM()``.

    Attributes
    ----------
    order_ : ndarray of int, shape (n_varying,)
        Columns of X, best first. Features that are constant in every query are left out.
    support_ : ndarray of bool, shape (n_features,)
        The first `n_features_to_select` of them.
    population_ : Population, of one individual
        The ranker trained on these.
    coef_ : ndarray, shape (n_features,)
        Its weights, if it has any.
    forest_ : Forest
        Its trees, if it has any.
    """

    n_features_to_select: Count = 10
    ranker: RankerOrNone = None

    _size: ClassVar[str | None] = "n_features_to_select"

    @property
    def coef_(self) -> Matrix:
        """The weights, if the ranker has any."""
        if self.population_.coefs is not None:
            return self.population_.coefs[0]
        raise AttributeError(f"{type(self._chosen_ranker()).__name__} has no weights")

    @property
    def forest_(self) -> Forest:
        """The trees, if the ranker has any, over all columns of the training table."""
        return cast("Any", self.population_).forest(0)

    def path(self, train: RankingData) -> SelectionPath:
        """Return the rankers trained on the first 1, 2, … features.

        Parameters
        ----------
        train : RankingData
            The data that the selector was fitted to.
        """
        check_is_fitted(self, "support_")
        return SelectionPath(*self._train_first(train, np.arange(1, train.n_features + 1)))

    def without_selection(self) -> Any:
        """Return the ranker that the filter trains on the first features, not fitted yet."""
        return clone(self._chosen_ranker())

    def default_grid(self, train: RankingData) -> Grid:
        """Return every number of features with the grids of the filter and of its ranker.

        If the ranker has a size of its own to choose, such as rounds of boosting, it keeps the largest of its grid.
        """
        sizes = [{"n_features_to_select": size} for size in self._grid_sizes(train)]
        parts = product(sizes, self._own_grid(train), self._ranker_grid(train))
        return [size | parameters | ranker for size, parameters, ranker in parts]

    def _grid_sizes(self, train: RankingData) -> list[int]:
        """Return the numbers of features that the grid asks for."""
        return list(range(1, train.n_features + 1))

    def _ranker_grid(self, train: RankingData) -> Grid:
        ranker = self._chosen_ranker()
        entries = ranker.default_grid(train) if hasattr(ranker, "default_grid") else [{}]
        size = getattr(ranker, "_size", None)
        if size is not None:
            largest = max(entry[size] for entry in entries)
            entries = [entry for entry in entries if entry[size] == largest]
        return [{"ranker": clone(ranker).set_params(**entry)} for entry in entries]

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        """Return the columns of `train`, all of which vary, best first."""
        raise NotImplementedError

    def _own_grid(self, train: RankingData) -> Grid:
        """Return the grid of the parameters that the order depends on."""
        return [{}]

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self._arrange(train, validation)
        sizes = np.array([self.n_features_to_select])
        (self.support_,), self.population_ = self._train_first(train, sizes)

    def _arrange(self, train: RankingData, validation: RankingData | None) -> None:
        """Set what the rankers of all sizes have in common."""
        self.order_ = self._once(train, validation)

    def _arrangement(self, train: RankingData, validation: RankingData | None) -> Any:
        """Return what depends on neither the size nor the ranker: the columns that vary, best first."""
        order = self._order(*parts_with_features(self.varying_, train, validation))
        return np.flatnonzero(self.varying_)[order]

    def _train_first(self, train: RankingData, sizes: Integers) -> tuple[Mask, Population]:
        """Train a ranker on the first ``sizes[k]`` features for each k; return the features and the rankers."""
        masks = self._first_features(sizes)
        return masks, train_on_subsets(self._chosen_ranker(), train, masks)

    def _first_features(self, sizes: Integers) -> Mask:
        """Return the first ``sizes[k]`` features for each k."""
        n_features = self.n_features_in_
        return nested_masks(self.order_, n_features, sizes.clip(max=n_features))

    def _once(self, train: RankingData, validation: RankingData | None) -> Any:
        """Return the arrangement, remembered for all parameters except size and ranker: a grid needs it often."""
        parameters = self.get_params(deep=False)
        del parameters["n_features_to_select"], parameters["ranker"]
        # A weak reference, so that the memory of the training data does not keep validation data of earlier fits.
        held_out = None if validation is None else weakref.ref(validation)
        key = type(self), repr(sorted(parameters.items())), held_out
        return train.remember(key, lambda: self._arrangement(train, validation))

    def _chosen_ranker(self) -> Any:
        return RankSVM() if self.ranker is None else self.ranker

    def _scores(self, X: Matrix) -> Matrix:
        return self.population_.scores(X)[:, 0]

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        sizes = np.arange(1, min(self.n_features_to_select, train.n_features) + 1)
        return self._train_first(train, sizes)[1].scores(X)


class SingleFeatures(Filter):
    """Select the features that rank the training queries best, each on its own.

    The importance of a feature f is max(metric(f), metric(−f)), with its values as scores, so small values can be as
    good as large ones. Similarity does not count: features with nearly the same values are selected together.

    Parameters
    ----------
    n_features_to_select, ranker
        As in `moerank.selectors.filter.Filter`.
    metric : Metric or its name, default NDCG(10)
        Measure of a ranking.

    Attributes
    ----------
    order_, support_, population_, coef_
        As in `moerank.selectors.filter.Filter`.

    Notes
    -----
    O(n_features) metric values, then the training of the ranker. Ties go to the earlier column. Documents with equal
    values count as the mean over their orders, as everywhere.

    References
    ----------
    X. Geng, T.-Y. Liu, T. Qin, H. Li: Feature selection for ranking. SIGIR 2007; only the importance.

    Examples
    --------
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> SingleFeatures(1).fit(X, y=[0, 1, 2], qid=0).order_.tolist()
    [0, 1]
    """

    metric: MetricOrNone = None

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        values = single_feature_values(train, as_metric(self.metric, NDCG(10)))
        return np.argsort(-values.max(axis=0), kind="stable")


@dataclass(eq=False, repr=False)
class ByPermutation:
    """Base of the filters that look at what the metric loses where the values of a feature are permuted."""

    metric: MetricOrNone = None
    n_permutations: Count = N_PERMUTATIONS
    random_state: int | None = None

    def _losses(
        self,
        predict: Callable[[Matrix], Vector],
        train: RankingData,
        validation: RankingData | None,
        mask: Mask,
    ) -> Vector:
        """Return the mean loss (n_features,) of the metric on the validation data, if any; 0 outside the mask."""
        data = train if validation is None else validation
        metric = as_metric(self.metric, NDCG(10))
        return permutation_losses(
            predict, data, metric, mask, self.n_permutations, self.random_state
        )


class PermutationImportance(ByPermutation, Filter):
    """Select the features without whose values a ranker loses most: they are permuted among all documents.

    The importance of a feature is the metric of a ranker of all features, less the mean of the metric over
    `n_permutations` random permutations of the feature's column, on the validation data; without them on the training
    data.

    Parameters
    ----------
    n_features_to_select, ranker
        As in `moerank.selectors.filter.Filter`.
    metric : Metric or its name, default NDCG(10)
    n_permutations : int, default 5
    random_state : int, optional
    judge : estimator, optional
        The ranker of all features. Default: a RankRLS, whose regularisation the validation data choose.
    tuning : Metric or its name, default MAP()
        The metric by which they do.

    Attributes
    ----------
    order_, support_, population_, coef_
        As in `moerank.selectors.filter.Filter`.

    Notes
    -----
    One training, and n_permutations · n_features predictions and metric values. Ties go to the earlier column. Of two
    features with the same values each is hardly missed, as the other one stays.

    The grid is ours: every number of features with the grid of the ranker.

    References
    ----------
    L. Breiman: Random forests. Machine Learning 45, 2001, section 10.
    A. Fisher, C. Rudin, F. Dominici: All models are wrong, but many are useful. JMLR 20, 2019, for any model.

    Examples
    --------
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> PermutationImportance(1, random_state=0).fit(X, y=[0, 1, 2], qid=0).order_.tolist()
    [0, 1]
    """

    judge: RankerOrNone = None
    tuning: MetricOrNone = None

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        judge = self.judge
        if judge is None:
            judge = RankRLS()
            if validation is not None:
                judge = judge.tune(train, validation, metric=self.tuning)
        mask = np.ones(train.n_features, bool)
        trained: Any = train_on(judge, train, mask, validation)
        losses = self._losses(trained.predict, train, validation, mask)
        return np.argsort(-losses, kind="stable")
