"""Passes by runs of labels against sums over explicit pairs."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.read_only import read_only

from moerank.data.ranking_data import LabelRuns
from moerank.kernels.lanes import lanes
from moerank.kernels.run_pass import CURVATURE, IDLE, RESIDUALS, centres, rows_by_run, run_pass
from moerank.kernels.tiles import TILED_BLOCK, own_features

SIZES = [1, 37, 5, 2, TILED_BLOCK + 70, 16, 90, 64, 3, 200, 1]
N_FEATURES = 7
TOLERANCES = {np.float32: 3e-5, np.float64: 1e-13}


class Documents:
    """Queries of one document, of a few, and of more than a block, one of them with a single label."""

    def __init__(self, dtype):
        rng = np.random.default_rng(4)
        self.offsets = read_only(np.append(0, np.cumsum(SIZES)))
        n = self.offsets[-1]
        self.X = (rng.normal(size=(n, N_FEATURES)) + 3.0).astype(dtype)
        self.y = rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
        self.y[self.offsets[5] : self.offsets[6]] = 2
        self.runs = LabelRuns.of(self.y, self.offsets)
        rows = [np.arange(begin, end) for begin, end in pairwise(self.offsets)]
        pairs = [(i, j) for block in rows for i in block for j in block if self.y[i] > self.y[j]]
        self.better, self.worse = np.array(pairs).T
        self.query_of = np.repeat(np.arange(len(SIZES)), SIZES)

    def sums(
        self, feature_mask, W, V, task, precision, *, margin=1.0, shift=None, hinge=True, documents=None, queries=None
    ):
        row, start = rows_by_run(self.runs.run, len(self.runs.n_worse))
        order = np.flatnonzero(self.runs.n_pairs_of), self.runs.first, start, row
        width = lanes(precision)
        prefix = np.array([2**lane - 1 for lane in range(width)], {16: np.uint16, 8: np.uint8}[width])
        chosen_units = tuple(np.zeros((0, 0), bool) if mask is None else mask for mask in (documents, queries))
        sums, slack = np.empty(feature_mask.sum()), np.empty(len(W))
        columns = read_only(np.ascontiguousarray(self.X.T))
        run_pass(
            columns, centres(columns, self.offsets), self.offsets, order, own_features(feature_mask),
            W[feature_mask].astype(precision), V[feature_mask].astype(precision), task, chosen_units, margin,
            np.empty(0) if shift is None else shift, hinge, prefix, sums, slack,
        )  # fmt: skip
        result = np.zeros(W.shape)
        result[feature_mask] = sums
        return result, slack

    def expected(self, mask, w, v, task, *, margin=1.0, shift=None, hinge=True, pairs=slice(None)):
        D = np.where(mask, self.X[self.better].astype(float) - self.X[self.worse], 0.0)[pairs]
        t = np.full(len(D), margin) if shift is None else margin + (shift[self.better] - shift[self.worse])[pairs]
        d = t - D @ w
        active = d > 0 if hinge else np.ones(len(d), bool)
        if task == RESIDUALS:
            return (d * active) @ D, t @ (d * active)
        return ((D @ v) * active) @ D, 0.0


@pytest.fixture(scope="module", params=[np.float32, np.float64])
def documents(request):
    return Documents(request.param)


@pytest.fixture
def population():
    rng = np.random.default_rng(5)
    mask = rng.random((6, N_FEATURES)) < 0.6
    mask[:, 2] = False
    mask[0], mask[1] = np.arange(N_FEATURES) != 2, np.arange(N_FEATURES) == 0
    return (
        mask,
        np.where(mask, rng.normal(scale=0.4, size=mask.shape), 0),
        np.where(mask, rng.normal(size=mask.shape), 0),
    )


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("hinge", [True, False])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("own", ["nothing", "documents", "queries"])
def test_sums_are_those_over_explicit_pairs(documents, population, precision, hinge, shifted, own):
    mask, W, V = population
    rng = np.random.default_rng(6)
    task = np.array([RESIDUALS, RESIDUALS, CURVATURE, CURVATURE, RESIDUALS, IDLE])
    given = {"hinge": hinge}
    if shifted:
        given |= {"margin": 0.25, "shift": 0.5 * documents.y}
    chosen = {"documents": rng.random((6, len(documents.y))) < 0.7, "queries": rng.random((6, len(SIZES))) < 0.6}
    chosen = {own: chosen[own]} if own in chosen else {}
    result, slack = documents.sums(mask, W, V, task, precision, **given, **chosen)
    for i in range(5):
        pairs = slice(None)
        if own == "documents":
            pairs = chosen[own][i, documents.better] & chosen[own][i, documents.worse]
        elif own == "queries":
            pairs = chosen[own][i, documents.query_of[documents.better]]
        sums, total = documents.expected(mask[i], W[i], V[i], task[i], pairs=pairs, **given)
        scale = np.abs(sums).max()
        np.testing.assert_allclose(result[i], sums, atol=TOLERANCES[precision] * scale, rtol=0)
        assert slack[i] == pytest.approx(total, rel=TOLERANCES[precision])
    assert not result[5].any()


def test_a_mean_far_above_the_spread_costs_no_digits(documents, population):
    mask, W, V = population
    far = Documents(np.float64)
    far.X = far.X + 1000.0
    task = np.full(len(W), RESIDUALS)
    result = far.sums(mask, W, V, task, np.float32)[0]
    for i, w in enumerate(W):
        expected = far.expected(mask[i], w, V[i], RESIDUALS)[0]
        np.testing.assert_allclose(result[i], expected, atol=3e-5 * np.abs(expected).max(), rtol=0)


def test_a_constant_is_its_own_mean_to_the_bit():
    assert centres(read_only(np.full((1, 3), 0.1)), read_only([0, 3]))[0, 0] == 0.1
    assert centres(read_only([[1.0, 2.0, 6.0, 5.0]]), read_only([0, 3, 4])).tolist() == [[3.0, 5.0]]
