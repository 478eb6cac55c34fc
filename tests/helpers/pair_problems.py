"""Linear pair problems on explicit differences of documents, minimised by SciPy, and a kernel in slow words."""

import numpy as np
from scipy.optimize import minimize


def differences(data, rows=slice(None)):
    """xᵢ − xⱼ of the preference pairs in `rows`, one a row."""
    return (data.X[data.pairs.better] - data.X[data.pairs.worse])[rows]


def weighted_pairs(data, keep=slice(None)):
    """The better and the worse document of some pairs, their query, and the weights of these pairs."""
    preferred = np.equal.outer(data.qid, data.qid) & np.greater.outer(data.y, data.y)
    i, j = (rows[keep] for rows in np.nonzero(preferred))
    q = np.searchsorted(data.offsets, i, side="right") - 1
    u = np.ones(data.n_documents) if data.document_weights is None else data.document_weights
    v = np.ones(data.n_queries) if data.query_weights is None else data.query_weights
    return i, j, q, v[q] * u[i] * u[j]


def pair_objective(D, C, t=1.0, one_sided=True):
    """½ ‖w‖² + C times the mean of max(0, t − Dw)², or of (t − Dw)²: a function of w, with its gradient."""

    def value_and_gradient(w):
        d = t - D @ w
        d = np.maximum(0.0, d) if one_sided else d
        return 0.5 * w @ w + C * np.mean(d**2), w - 2.0 * C * d @ D / len(D)

    return value_and_gradient


def minimum(value_and_gradient, n_features):
    """The result of L-BFGS from 0, with the minimum `fun` at `x`."""
    options = {"maxiter": 5000, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-12}
    return minimize(value_and_gradient, np.zeros(n_features), jac=True, method="L-BFGS-B", options=options)


def gaussian_kernel(X, Y, gamma):
    return np.exp(-gamma * ((X[:, None] - Y[None]) ** 2).sum(axis=2))
