"""Checks of solvers and fitness backends for authors of other packages.

Call them in a test of your package. Each raises an AssertionError that names the first requirement that does not hold.
"""

from __future__ import annotations

from copy import deepcopy
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from moerank.data import RankingData, load_planted_fold
from moerank.rankers import as_backend, train_population

if TYPE_CHECKING:
    from moerank.arrays import Vector


def check_solver(solver: object) -> None:
    """Check that a solver or a ranker can stand in the table of solvers.

    Parameters
    ----------
    solver : class or estimator
        A class is made with its defaults.

    Raises
    ------
    AssertionError
        For the first of these that does not hold: ``fit(X, y, qid=…)`` trains and returns the solver, and leaves X and
        y as they are; ``predict(X)`` returns a finite score for each document and ranks better than chance; a solver
        with ``get_support()`` uses the features that it returns and no other; training twice with the same seed gives
        equal scores; a trained solver can be copied.

    Examples
    --------
    >>> from moerank.rankers import RankRLS
    >>> check_solver(RankRLS(alpha=0.1))
    """
    train, vali, test = load_planted_fold(1, n_queries=15, n_documents=12)
    for method in ("fit", "predict"):
        _require(callable(getattr(solver, method, None)), f"{_name(solver)} has no method {method}")
    fitted = _fitted(solver, train, vali)
    scores = _scores(fitted, test.X)
    better, worse = train.pairs.better, train.pairs.worse
    on_train = _scores(fitted, train.X)
    right = float(np.mean(on_train[better] > on_train[worse]))
    _require(right > 0.5, f"predict(X) puts {right:.0%} of the training pairs in order; higher scores must rank higher")
    if hasattr(fitted, "get_support"):
        support = np.asarray(fitted.get_support())
        one_each = support.dtype == bool and support.shape == (train.n_features,)
        _require(
            one_each, f"get_support() must return one bool for each of {train.n_features} features: {support!r:.80}"
        )
        _require(bool(support.any()), "get_support() selects no feature")
        changed = np.where(support, test.X, 7.0)
        alike = np.array_equal(_scores(fitted, changed), scores)
        _require(alike, "predict(X) changes with features that get_support() leaves out")
    alike = np.array_equal(_scores(_fitted(solver, train, vali), test.X), scores)
    _require(alike, "training twice gives other scores; draw from the parameter random_state alone")
    alike = np.array_equal(_scores(deepcopy(fitted), test.X), scores)
    _require(alike, "a copy of the trained solver scores differently")


def check_backend(backend: Any) -> None:
    """Check that a ranker can judge the individuals of a search.

    Parameters
    ----------
    backend : class or estimator
        A class is made with its defaults. A ranker without ``fit_population`` is trained one individual at a time.

    Raises
    ------
    AssertionError
        For the first of these that does not hold: all of `check_solver`; ``fit_population(train, feature_mask=mask)``
        returns one row of weights for each row of the mask, or a population that scores documents; weights of features
        outside the mask are 0; a row is trained as if it were alone; ``pair_mask`` of all pairs changes nothing.

    Examples
    --------
    >>> from moerank.rankers import RankRLS
    >>> check_backend(RankRLS(alpha=0.1))
    """
    check_solver(backend)
    ranker = backend() if isinstance(backend, type) else backend
    train, _, test = load_planted_fold(1, n_queries=15, n_documents=12)
    rng = np.random.default_rng(0)
    feature_mask = rng.random((4, train.n_features)) < 0.5
    feature_mask[0] = True
    batched = as_backend(ranker)
    try:
        population = train_population(batched, train, feature_mask=feature_mask)
    except (TypeError, ValueError) as error:
        raise AssertionError(str(error)) from error
    if population.coefs is not None:
        inside = not population.coefs[~feature_mask].any()
        _require(inside, "fit_population gives weights to features outside feature_mask")
    scores = population.scores(test.X)
    for row, mask in enumerate(feature_mask):
        alone = train_population(batched, train, feature_mask=mask[None]).scores(test.X)[:, 0]
        equal = np.allclose(alone, scores[:, row], rtol=0, atol=1e-6 * np.ptp(alone))
        _require(equal, f"fit_population trains row {row} of feature_mask otherwise than alone")
    pair_mask = np.ones((1, len(train.pairs.better)), bool)
    try:
        with_all = train_population(batched, train, pair_mask=pair_mask).scores(test.X)
    except (TypeError, ValueError):  # such a backend serves feature selection, but not instance selection by pairs
        return
    near = np.allclose(with_all[:, 0], scores[:, 0], rtol=0, atol=1e-4 * np.ptp(scores[:, 0]))
    _require(near, "fit_population with a pair_mask of all pairs differs from fit_population without one")


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


def _name(solver: object) -> str:
    return solver.__name__ if isinstance(solver, type) else type(solver).__name__


def _fitted(solver: object, train: RankingData, validation: RankingData) -> Any:
    """Return a new solver, trained with the seed 0 if it draws."""
    made: Any = solver() if isinstance(solver, type) else clone(solver, safe=False)  # plain objects are copied
    if hasattr(made, "random_state"):
        made.random_state = 0
    X, y = train.X.copy(), train.y.copy()
    given = {"qid": train.qid, "validation": (validation.X, validation.y, validation.qid)}
    arguments = signature(made.fit).parameters
    _require(
        "qid" in arguments or any(entry.kind is entry.VAR_KEYWORD for entry in arguments.values()),
        f"{_name(solver)}.fit must take qid, the query of each document: fit(X, y, qid=None)",
    )
    if "validation" not in arguments:
        del given["validation"]
    fitted = made.fit(X, y, **given)
    _require(fitted is made, f"{_name(solver)}.fit must return self")
    _require(np.array_equal(X, train.X) and np.array_equal(y, train.y), f"{_name(solver)}.fit changes X or y")
    return fitted


def _scores(fitted: Any, X: Vector) -> Vector:
    scores = np.asarray(fitted.predict(X))
    _require(scores.shape == (len(X),), f"predict(X) must return shape ({len(X)},), not {scores.shape}")
    _require(bool(np.isfinite(scores).all()), "predict(X) must return finite scores")
    return scores
