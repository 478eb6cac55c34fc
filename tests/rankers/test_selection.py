"""The verdict on a selection, measured again with the plainest means."""

import numpy as np
import pytest
from scipy import stats

from moerank import FSBFS, LambdaMARTGain, SingleFeatures
from moerank.data import RankingData, fit_scaling, load_planted_fold
from moerank.metrics import NDCG
from moerank.rankers import LambdaMART, RankSVM
from moerank.solvers import make_solver, solvers
from moerank.statistics import p_differs

EMBEDDED = ("fsmrank", "fsmrank-subgradient", "fenchelrank", "nonconvex-lp")


@pytest.fixture(scope="module")
def parts():
    return load_planted_fold(1, n_queries=45, n_documents=12, n_noise=4)


def test_every_selection_can_be_judged_and_nothing_else():
    assert FSBFS().without_selection().get_params() == RankSVM().get_params()
    assert {name for name in solvers() if hasattr(make_solver(name), "verdict")} == {
        name for name, row in solvers().items() if row.selects
    }


@pytest.mark.parametrize(
    ("solver", "other"),
    [
        *((make_solver(name), RankSVM()) for name in ("gas", *EMBEDDED)),
        (LambdaMARTGain(2, n_trees=8), LambdaMART(n_trees=8)),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
def test_the_reference_has_all_features_and_is_set_by_validation(solver, other, parts):
    train, validation, test = parts
    solver.fit(train, validation=validation)
    everything = other.tune(train, validation).fit(train)
    d = NDCG(10).per_query(test, solver.predict(test)) - NDCG(10).per_query(test, everything.predict(test))
    found = solver.verdict(test, train, validation)
    assert found.difference == pytest.approx(d.mean(), abs=1e-12)
    assert found.error == pytest.approx(stats.sem(d))
    assert found.p == p_differs(d)
    assert (found.part, found.n_queries, found.metric) == ("test", test.n_queries, "NDCG@10")
    assert (found.n_features, found.n_allowed) == (solver.support_.sum(), train.n_features)
    assert found.against == " ".join(repr(everything).split())
    trained, validated = (
        NDCG(10).per_query(part, solver.predict(part)) - NDCG(10).per_query(part, everything.predict(part))
        for part in (train, validation)
    )
    n = sum(NDCG(10).can_differ(part).sum() for part in (train, validation))
    # Training differences are optimistic, and no difference is beyond 1.
    size = min(1.0, max(2 * np.abs(trained).max(), np.abs(validated).max()))
    assert found.tail == (n, pytest.approx(size, abs=1e-12), 1.0)
    assert solver.verdict(test, train).tail.n == NDCG(10).can_differ(train).sum()


def test_raw_test_data_are_scaled_as_in_training(parts):
    train, _, test = (RankingData(100 * part.X - 3, part.y, part.qid) for part in parts)
    scaling = fit_scaling(train, "standard")
    scaled = scaling.apply(train)
    solver = SingleFeatures(2).fit(scaled)
    assert solver.verdict(test, scaled) == solver.verdict(scaling.apply(test), scaled)
    for wrong in ((test, train), (test, scaled, test), (test, scaled.with_features(scaled.X[0] == scaled.X[0, 0]))):
        with pytest.raises(ValueError, match="SingleFeatures was fitted to; give those data"):
            solver.verdict(*wrong)
    for margin in (0.0, 2):
        with pytest.raises(ValueError, match=rf"^margin must be in \(0, 1\], not {margin}"):
            solver.verdict(test, scaled, margin=margin)
