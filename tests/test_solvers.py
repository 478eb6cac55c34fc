from types import SimpleNamespace

import pytest

from moerank import solvers as module
from moerank.metrics import MAP, NDCG, Precision
from moerank.rankers import RankRLS
from moerank.solvers import SolverEntry, make_solver, solvers

BUDGET = {"population": 8, "generations": 3}


def broken():
    raise ImportError("no module named elsewhere")


@pytest.fixture
def third_parties(monkeypatch):
    """Install entry points: a mapping from group to what each loads."""

    def install(groups):
        def entry_points(group):
            contents = groups.get(group, {}).items()
            return [SimpleNamespace(group=group, name=name, value="elsewhere:x", load=load) for name, load in contents]

        monkeypatch.setattr(module, "entry_points", entry_points)
        solvers.cache_clear()
        module.plugins.cache_clear()

    yield install
    solvers.cache_clear()
    module.plugins.cache_clear()


def entry(name):
    return SolverEntry(name, "ranker", "Nobody: Nothing", 2000, RankRLS, selects=False)


def test_one_search_is_recommended():
    assert [row.name for row in solvers().values() if row.recommended] == ["mofsrank-staircase"]


def test_what_a_row_fixes_is_joined_to_what_is_given():
    fixed = {"keep_members": False, "count": "bits"}
    for given, expected in (({}, fixed), (BUDGET, {**BUDGET, **fixed}), (False, False), (True, fixed)):
        assert make_solver("mofsrank-paper", ensemble=given).ensemble == expected
    assert make_solver("mofsrank-paper").ensemble == fixed


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(ValueError, match=r"unknown solver 'rankrsl'; did you mean 'rankrls'\?"):
        make_solver("rankrsl")
    with pytest.raises(ValueError, match=r"unknown parameter of rankrls 'alhpa'; did you mean 'alpha'\?"):
        make_solver("rankrls", alhpa=1.0)
    with pytest.raises(ValueError, match=r"alpha of rankrls must be a number or a switch, not '1'"):
        make_solver("rankrls", alpha="1")


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (broken, "ImportError: no module named elsewhere"),
        (lambda: 3, "it is neither a class with fit nor a SolverEntry"),
        (lambda: entry("mofsrank"), "the name is taken"),
    ],
)
def test_an_entry_point_that_fails_is_left_out_with_a_warning(third_parties, load, reason):
    third_parties({"moerank.solvers": {"bad": load, "good": lambda: entry("theirs")}})
    with pytest.warns(UserWarning, match=rf"entry point moerank\.solvers: bad.* is left out: .*{reason}"):
        table = solvers()
    assert "theirs" in table
    assert table["mofsrank"].family == "evolutionary"


@pytest.mark.parametrize("name", ["gas-e", "fs-ed", "single"])
def test_metrics_are_read_by_their_names(name, tiny_problem):
    train, vali, _ = tiny_problem.load_fold(1)
    by_name = make_solver(name, metric="MAP", n_features_to_select=3).fit(train, validation=vali)
    by_object = make_solver(name, metric=MAP(), n_features_to_select=3).fit(train, validation=vali)
    default = make_solver(name, n_features_to_select=3).fit(train, validation=vali)
    assert by_name.metric == "MAP", "a constructor only stores"
    assert by_name.order_.tolist() == by_object.order_.tolist() != default.order_.tolist()
    with pytest.raises(ValueError, match=r"^metric must be a Metric or the name of one: unknown metric 'MAPP'; choose"):
        make_solver(name, metric="MAPP").fit(train, validation=vali)


def test_adarank_keeps_its_own_words_and_takes_any_metric(tiny_problem):
    train, _, _ = tiny_problem.load_fold(1)

    def weights(measure):
        return make_solver("adarank-map").set_params(measure=measure, n_rounds=20).fit(train).coef_.tolist()

    assert weights("ndcg") == weights(NDCG(10, convention="letor", short_queries="own_length"))
    assert weights("map") == weights("MAP") == weights(MAP())
    assert weights("P@3") == weights(Precision(3)) != weights("map")
    with pytest.raises(ValueError, match=r"^measure must be a Metric or the name of one: unknown metric 'mpa'"):
        weights("mpa")


class Unmade(RankRLS):
    def __init__(self, depth=3):
        raise AssertionError("an estimator was made")


class Wide:
    """A class that names its parameters by itself, as those of XGBoost do."""

    def __init__(self, **parameters):
        self.parameters = {"depth": 3, **parameters}

    def get_params(self, deep=True):
        return self.parameters


def test_parameters_are_read_without_an_estimator_where_the_signature_names_them():
    for kind in (Unmade, Wide):
        row = SolverEntry("theirs", "ranker", "Nobody: Nothing", 2000, kind, fixed={"seed": 1})
        assert row.defaults() == {"depth": 3, "seed": 1}
