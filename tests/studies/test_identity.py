"""What a value from Python is: the same in every process, and another as soon as anything differs that decides."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from moerank.data import RankingData, query_level_norm
from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import RankRLS, RankSVM
from moerank.studies.solver import data_digest, describe, digest_of

SOURCE = """
import numpy as np
from functools import partial
from moerank.rankers import RankRLS, RankSVM
LIMIT = {limit}
def helper(x):
    return x + {step}
class Mine(RankSVM):
    "Words that say nothing."
    def tuned(self):
        return {inside}
def make(problem, seed, scale={default}):
    {comment}
    chosen = [helper(i) for i in range(LIMIT)]
    return {product}(C=sum(chosen) * scale)
"""
PLAIN = dict(limit=2, step=1, inside=1, default=2.0, comment="pass", product="RankSVM")


def function(**changes):
    """The function `make` of a module that was written so."""
    scope = {"__name__": "__main__"}
    exec(SOURCE.format(**{**PLAIN, **changes}), scope)
    return scope["make"]


def digest(value):
    return digest_of(describe(value, "it"))


def test_a_function_is_its_code_and_what_that_names():
    known = digest(function())
    assert digest(function()) == known
    assert digest(function(comment="pass  # a remark")) == known
    assert digest(function(inside=2)) == known  # of a class that it does not name
    for change in (dict(limit=3), dict(step=2), dict(default=2.5), dict(comment="seed = 3"), dict(product="RankRLS")):
        assert digest(function(**change)) != known, change
    assert digest(function(product="Mine")) != digest(function(product="Mine", inside=2))


def test_a_function_is_what_it_closes_over_and_what_its_partial_fixes():
    def outer(value):
        return lambda problem, seed: value

    assert digest(outer(1)) == digest(outer(1))
    assert digest(outer(1)) != digest(outer(2))
    assert digest(partial(function(), scale=1.0)) != digest(partial(function(), scale=3.0))


def test_a_function_that_names_itself_has_an_end():
    scope = {"__name__": "__main__"}
    exec("def down(n):\n    return down(n - 1) if n else 0\n", scope)
    assert digest(scope["down"]) == digest(scope["down"])


def test_what_a_decorator_or_a_compiler_made_of_a_function_is_that_function():
    from functools import wraps

    from numba import njit

    def decorated(value):
        @wraps(np.mean)
        def own(problem, seed):
            return value

        return own

    def compiled(step):
        scope = {"__name__": "__main__"}
        exec(f"def add(x):\n    return x + {step}\n", scope)
        return njit(scope["add"])

    assert digest(decorated(1)) != digest(decorated(2))
    one = compiled(1)
    before = digest(one)
    one(2)
    assert digest(one) == before != digest(compiled(2))


def test_another_process_says_the_same():
    script = (
        f"scope = {{'__name__': '__main__'}}; exec({SOURCE.format(**PLAIN)!r}, scope)\n"
        "from moerank.studies.solver import describe, digest_of\nprint(digest_of(describe(scope['make'], 'it')))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == digest(function())


def test_estimators_are_their_class_and_parameters():
    one = describe(MOFSRank(RankRLS(alpha=0.5), metric=NDCG(5), workers=2), "it", without=("workers",))
    assert one["class"] == "moerank.mofsrank.estimator.MOFSRank"
    assert one["parameters"]["backend"]["parameters"]["alpha"] == 0.5
    assert "workers" not in one["parameters"]
    fitted = RankSVM(C=0.5).fit([[0.1], [0.9]], [0, 1])
    assert describe(fitted, "it") == describe(RankSVM(C=0.5), "it")
    variants = [RankSVM(), RankSVM(C=2), RankRLS(), MOFSRank(metric=NDCG(5)), MOFSRank(metric=NDCG(6))]
    assert len({digest(variant) for variant in variants}) == len(variants)


def test_arrays_are_their_values_types_and_shapes():
    array = np.arange(6.0).reshape(2, 3)
    assert digest(array) == digest(np.asfortranarray(array)) == digest(array.copy())
    changed = array.copy()
    changed[1, 2] = np.nextafter(5.0, 6.0)
    others = [array, array.reshape(3, 2), array.astype(np.float32), changed, array.astype(object)]
    assert len({digest(other) for other in others}) == 5
    assert describe(float("nan"), "it") == {"float": "nan"}
    assert describe(np.float32(0.5), "it") == 0.5
    assert describe({1: "a", "b": {2, 1}}, "it") == {"entries": [["b", {"set": [1, 2]}], [1, "a"]]}


@pytest.mark.parametrize("value", [np.random.default_rng(0), iter([]), MOFSRank(random_state=np.random.default_rng(0))])
def test_what_has_no_lasting_description_is_refused(value):
    with pytest.raises(ValueError, match="which has no description that stays the same"):
        describe(value, "it")


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
    ]
    assert len({known, *map(data_digest, others)}) == 1 + len(others)
