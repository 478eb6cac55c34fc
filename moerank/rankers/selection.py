"""What leaving features out costs: a selection beside the ranker that uses all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from moerank.checks import check_positive
from moerank.data import RankingData
from moerank.metrics import NDCG, Metric, as_metric
from moerank.rankers.adapter import RankerAdapter
from moerank.rankers.base import Ranker
from moerank.rankers.population import FitnessBackend, train_population
from moerank.verdict import MARGIN, Verdict, judge

__all__ = ["Selection"]


class Selection(Ranker):
    """Base of the rankers that leave features out, and can be judged for it.

    A subclass implements `without_selection`.
    """

    def without_selection(self) -> Any:
        """Return the ranker that one would use instead, with all features: an estimator that is not fitted."""
        raise TypeError(f"{type(self).__name__} does not implement without_selection")

    def verdict(
        self,
        test: RankingData,
        train: RankingData,
        validation: RankingData | None = None,
        *,
        metric: Metric | str | None = None,
        margin: float = MARGIN,
    ) -> Verdict:
        """Return how the selection stands against the ranker of `without_selection`, on queries held out.

        That ranker is trained here, on all features and pairs.

        Parameters
        ----------
        test : RankingData
            No query of these was trained on or chose anything.
        train : RankingData
            What the selection was fitted on.
        validation : RankingData, optional
            Chooses the parameters of the other ranker, as in its `tune`; without these data they stay as they are.
            Give them where they chose those of the selection: one is not compared with a ranker that is badly set.
        metric : Metric or its name, default NDCG(10)
        margin : float, default 0.005
            Differences of the metric below it do not matter.

        Returns
        -------
        Verdict
            Its `against` names the other ranker.

        Raises
        ------
        ValueError
            If the data are malformed, of other features, or `train` and `validation` are not scaled as in `fit`.

        Examples
        --------
        >>> from moerank.data import load_planted_fold
        >>> from moerank.rankers import FSMRank
        >>> train, vali, test = load_planted_fold(1, n_queries=150, n_documents=10)
        >>> FSMRank(lambda2=0.1).fit(train).verdict(test, train, vali).sentence[:81]
        '4 of 30 features; NDCG@10 −.164 ± .031 against RankSVM(C=50.0) with all of them, '
        """
        check_is_fitted(self, "support_")
        check_positive(margin=margin)
        measure = as_metric(metric, NDCG(10))
        for data in (train, validation):
            if data is not None and (data.n_features, data.scaling) != (self.n_features_in_, self._scaling):
                raise ValueError(
                    f"{data.name} has other features, or another scaling, than what {type(self).__name__} was fitted "
                    "on; give the data of the fit"
                )
        ranker = self.without_selection()
        if validation is not None and hasattr(ranker, "tune"):
            ranker = ranker.tune(train, validation)
        reference = train_population(ranker if isinstance(ranker, FitnessBackend) else RankerAdapter(ranker), train)
        scores = np.column_stack([self.predict(test), reference.scores(self._table(test))[:, 0]])
        with_some, with_all = measure.per_query(test, scores).T
        return judge(
            with_some,
            with_all,
            "test",
            measure.name,
            int(self.support_.sum()),
            self.n_features_in_,
            margin=margin,
            against=" ".join(repr(ranker).split()),
        )
