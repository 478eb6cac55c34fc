"""ListNet: the cross entropy of top-one probabilities, descended one query at a time (Cao et al., 2007)."""

from typing import ClassVar

from moerank.arrays import Matrix
from moerank.checks import Count, Positive
from moerank.data import RankingData
from moerank.kernels.compiled import read_only
from moerank.kernels.losses import descend
from moerank.rankers.base import Grid, LinearRanker
from moerank.training.sorted import PairedDocuments


class ListNet(LinearRanker):
    """Linear listwise ranker by gradient descent with early stopping.

    Descends, from w = 0 and without regularisation,

        − Σ_q Σ_{i ∈ q} P_y(i) log P_w(i),   P_y(i) = exp(yᵢ) / Σ_k exp(y_k),   P_w(i) = exp(wᵀxᵢ) / Σ_k exp(wᵀx_k)

    with k over the documents of the query: the cross entropy between the probabilities that a document is first by
    its label and by its score. An epoch takes a gradient step for each query, in their order in the data.

    Parameters
    ----------
    n_epochs : int, default 300
        Number of epochs, ≥ 1; with validation data, `tune` chooses it.
    learning_rate : float, default 1e-3
        Length of a step, > 0. If it is small, only its product with the number of epochs matters; from about 0.03 on,
        single queries make the weights swing.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    epoch_coefs_ : ndarray, shape (n_epochs, n_features)
        The weights after each epoch.

    Notes
    -----
    O(n_documents · n_features) per epoch. The paper chooses rate and epochs by validation but does not name the
    candidates; the grid is ours: 1 … 1000 epochs at the given rate. Queries whose labels are all equal are left out:
    they have no order to learn, and their uniform target only draws w back to 0. The paper does not mention them. They
    are more than a quarter of MQ2008's queries, and without them the validation MAP of each of its folds is higher.

    References
    ----------
    Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai, H. Li: Learning to rank: from pairwise approach to listwise approach.
    ICML 2007.

    Examples
    --------
    >>> from moerank.rankers.list_net import ListNet
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> ListNet().fit(X, y=[0, 1, 2], qid=0).predict(X).argsort().tolist()
    [0, 1, 2]
    """

    n_epochs: Count = 300
    learning_rate: Positive = 1e-3

    _size: ClassVar[str | None] = "n_epochs"

    def default_grid(self, train: RankingData) -> Grid:
        """Return n_epochs = 1 … 1000."""
        return [{"n_epochs": n} for n in range(1, 1001)]

    def _weights(self, train: RankingData) -> Matrix:
        documents = PairedDocuments.of(train)
        X, offsets = train.X64[documents.rows], read_only(documents.pairs.offsets)
        y = train.y[documents.rows].astype(float)
        W = descend(X, y, offsets, float(self.learning_rate), self.n_epochs)
        self.epoch_coefs_ = self.path_coefs_ = self._everywhere(W)
        return W[-1].copy()
