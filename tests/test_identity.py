"""What a value from Python is: the same in every process, and another as soon as anything differs that decides."""

import importlib
import linecache
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from moerank.data import FeatureCosts, RankingData, query_level_norm
from moerank.identity import digest, identify
from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import RankRLS, RankSVM

SOURCE = """
import users_helper
from moerank.rankers import RankSVM
LIMIT = {limit}
class Mine(RankSVM):
    def tuned(self):
        return {inside}
def make(problem, seed, scale={default}):
    return RankSVM(C=scale + LIMIT + {step})
def nearby():
    return [{nearby}, nearby]
def helped(data):
    return users_helper.weights(data), nearby()
def unrelated():
    return {unrelated}
"""
HELPER = """
from users_constants import weight as of_all
def weights(data):
    return [of_all, {weight}]
"""
PLAIN = dict(limit=2, step=1, inside=1, default=2.0, nearby=1, weight=1, unrelated=1, constant=1)
MODULES = {"users_constants": "weight = {constant}", "users_helper": HELPER, "users_own": SOURCE}


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module of a user's and import it anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def write(**changes):
        for name, source in MODULES.items():
            (tmp_path / f"{name}.py").write_text(source.format(**{**PLAIN, **changes}))
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        linecache.clearcache()
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        return importlib.import_module("users_own")

    yield write
    for name in MODULES:
        sys.modules.pop(name, None)


def test_a_function_or_class_is_its_name_its_text_its_defaults_and_its_version(module):
    known = digest(module().make)
    assert digest(module().make) == known
    for change in (dict(step=2), dict(default=2.5)):
        assert digest(module(**change).make) != known, change
    make = module().make
    make.version = "2"
    assert digest(make) != known
    assert digest(module(limit=3).make) == known  # a value that it names is not seen, as the documentation says
    known = digest(module().Mine())
    assert digest(module(limit=3).Mine()) == known
    assert digest(module(inside=2).Mine()) != known
    assert digest(module().Mine(C=0.5)) != known


def test_a_function_or_class_is_the_users_own_code_that_it_uses(module):
    known = digest(module().helped)
    assert digest(module(unrelated=2).helped) == known == digest(module(inside=2, limit=3).helped)
    for change in (dict(nearby=2), dict(weight=2), dict(constant=2)):
        assert digest(module(**change).helped) != known, change
    assert digest(module(weight=2).make) == digest(module().make)  # it does not use the helper
    assert set(identify(module().helped)["sources"]) == {"helped", "nearby", "users_helper", "users_constants"}


def test_a_function_is_what_it_closes_over_and_what_its_partial_fixes(module):
    def outer(value):
        return lambda problem, seed: value

    assert digest(outer(1)) == digest(outer(1))
    assert digest(outer(1)) != digest(outer(2))
    assert digest(partial(module().make, scale=1.0)) != digest(partial(module().make, scale=3.0))


def test_a_function_without_a_text_needs_a_version():
    scope = {"__name__": "__main__"}
    exec(compile("def make(problem, seed):\n    return seed\n", "<no file>", "exec"), scope)
    with pytest.raises(ValueError, match=r"the source text of __main__\.make cannot be read; move it"):
        digest(scope["make"])
    scope["make"].version = "1"
    known = digest(scope["make"])
    scope["make"].version = "2"
    assert digest(scope["make"]) != known


def test_another_process_says_the_same(module, tmp_path):
    known = digest(module().make)
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom users_own import make\n"
        "from moerank.identity import digest\nprint(digest(make))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == known


def test_estimators_are_their_class_and_parameters():
    one = identify(MOFSRank(RankRLS(alpha=0.5), metric=NDCG(5), workers=2), "it", without=("workers",))
    assert one["class"] == "moerank.mofsrank.estimator.MOFSRank"
    assert one["parameters"]["backend"]["parameters"]["alpha"] == 0.5
    assert "workers" not in one["parameters"]
    fitted = RankSVM(C=0.5).fit([[0.1], [0.9]], [0, 1], qid=0)
    assert identify(fitted, "it") == identify(RankSVM(C=0.5), "it")
    variants = [RankSVM(), RankSVM(C=2), RankRLS(), MOFSRank(metric=NDCG(5)), MOFSRank(metric=NDCG(6))]
    assert len({digest(variant) for variant in variants}) == len(variants)


def test_arrays_are_their_values_types_and_shapes():
    array = np.arange(6.0).reshape(2, 3)
    assert digest(array) == digest(array.copy())
    changed = array.copy()
    changed[1, 2] = np.nextafter(5.0, 6.0)
    others = [array, array.reshape(3, 2), array.astype(np.float32), changed, array.astype(object)]
    assert len({digest(other) for other in others}) == 5
    assert identify(np.float32(0.5), "it") == 0.5
    assert digest({"b": {"x", "y"}}) == digest({"b": {"y", "x"}})


LOCK = threading.Lock()


@pytest.mark.parametrize(
    ("value", "part"),
    [(LOCK, "it"), (MOFSRank(random_state=LOCK), "it, random_state,"), ((lambda lock: lambda: lock)(LOCK), "it, a .*")],
)
def test_what_has_no_lasting_description_is_refused(value, part):
    with pytest.raises(ValueError, match=f"^{part} is a lock, which has no stable description"):
        identify(value, "it")


def test_data_are_all_that_can_decide():
    def data(X=((0.1, 0.2), (0.9, 0.3)), y=(0, 1), qid=(1, 1), **arguments):
        return RankingData(np.array(X), y, np.array(qid), **arguments)

    known = digest(data())
    assert digest(data(name="another")) == known
    others = [
        data(X=((0.1, 0.2), (0.9, 0.30000000000000004))),
        data(X=np.array([[0.1, 0.2], [0.9, 0.3]], np.float32)),
        data(y=(0, 2)),
        data(qid=("a", "a")),
        data(feature_names=["a", "b"]),
        data(costs=[1.0, 2.0]),
        data(costs=[1.0, 3.0]),
        data(costs=FeatureCosts.of([1.0, 2.0], groups=["a", "a"])),
        data(costs=FeatureCosts.of([1.0, 2.0], groups=["a", "b"])),
        data(costs=FeatureCosts.of([1.0, 2.0], groups=["a", "b"], group_costs={"b": 1.0})),
        data(document_weights=[1.0, 2.0]),
        query_level_norm(data()),
        data(missing=0.0),
        data(qid=(1, 2), query_weights=[1.0, 2.0]),
        data(qid=(1, 2), query_weights=[2.0, 1.0]),
    ]
    assert len({known, *map(digest, others)}) == 1 + len(others)


@dataclass(frozen=True, eq=False, kw_only=True)
class CostsWithLatency(FeatureCosts):
    """A table of costs with a column that moerank does not know."""

    latency: np.ndarray | None = None


def test_a_new_field_of_costs_counts_without_being_named():
    costs = FeatureCosts.of([1.0, 2.0])
    data = RankingData([[0.1, 0.2], [0.9, 0.3]], [0, 1], [1, 1])
    slow, fast = (CostsWithLatency(**vars(costs), latency=np.array([5.0, last])) for last in (9.0, 1.0))
    assert len({digest(data.with_costs(table)) for table in (costs, slow, fast)}) == 3


SEARCH = """
import sys
import numpy as np, moerank as mr
from moerank.mofsrank.objectives import Objective
from weights_of_mine import weight
padding = [object() for _ in range(int(sys.argv[2]))]
def importance(data):
    return weight(data)
class Even(Objective):
    name, title = "even", "Features in even columns"
    def values(self, candidates):
        return np.zeros(len(candidates.errors))
    def bounds(self, data, n_var):
        return 0, 1
train, _, _ = mr.load_planted_fold(1, n_queries=20)
costs, groups = [float(sys.argv[3])] + [1.0] * (train.n_features - 1), [sys.argv[4]] + ["a"] * (train.n_features - 1)
weights = [float(sys.argv[5])] + [1.0] * (train.n_queries - 1)
train = mr.RankingData(train.X, train.y, train.qid, query_weights=weights, costs=mr.FeatureCosts.of(costs, groups))
stages = {"instance_selection": False, "feature_selection": {"population": 6, "generations": 2}, "ensemble": False}
kind = mr.FSMRank(importance=importance, max_iter=20) if sys.argv[6] == "fsmrank" else mr.RankRLS()
solver = mr.MOFSRank(kind, objectives=("features", "error", Even()), algorithm="nsga3", tune=False, random_state=0,
                     memo=sys.argv[1], resume=True, **stages)
solver.fit(train)
"""


@pytest.mark.parametrize("ranker", ["fsmrank", "rankrls"])
def test_a_search_of_ones_own_code_resumes_in_a_new_process(tmp_path, ranker):
    (tmp_path / "weights_of_mine.py").write_text("def weight(data): return 1 + 0 * data.X[0]")
    (tmp_path / "mine.py").write_text(SEARCH)

    def resume(padding="0", cost="2", group="a", weight="1"):
        memo = tmp_path / "memo"
        command = [sys.executable, "-W", "ignore", "mine.py", memo, padding, cost, group, weight, ranker]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stderr

    weight = "1" if ranker == "fsmrank" else "3"  # FSMRank takes no weights
    assert resume(weight=weight) == ""
    assert resume(weight=weight, padding="20000") == ""
    assert "0x" not in (tmp_path / "memo.feature_selection").read_text().partition("\n")[0]
    changes = [{"cost": "3"}, {"group": "b"}] + [{"weight": "4"}] * (ranker == "rankrls")
    for change in changes:
        assert "another configuration: data is" in resume(**{"weight": weight, **change}), change
    if ranker == "fsmrank":
        (tmp_path / "weights_of_mine.py").write_text("def weight(data): return data.X[0] + 1")
        assert "backend.parameters.importance.sources.weights_of_mine is" in resume()
