"""What the search relies on in every fitness backend."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from moerank.data import make_planted
from moerank.rankers import FSMRank, RankRLS, RankSVM

BACKENDS = [RankSVM(2.0), RankRLS(0.05), RankRLS(0.05, target="difference"), FSMRank(lambda2=1e-4)]


N_PAIRS = 2552  # of the data
KEPT = np.array([[True], [True], [False]]).repeat(N_PAIRS, axis=1)


@pytest.fixture(params=BACKENDS, ids=repr)
def backend(request):
    return request.param


def test_without_masks_it_is_the_fit(noisy_data, backend):
    fitted = clone(backend).fit(noisy_data.X, noisy_data.y, qid=noisy_data.qid)
    np.testing.assert_array_equal(backend.fit_population(noisy_data), fitted.coef_[None])


def test_a_shared_row_is_that_row_for_everybody(noisy_data, backend):
    rng = np.random.default_rng(0)
    pairs = rng.random(len(noisy_data.pairs)) < 0.5
    features = rng.random((6, noisy_data.n_features)) < 0.5
    features[:, 1] = True
    W = backend.fit_population(noisy_data, pair_mask=pairs, feature_mask=features)
    single = [backend.fit_population(noisy_data, pair_mask=pairs, feature_mask=row) for row in features]
    np.testing.assert_array_equal(W, np.concatenate(single))


def test_single_rows_have_the_bits_of_the_batch(noisy_data, backend):
    rng = np.random.default_rng(1)
    pairs = rng.random((18, len(noisy_data.pairs))) < 0.3
    features = rng.random((18, noisy_data.n_features)) < 0.5
    features[:, 1] = True
    W = backend.fit_population(noisy_data, pair_mask=pairs, feature_mask=features)
    for row in (0, 7, 17):
        one = slice(row, row + 1)
        single = backend.fit_population(noisy_data, pair_mask=pairs[one], feature_mask=features[one])
        np.testing.assert_array_equal(single, W[one])
    assert not W[~features].any()


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (dict(feature_mask=np.zeros((2, 12), bool)), "feature_mask: row 0 selects no feature"),
        (dict(pair_mask=np.zeros((1, 99), bool)), "pair_mask must have shape"),
        (dict(feature_mask=np.ones((2, 11), bool)), "feature_mask must have shape"),
        (dict(feature_mask=np.ones((2, 12))), "must be an array of bool"),
        (dict(pair_mask=KEPT), "row 2 selects no pair"),
        (
            dict(pair_mask=KEPT | True, feature_mask=np.ones((2, 12), bool)),
            "pair_mask has 3 rows but feature_mask has 2",
        ),
    ],
)
def test_masks_that_select_nothing_or_do_not_fit_are_refused(noisy_data, backend, masks, message):
    with pytest.raises(ValueError, match=message):
        backend.fit_population(noisy_data, **masks)


@pytest.mark.parametrize("backend", [RankSVM(C=5000.0), RankRLS(alpha=1e-4, tol=0.0)], ids=lambda b: type(b).__name__)
def test_a_population_that_is_not_solved_is_told(backend):
    train = make_planted(n_queries=20, seed=1).data
    few = np.arange(len(train.pairs)) % 101 == np.arange(4)[:, None]
    name, tol = type(backend).__name__, backend.tol
    with pytest.warns(
        ConvergenceWarning, match=f"^{name} stopped at 60 Newton steps .* tol={tol} .*; raise tol"
    ) as told:
        backend.fit_population(train, pair_mask=few)
    assert [entry.filename for entry in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        type(backend)().fit_population(train, pair_mask=few)
