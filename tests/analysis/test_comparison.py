import itertools

import numpy as np
import pytest
from scipy import stats

from moerank.analysis.comparison import (
    against_reference,
    feature_stability,
    front_points,
    front_quality,
    solver_ranks,
)


@pytest.fixture(scope="module")
def results(tiny_study):
    return tiny_study.results()


def values(results, solver, fold):
    """Test MAP of every query, averaged over the seeds by hand."""
    runs = [r.best.per_query["test"]["MAP"] for c, r in results.items() if (c.solver.name, c.fold) == (solver, fold)]
    return np.mean(runs, axis=0)


def test_solvers_are_compared_query_by_query_over_all_folds(results):
    table = against_reference(results, "tiny", "fsmrank", "MAP").set_index("solver")
    assert set(table.index) == {"ranksvm-primal", "mofsrank", "mofsrank-no-ensemble", "greedy-rankrls"}
    for solver, row in table.iterrows():
        a, b = (np.concatenate([values(results, name, fold) for fold in (1, 2)]) for name in (solver, "fsmrank"))
        assert row["difference"] == pytest.approx((a - b).mean())
        assert row["p"] == pytest.approx(stats.ttest_rel(a, b).pvalue if (a != b).any() else 1.0)
        assert row["wins"] + row["ties"] + row["losses"] == len(a)
    assert (table["holm"] >= table["p"]).all()


def test_a_solver_with_a_missing_fold_is_compared_on_what_is_there(results):
    part = {cell: r for cell, r in results.items() if (cell.solver.name, cell.fold) != ("mofsrank", 2)}
    table = against_reference(part, "tiny", "fsmrank", "MAP").set_index("solver")
    row = table.loc["mofsrank"]
    assert row["wins"] + row["ties"] + row["losses"] == len(values(results, "fsmrank", 1))
    with pytest.raises(ValueError, match="no finished cell of rankboost on tiny"):
        against_reference(results, "tiny", "rankboost", "MAP")


def test_ranks_are_those_of_the_mean_over_the_seeds(results):
    ranks = solver_ranks(results, "MAP")
    names = ["fsmrank", "ranksvm-primal", "mofsrank", "mofsrank-no-ensemble", "greedy-rankrls"]
    table = np.array([[values(results, name, fold).mean() for name in names] for fold in (1, 2)])
    expected = dict(zip(names, stats.rankdata(-table, axis=1).mean(axis=0), strict=True))
    np.testing.assert_allclose(ranks.test.ranks, [expected[name] for name in ranks.solvers])
    assert (np.diff(ranks.test.ranks) >= 0).all()
    assert solver_ranks(dict(itertools.islice(results.items(), 1)), "MAP") is None


def test_quality_of_fronts_is_measured_against_all_of_the_fold(results):
    table = front_quality(results, "tiny")
    assert len(table) == len(results)
    for fold in (1, 2):
        everything = np.concatenate([front_points(r) for cell, r in results.items() if cell.fold == fold])
        n_features = len(next(iter(results.values())).feature_names)
        for (cell, result), (_, row) in zip(results.items(), table.iterrows(), strict=True):
            if cell.fold != fold:
                continue
            front = front_points(result)
            steps = [front[front[:, 0] <= k, 1].min(initial=1.0) for k in range(1, n_features)]
            assert row["hypervolume"] == pytest.approx(np.sum(1 - np.array(steps)) / n_features)
            best = [p for p in everything if not any((q <= p).all() and (q < p).any() for q in everything)]
            best = np.unique(best, axis=0)
            gaps = [min(np.hypot(max(f - g, 0) / n_features, max(e - h, 0)) for f, e in front) for g, h in best]
            assert row["igd_plus"] == pytest.approx(np.mean(gaps), abs=1e-12)


def test_stability_of_a_worked_example():
    jaccard, corrected = feature_stability([[0, 1], [0, 1], [0, 2]], 10)
    assert jaccard == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)
    # Two random pairs out of ten share both with chance 1/45, one with 16/45.
    expected = 1 / 45 + 16 / 45 / 3
    assert corrected == pytest.approx((jaccard - expected) / (1 - expected))


def test_random_choices_are_as_stable_as_chance():
    rng = np.random.default_rng(0)
    chosen = [rng.choice(12, rng.integers(1, 8), replace=False).tolist() for _ in range(150)]
    assert feature_stability(chosen, 12)[1] == pytest.approx(0.0, abs=0.01)
    assert feature_stability([[1, 2]] * 4, 12) == (1.0, 1.0)
    with pytest.raises(ValueError, match="at least two runs"):
        feature_stability([[1]], 12)
