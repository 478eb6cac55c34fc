"""What every row of the table of solvers must keep, so that a new solver is tested by being listed."""

import functools
import inspect
import re
import warnings
from fractions import Fraction

import helpers.plain_agemoea2  # noqa: F401
import numpy as np
import pandas as pd
import pytest
from helpers.odd_data import ODD, REFUSALS, odd_data
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from moerank.data import RankingData, fit_scaling, load_planted_fold
from moerank.runs.problem import SolverSection
from moerank.runs.result import Result, write_result
from moerank.runs.run_fold import run_fold
from moerank.solvers import make_solver, solvers

pytestmark = pytest.mark.filterwarnings("ignore:.* (stopped|ended) at max_")  # searches and solvers made quick

SEARCH = {
    stage: {"population": 8, "generations": 3} for stage in ("instance_selection", "feature_selection", "ensemble")
}
# Arguments that make a solver quick enough for a test, by the beginning of its name.
SMALL = {
    "mofsrank": SEARCH,
    "best-subset": {"max_nodes": 20_000},
    "lambdamart-rfe": {"n_trees": 6, "drop": 0.5},
    **{key: {"n_trees": 6} for key in ("cegb", "ilmart", "lambdamart")},
    "bl-mart": {"n_bags": 2, "n_trees": 6},
    "fs-bfs": {"max_size": 2, "patience": 2, "restarts": 1},
}
# Methods that draw rows or pairs, or rank by a share of ties, and so look at the order of the documents of a query. The
# first tree of LambdaMART finds all documents tied, and BL-MART draws them as well.
ORDER_MATTERS = ("mofsrank", "lambdamart", "bl-mart", "cegb", "ilmart", "permutation")
# Scores of the same features by RankSVM, in steps that end within rounding, may be so far apart for another order.
APART = {"hcas": 1e-7}
NAMES = list(solvers())
# The same stages as those of MOFSRank with another search: data are seen by the backend that they share.
SEARCHES = [name for name in NAMES if name.startswith("mofsrank-") and name != "mofsrank-paper"]
SHORT = ("a single feature", "one feature that points downwards", "minus zero", "70 columns and 30 documents")
SELECTORS = [name for name, row in solvers().items() if row.selects]


def made(name):
    small = next((arguments for prefix, arguments in SMALL.items() if name.startswith(prefix)), {})
    seed = {"random_state": 3} if "seed" in solvers()[name].needs else {}
    return make_solver(name, **seed, **small)


def fit(name, train, validation=None):
    return made(name).fit(train.X, train.y, qid=train.qid, validation=train if validation is None else validation)


@functools.lru_cache
def planted():
    return load_planted_fold(1, n_queries=15, n_documents=12, n_noise=5)


@functools.lru_cache
def fitted(name):
    train, vali, _ = planted()
    return fit(name, train, vali)


@pytest.mark.parametrize("name", NAMES)
def test_is_an_estimator_that_can_be_cloned_and_set(name):
    row, estimator = solvers()[name], made(name)
    assert row.name == name
    copy = clone(estimator)
    assert copy is not estimator
    assert repr(copy.get_params()) == repr(estimator.get_params())
    copy.set_params(**estimator.get_params(deep=False))
    assert hasattr(estimator, "fit_population") == row.backend
    assert ("random_state" in estimator.get_params()) == ("seed" in row.needs)
    assert not [key for key in vars(estimator) if key.endswith("_")], "only fit sets attributes with an underscore"


@pytest.mark.parametrize("name", NAMES)
def test_predicts_selects_and_transforms_what_the_table_says(name):
    row, estimator, (train, _, test) = solvers()[name], fitted(name), planted()
    scores = estimator.predict(test.X)
    assert scores.shape == (test.n_documents,)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert np.ptp(scores) > 0
    support = estimator.get_support()
    assert support.shape == (train.n_features,)
    assert support.any()
    np.testing.assert_array_equal(estimator.transform(test.X), test.X[:, support])
    assert hasattr(estimator, "coef_") == row.linear
    if row.linear:
        np.testing.assert_allclose(scores, test.X @ estimator.coef_, rtol=1e-9, atol=1e-12)
        assert not estimator.coef_[~support].any()
    changed = test.X.copy()
    changed[:, ~support] = 7.0
    np.testing.assert_array_equal(estimator.predict(changed), scores, "features outside the support must not matter")


@pytest.mark.parametrize("name", NAMES)
def test_learns_to_rank(name):
    """On a problem that a linear ranker solves well, at least a third of the way from a random to a perfect order."""
    estimator, (train, _, _) = fitted(name), planted()
    scores = estimator.predict(train.X)
    pairs = train.pairs
    assert np.mean(scores[pairs.better] > scores[pairs.worse]) > 0.5 + 0.5 / 3


@pytest.mark.parametrize("name", NAMES)
def test_keeps_the_names_of_the_features(name):
    """Fitted once more with the same seed, and named: the bits are the same, whatever holds labels and queries."""
    train, vali, test = planted()
    columns = [f"feature {number}" for number in range(train.n_features)]
    held_out = pd.DataFrame(vali.X, columns=columns), vali.y.tolist(), vali.qid.astype(str)
    frame, y = pd.DataFrame(train.X, columns=columns), pd.Series(train.y)
    estimator = made(name).fit(frame, y, qid=train.qid.astype(str), validation=held_out)
    assert estimator.feature_names_in_.tolist() == columns
    assert estimator.get_feature_names_out().tolist() == np.array(columns)[estimator.support_].tolist()
    frame = pd.DataFrame(test.X, columns=columns)
    np.testing.assert_array_equal(estimator.predict(frame), fitted(name).predict(test.X))
    with pytest.raises(ValueError, match="the columns of X must be those of the fit"):
        estimator.predict(frame[columns[::-1]])


@pytest.mark.parametrize("name", NAMES)
def test_validation_data_of_other_columns_or_without_queries_are_refused(name):
    train, vali, _ = planted()
    columns = [f"feature {number}" for number in range(train.n_features)]
    frame, held_out = pd.DataFrame(train.X, columns=columns), pd.DataFrame(vali.X, columns=columns)
    for wrong in (held_out[columns[::-1]], held_out.rename(columns={"feature 0": "other"})):
        with pytest.raises(ValueError, match="the features of validation data must be those of the training data"):
            made(name).fit(frame, train.y, qid=train.qid, validation=(wrong, vali.y, vali.qid))
    for wrong in ((vali.X, vali.y), (vali.X, vali.y, None)):
        with pytest.raises(ValueError, match=r"validation has no qid, and .* have 9 queries: pass \(X, y, qid\)"):
            made(name).fit(train, validation=wrong)


@pytest.mark.parametrize("name", NAMES)
def test_takes_ranking_data_as_they_are(name):
    train, vali, test = planted()
    estimator = made(name).fit(train, validation=vali)
    np.testing.assert_array_equal(estimator.predict(test), fitted(name).predict(test.X))
    assert estimator.feature_names_in_.tolist() == list(train.feature_names)
    assert not hasattr(fitted(name), "feature_names_in_")
    with pytest.raises(ValueError, match="must not be given with a RankingData"):
        made(name).fit(train, train.y)
    with pytest.raises(ValueError, match="must not be given with a RankingData"):
        made(name).fit(train, qid=train.qid)
    with pytest.raises(ValueError, match="y is missing: give the relevance labels"):
        made(name).fit(train.X, qid=train.qid)


@pytest.mark.parametrize("name", [name for name, row in solvers().items() if row.family != "evolutionary"])
def test_parameters_that_make_no_sense_are_refused_by_name(name):
    train, vali, _ = planted()
    kinds = inspect.signature(type(made(name)).__init__).parameters
    for parameter in made(name).get_params(deep=False):
        kind = str(kinds[parameter].annotation)
        if parameter in ("random_state", "progress"):  # whatever numpy takes for a seed; a function
            continue
        nonsense = ["nonsense", float("nan"), -1e300]
        if "Sequence" not in kind:  # of columns, of which there may be none
            nonsense += [{}] if "None" in kind or "Optional" in kind else [{}, None]
        if "bool" not in kind:
            nonsense.append(True)
        if "int" in kind:
            nonsense.append(2.5)
        for value in nonsense:
            with pytest.raises(ValueError, match=rf"^{parameter}\b"):
                made(name).set_params(**{parameter: value}).fit(train, validation=vali)
                pytest.fail(f"{parameter}={value!r} was accepted")
            if hasattr(made(name), "tune"):
                with pytest.raises(ValueError, match=rf"^{parameter}\b"):
                    made(name).set_params(**{parameter: value}).tune(train, vali, grid=[{}, {}])


@pytest.mark.parametrize("name", SELECTORS)
def test_path_has_at_most_k_features_and_grows(name):
    train, _, test = planted()
    estimator = fitted(name)
    path = estimator.path(train)
    sizes = path.feature_mask.sum(axis=1)
    assert path.feature_mask.shape == (train.n_features, train.n_features)
    assert (sizes <= np.arange(1, train.n_features + 1)).all()
    assert (np.diff(sizes) >= 0).all()
    scores = path.scores(test.X)
    assert scores.shape == (test.n_documents, train.n_features)
    assert (np.ptp(scores, axis=0) > 0)[sizes > 0].all()
    for k in (0, train.n_features - 1):
        changed = np.where(path.feature_mask[k], test.X, 7.0)
        np.testing.assert_array_equal(path.scores(changed)[:, k], scores[:, k])


@pytest.mark.parametrize("name", NAMES)
def test_tunes_on_validation_data(name):
    train, vali, _ = planted()
    estimator = made(name)
    if not callable(getattr(estimator, "tune", None)):
        pytest.skip("tunes its backend inside fit")
    grid = estimator.default_grid(train)
    tuned = estimator.tune(train, vali, grid=grid[:2])
    chosen = tuned.get_params(deep=False)
    assert any(all(repr(chosen[key]) == repr(value) for key, value in entry.items()) for entry in grid[:2])
    assert not hasattr(tuned, "support_")


@pytest.mark.parametrize("name", NAMES)
def test_constant_features_are_dropped_without_a_warning(name):
    train, vali, _ = planted()
    X, held_out = train.X.copy(), vali.X.copy()
    X[:, 1] = held_out[:, 1] = 0.25
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = made(name).fit(X, train.y, qid=train.qid, validation=(held_out, vali.y, vali.qid))
    assert not any("constant" in str(warning.message) for warning in caught)
    assert not estimator.support_[1]
    X[:, 1] = 99.0
    assert estimator.predict(X).shape == (train.n_documents,)


@pytest.mark.parametrize("name", NAMES)
def test_data_without_a_pair_and_missing_values_are_refused_by_place(name):
    train, vali, test = planted()
    with pytest.raises(ValueError, match="no preference pair"):
        made(name).fit(train.X, np.ones(train.n_documents, int), qid=train.qid, validation=train)
    X = train.X.copy()
    X[4, 2] = np.nan
    with pytest.raises(ValueError, match=r"X\[4, 2\] is NaN"):
        made(name).fit(X, train.y, qid=train.qid, validation=vali)
    with pytest.raises(ValueError, match=r"X\[4, 2\] is NaN \(row 4, feature 3\)"):
        fitted(name).predict(X[:10])
    X[4, 2] = 1e31
    with pytest.raises(ValueError, match=r"X\[4, 2\] is 1e\+31 \(row 4, feature 3\); .* scale the feature"):
        fitted(name).predict(X[:10])
    with pytest.raises(ValueError, match=rf"n_documents, {train.n_features}\)"):
        fitted(name).predict(test.X[:, 1:])


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(ORDER_MATTERS)])
def test_the_order_of_the_documents_in_a_query_does_not_matter(name):
    train, vali, test = planted()
    rng = np.random.default_rng(5)
    ends = np.diff(train.offsets).cumsum()
    order = np.concatenate([rng.permutation(rows) for rows in np.split(np.arange(train.n_documents), ends[:-1])])
    shuffled = RankingData(train.X[order], train.y[order], train.qid[order])
    scores = fit(name, shuffled, vali).predict(test.X)
    np.testing.assert_allclose(scores, fitted(name).predict(test.X), rtol=1e-6, atol=APART.get(name, 1e-8))


@pytest.mark.parametrize("name", NAMES)
def test_runs_on_a_problem(name, tiny_problem, tmp_path):
    """What ``moerank run … --solver NAME`` does, without the choice of parameters and the figures."""
    small = next((arguments for prefix, arguments in SMALL.items() if name.startswith(prefix)), {})
    parameters = {key: value for key, value in small.items() if key not in SEARCH}
    problem = tiny_problem.model_copy(update={"solver": SolverSection(parameters=parameters, tune=False)})
    result = run_fold(problem, solver=name)
    assert Result.from_json(result.to_json()) == result
    assert set(result.best.scores) == {"train", "validation", "test"}
    assert (result.best.weights is not None) == solvers()[name].linear
    assert [len(member.features) for member in result.front] == sorted(len(m.features) for m in result.front)
    write_result(result, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"result.json", "front.csv", "model.json"}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of scales, and of early ends
@pytest.mark.parametrize(
    ("name", "oddity"), [(name, oddity) for name in NAMES for oddity in (SHORT if name in SEARCHES else ODD)]
)
def test_odd_data_are_ranked_by_finite_numbers_or_refused_in_a_sentence(name, oddity):
    data = odd_data(oddity)
    try:
        estimator = made(name).fit(data, validation=data)
    except ValueError as error:
        assert not isinstance(error, np.linalg.LinAlgError)
        assert re.search(REFUSALS.get(oddity, "must be ranked"), str(error)), error
        return
    scores = estimator.predict(data)
    assert scores.shape == (data.n_documents,)
    assert np.isfinite(scores).all()
    assert np.isfinite(getattr(estimator, "coef_", 0.0)).all()


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("mofsrank")])
@pytest.mark.parametrize("kind", [Fraction, np.longdouble])
def test_parameters_may_be_numbers_of_any_kind(name, kind):
    train, vali, _ = planted()
    estimator, expected = made(name), fitted(name)
    given = {key: kind(value) for key, value in estimator.get_params().items() if isinstance(value, float)}
    copied = clone(estimator.set_params(**given)).fit(train.X, train.y, qid=train.qid, validation=vali)
    np.testing.assert_array_equal(copied.predict(train), expected.predict(train))


@pytest.mark.filterwarnings("ignore:.*scale", "ignore:.*also in the training part")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in SEARCHES])
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 99), st.sampled_from(["none", "query", "minmax", "standard"]), *2 * [st.floats(-300, 300)])
@example(0, "standard", -25.0, -2.0)  # neighbours among the scaled values are neighbours among all doubles
def test_values_of_every_magnitude_train_a_solver_however_they_are_scaled(name, seed, scaling, low, high):
    rng = np.random.default_rng(seed)
    X = rng.random((60, 2))
    y = np.digitize(X[:, 1] + 0.3 * rng.random(60), [0.5, 0.9])
    powers = rng.uniform(min(low, high), max(low, high), 60)
    X[:, 0] = 10.0 ** (powers.clip(max=0) if scaling == "none" else powers)
    raw = RankingData(X, y, np.arange(60) // 20)
    data = fit_scaling(raw, scaling).apply(raw)
    assert np.isfinite(made(name).fit(data, validation=data).predict(data)).all()


@pytest.mark.parametrize("name", NAMES)
def test_single_precision_gives_what_double_precision_does(name):
    parts = [(part.X.astype(np.float32), part.y, part.qid) for part in planted()]
    single = [RankingData(*part) for part in parts]
    double = [RankingData(X.astype(np.float64), y, qid) for X, y, qid in parts]
    assert all(part.X.dtype == np.float32 for part in single)
    estimator, expected = (made(name).fit(train, validation=vali) for train, vali, _ in (single, double))
    scores = expected.predict(double[2])
    for table in (single[2], single[2].X):
        np.testing.assert_allclose(estimator.predict(table), scores, rtol=0, atol=1e-4 * np.ptp(scores))
    np.testing.assert_array_equal(estimator.support_, expected.support_)
    if hasattr(estimator, "path"):
        np.testing.assert_array_equal(
            estimator.path(single[0]).feature_mask.sum(axis=1), expected.path(double[0]).feature_mask.sum(axis=1)
        )


@pytest.mark.parametrize("name", NAMES)
def test_raw_values_are_scaled_as_in_training(name):
    """Fitted on scaled data: what is predicted of raw values is what is predicted of scaled ones, to the bit."""
    train, vali, test = (RankingData(1e3 * part.X - 7, part.y, part.qid) for part in planted())
    scaling = fit_scaling(train, "standard")
    estimator = made(name).fit(scaling.apply(train), validation=vali)
    scaled = scaling.apply(test)
    scores = estimator.predict(scaled)
    assert np.ptp(scores) > 0
    for raw in (test, test.X, pd.DataFrame(test.X)):
        np.testing.assert_array_equal(estimator.predict(raw), scores)
        np.testing.assert_array_equal(np.asarray(estimator.transform(raw)), scaled.X[:, estimator.support_])


@pytest.mark.parametrize("name", NAMES)
def test_a_solver_that_finds_nothing_to_rank_by_says_so(name):
    """Each document has a twin with another label, so that no weight of any feature is better than 0."""
    data = odd_data("duplicate documents with different labels")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator = made(name).fit(data, validation=data)
        except ValueError as error:
            assert re.search("no feature.*ensemble=False", str(error)), error
            return
    said = [str(entry.message) for entry in caught if entry.category is ConvergenceWarning]
    assert bool(said) == (not np.ptp(estimator.predict(data)))
    found = "" if estimator.support_.any() else "found no feature to rank by, and "
    assert all(f"{found}scores all documents alike; " in sentence for sentence in said)
