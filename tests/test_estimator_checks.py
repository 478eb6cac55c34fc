"""scikit-learn's own checks of an estimator, on every class of the table of solvers."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from moerank import FSED
from moerank.solvers import solvers

BUDGET = {"population": 4, "generations": 2}
TREES = "CEGB ILMART LambdaMART LambdaMARTGain LambdaMARTPermutation LambdaMARTSHAP"
SMALL = {
    **{key: {"n_trees": 2} for key in TREES.split()},
    **{key: {"n_rounds": 3} for key in ("AdaRank", "FRank", "RankBoost")},
    **{key: {"max_iter": 20} for key in ("FSMRankSubgradient", "FenchelRank")},
    "BaggedLambdaMART": {"n_bags": 1, "n_trees": 2},
    "FSBFS": {"max_size": 1, "restarts": 1},
    "LambdaMARTRFE": {"n_trees": 2, "drop": 0.5},
    "ListNet": {"n_epochs": 5},
    "MOFSRank": dict.fromkeys(("instance_selection", "feature_selection", "ensemble"), BUDGET),
    "SVMMAP": {"eps": 0.1},
}
"""Parameters with which a class is quick."""

ALL_RELEVANT = "average precision is defined where some document is not relevant, and all labels there are above 0"
EXPECTED = {"SVMMAP": dict.fromkeys(("check_estimators_dtypes", "check_fit2d_1feature"), ALL_RELEVANT)}
"""The checks that contradict ranking itself, by class, with the reason."""


class FSEDOnTraining(FSED):
    """FSED with the validation data that it insists on, which no check gives."""

    def fit(self, X, y=None, *, qid=None):
        return super().fit(X, y, qid=qid, validation=None if y is None else (X, y, qid))


def one_of_each_class():
    by_class = {}
    for entry in solvers().values():
        estimator = entry.make()
        by_class.setdefault(type(estimator).__name__, estimator)
    by_class["FSED"] = FSEDOnTraining()
    return {name: estimator.set_params(**SMALL.get(name, {})) for name, estimator in by_class.items()}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "estimator"), one_of_each_class().items())
def test_it_is_what_scikit_learn_calls_an_estimator(name, estimator):
    expected = EXPECTED.get(name, {})
    results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
    assert len(results) > 40
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == expected.keys()
