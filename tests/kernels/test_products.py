"""Products in fixed order against exact fractions, and under another processor's linear algebra."""

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from moerank.kernels.products import product, square

OF_PROCESSOR = """
from moerank.data import load_planted_fold
from moerank.solvers import make_solver
train, validation, _ = load_planted_fold(1, n_queries=30, n_documents=15)
for name in ("rankrls", "ranksvm-primal", "ranksvm-tron", "ranksvm-struct", "svm-map", "crr"):
    print(name, make_solver(name).fit(train, validation=validation).coef_.tobytes().hex())
"""


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (8, 65), (13, 130)])
def test_products_are_the_exact_ones_up_to_rounding(shape):
    rng = np.random.default_rng(sum(shape))
    A, x = rng.normal(size=shape), rng.normal(size=shape[1])
    exact = [[float(sum(Fraction(a) * Fraction(b) for a, b in zip(f, g, strict=True))) for g in [*A, x]] for f in A]
    np.testing.assert_allclose(square(A), np.array(exact)[:, :-1], rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(square(A), square(A).T)
    np.testing.assert_allclose(product(A, x), np.array(exact)[:, -1], rtol=1e-12, atol=1e-13)
    weights = rng.random(shape[1])
    np.testing.assert_allclose(square(A, A * weights), (A * weights) @ A.T, rtol=1e-12, atol=1e-13)


def test_the_square_is_summed_document_after_document():
    A = np.array([[1.0, 1e16, -1e16, 1.0]])
    assert square(A, np.ones((1, 4))).item() == 1.0  # 1 + 10¹⁶ is rounded to 10¹⁶


def test_rankers_have_the_same_bits_with_the_linear_algebra_of_an_older_processor():
    found = {
        subprocess.check_output([sys.executable, "-c", OF_PROCESSOR], env={**os.environ, "OPENBLAS_CORETYPE": core})
        for core in ("Haswell", "Nehalem")
    }
    assert len(found) == 1
