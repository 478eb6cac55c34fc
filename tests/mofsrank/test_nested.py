from threading import Lock

import pytest
from sklearn.base import clone

from moerank.mofsrank import MOFSRank
from moerank.mofsrank.settings import InstanceSelectionSettings, Settings
from moerank.rankers import RankSVM


def test_every_setting_is_listed_with_its_value_or_its_default():
    solver = MOFSRank(feature_selection={"population": 8, "termination": ("n_eval", 5)}, ensemble=False)
    listed = solver.get_params()
    assert listed["feature_selection__population"] == 8
    assert listed["feature_selection__termination"] == ("n_eval", 5)
    assert not [name for name in listed if name.startswith("ensemble__")]
    for name, value in InstanceSelectionSettings():
        assert listed[f"instance_selection__{name}"] == value
    assert not [name for name in solver.get_params(deep=False) if "__" in name]


def test_settings_are_set_one_by_one_and_the_users_mapping_stays():
    given = {"population": 8}
    solver = MOFSRank(RankSVM(), feature_selection=given)
    solver.set_params(feature_selection__generations=5, ensemble__inject=True, backend__C=2.0, final="knee")
    assert given == {"population": 8}
    assert solver.feature_selection == {"population": 8, "generations": 5}
    assert (solver.ensemble, solver.backend.C, solver.final) == ({"inject": True}, 2.0, "knee")
    copy = clone(solver)
    assert copy.get_params(deep=False)["feature_selection"] == solver.feature_selection
    client = Lock()  # like a Dask client it cannot be copied
    assert clone(clone(solver).set_params(workers=client)).workers is client
    copy.set_params(**solver.get_params())
    given, copied = (estimator.set_params(random_state=0).get_params(deep=False) for estimator in (solver, copy))
    assert Settings.of(copied) == Settings.of(given)
    solver.set_params(ensemble__generations=4, ensemble={"population": 6})  # the whole first, in whatever order
    assert solver.ensemble == {"population": 6, "generations": 4}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ensemble__generatons": 5}, "unknown setting of ensemble 'generatons'; did you mean 'generations'"),
        ({"ensemble": False, "ensemble__generations": 5}, r"ensemble__generations: the stage is left out \(ensemble=F"),
        ({"backend__C": 5}, "backend__C: backend is None, and so has no parameters of its own; set backend itself"),
        ({"nonsense__C": 5}, "Invalid parameter 'nonsense'"),
    ],
)
def test_what_cannot_be_set_is_refused_in_words(changes, message):
    with pytest.raises(ValueError, match=message):
        MOFSRank().set_params(**changes)
