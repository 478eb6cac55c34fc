"""What a value from Python is: the same in every process, and another as soon as anything differs that decides."""

import importlib
import linecache
import shutil
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest

from moerank.data import RankingData, query_level_norm
from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import RankRLS, RankSVM
from moerank.runs.solver import data_digest, digest_of, identity_of

SOURCE = """
from moerank.rankers import RankSVM
LIMIT = {limit}
class Mine(RankSVM):
    def tuned(self):
        return {inside}
def make(problem, seed, scale={default}):
    return RankSVM(C=scale + LIMIT + {step})
"""
PLAIN = dict(limit=2, step=1, inside=1, default=2.0)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module of a user's and import it anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def write(**changes):
        (tmp_path / "users_own.py").write_text(SOURCE.format(**{**PLAIN, **changes}))
        sys.modules.pop("users_own", None)
        importlib.invalidate_caches()
        linecache.clearcache()
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        return importlib.import_module("users_own")

    yield write
    sys.modules.pop("users_own", None)


def digest(value):
    return digest_of(identity_of(value, "it"))


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
        "from moerank.runs.solver import identity_of, digest_of\nprint(digest_of(identity_of(make, 'it')))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == known


def test_estimators_are_their_class_and_parameters():
    one = identity_of(MOFSRank(RankRLS(alpha=0.5), metric=NDCG(5), workers=2), "it", without=("workers",))
    assert one["class"] == "moerank.mofsrank.estimator.MOFSRank"
    assert one["parameters"]["backend"]["parameters"]["alpha"] == 0.5
    assert "workers" not in one["parameters"]
    fitted = RankSVM(C=0.5).fit([[0.1], [0.9]], [0, 1], qid=0)
    assert identity_of(fitted, "it") == identity_of(RankSVM(C=0.5), "it")
    variants = [RankSVM(), RankSVM(C=2), RankRLS(), MOFSRank(metric=NDCG(5)), MOFSRank(metric=NDCG(6))]
    assert len({digest(variant) for variant in variants}) == len(variants)


def test_arrays_are_their_values_types_and_shapes():
    array = np.arange(6.0).reshape(2, 3)
    assert digest(array) == digest(array.copy())
    changed = array.copy()
    changed[1, 2] = np.nextafter(5.0, 6.0)
    others = [array, array.reshape(3, 2), array.astype(np.float32), changed, array.astype(object)]
    assert len({digest(other) for other in others}) == 5
    assert identity_of(np.float32(0.5), "it") == 0.5
    assert digest({"b": {"x", "y"}}) == digest({"b": {"y", "x"}})


LOCK = threading.Lock()


@pytest.mark.parametrize(
    ("value", "part"),
    [(LOCK, "it"), (MOFSRank(random_state=LOCK), "it, random_state,"), ((lambda lock: lambda: lock)(LOCK), "it, a .*")],
)
def test_what_has_no_lasting_description_is_refused(value, part):
    with pytest.raises(ValueError, match=f"^{part} is a lock, which has no stable description"):
        identity_of(value, "it")


def test_data_are_all_that_can_decide():
    def data(X=((0.1, 0.2), (0.9, 0.3)), y=(0, 1), qid=(1, 1), **arguments):
        return RankingData(np.array(X), y, np.array(qid), **arguments)

    known = data_digest(data())
    assert data_digest(data(name="another")) == known
    others = [
        data(X=((0.1, 0.2), (0.9, 0.30000000000000004))),
        data(X=np.array([[0.1, 0.2], [0.9, 0.3]], np.float32)),
        data(y=(0, 2)),
        data(qid=("a", "a")),
        data(feature_names=["a", "b"]),
        data(costs=[1.0, 2.0]),
        data(costs=[1.0, 3.0]),
        query_level_norm(data()),
        data(missing=0.0),
        data(qid=(1, 2), query_weights=[1.0, 2.0]),
        data(qid=(1, 2), query_weights=[2.0, 1.0]),
    ]
    assert len({known, *map(data_digest, others)}) == 1 + len(others)
