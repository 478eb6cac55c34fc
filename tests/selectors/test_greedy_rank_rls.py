import numpy as np
import pytest

from moerank.data import centre_in_queries
from moerank.kernels.forward_selection import greedy_rank_rls
from moerank.metrics import MAP
from moerank.selectors.greedy import GreedyRankRLS


@pytest.mark.parametrize("alpha", [2.0**-7, 1.0, 2.0**8])
def test_features_errors_and_weights_are_those_of_the_kernel_on_centred_data(data, alpha):
    """tests/kernels/test_forward_selection.py compares it with the naive wrapper."""
    solver = GreedyRankRLS(8, alpha).fit(data.X, data.y, qid=data.qid)
    X, y = (centre_in_queries(values.astype(float), data.offsets) for values in (data.X, data.y))
    order, errors, W = greedy_rank_rls(np.ascontiguousarray(X.T), y, data.offsets, alpha, 8)
    assert solver.order_.tolist() == order.tolist()
    np.testing.assert_allclose(solver.errors_, errors, rtol=1e-12)
    np.testing.assert_allclose(solver.path_coefs_, W, rtol=1e-12)


def test_a_shorter_path_is_the_beginning_of_a_longer_one(data):
    long, short = (GreedyRankRLS(k).fit(data.X, data.y, qid=data.qid) for k in (6, 3))
    np.testing.assert_array_equal(short.path_coefs_, long.path_coefs_[:3])
    assert short.get_support(indices=True).tolist() == sorted(long.order_[:3].tolist())
    np.testing.assert_allclose(short.predict(data.X), data.X @ short.coef_, rtol=1e-12)


def test_tuning_takes_the_best_of_all_paths(data):
    alphas = (100.0, 0.1)
    grid = [{"n_features_to_select": size, "alpha": alpha} for size in range(1, 9) for alpha in alphas]
    tuned = GreedyRankRLS().tune(data, data, grid)
    values = {}
    for alpha in alphas:
        solver = GreedyRankRLS(8, alpha).fit(data.X, data.y, qid=data.qid)
        for k, w in enumerate(solver.path_coefs_, start=1):
            values[alpha, k] = MAP().score(data, data.X @ w)
    assert values[tuned.alpha, tuned.n_features_to_select] == max(values.values())


def test_a_ridge_that_vanishes_beside_the_features_is_refused_with_the_remedy():
    rng = np.random.default_rng(0)
    X, y = 1e8 * rng.random((40, 3)), rng.integers(0, 3, 40)
    with pytest.raises(ValueError, match=r"alpha=1 is too small next to .* larger alpha, or scale the features"):
        GreedyRankRLS(alpha=1.0).fit(X, y)
    assert np.isfinite(GreedyRankRLS(alpha=1e16).fit(X, y).errors_).all()
