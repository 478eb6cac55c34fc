"""A search that was interrupted and goes on from its memo has the bits of an undisturbed one, or is refused."""

import numpy as np
import pytest
from helpers.interrupted_search import GENERATIONS, Counting, assert_same_result, interrupted
from helpers.toy_search import ALGORITHMS, POP_SIZE, SPARSE, WeighedBits, operators
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.evaluator import Evaluator
from pymoo.core.problem import Problem
from pymoo.optimize import minimize

from moerank.evolution import Archive, Memo, search


class Constrained(Problem):
    """At least sixteen ones, of which as many in the first half as in the second."""

    def __init__(self):
        super().__init__(n_var=30, n_obj=2, n_ieq_constr=1, n_eq_constr=1)

    def _evaluate(self, X, out, *args, **kwargs):
        out["F"] = np.column_stack([X.sum(axis=1), X[:, ::2].sum(axis=1)])
        out["G"] = 16 - X.sum(axis=1)
        out["H"] = X[:, :15].sum(axis=1) - X[:, 15:].sum(axis=1)


@pytest.mark.parametrize("made", [*ALGORITHMS.values(), *SPARSE.values()], ids=[*ALGORITHMS, *SPARSE])
def test_interrupted_again_and_again_the_search_ends_with_the_same_bits(made, path):
    undisturbed = search(WeighedBits(), made(), GENERATIONS, seed=3)
    search(whole := Counting(), made(), GENERATIONS, seed=3, memo=Memo(path.with_name("whole")))
    batches = 0
    for more in (3, 0, 1, 2, 5):
        interrupted(path, made(), more + 1)
        batches += more
    memo = Memo(path)
    resumed = search(rest := Counting(), made(), GENERATIONS, seed=3, memo=memo)
    assert_same_result(resumed, undisturbed)
    assert memo.resumed
    # Nothing is evaluated twice but the front, at the end.
    assert rest.calls == whole.calls - batches + 1
    # Plain pymoo resumes alike.
    settings = dict(termination=("n_gen", GENERATIONS), seed=3)
    with pytest.raises(KeyboardInterrupt):
        minimize(Counting(6), made(), **settings, evaluator=Memo(plain := path.with_name("plain")))
    resumed = minimize(rest := Counting(), made(), **settings, evaluator=(memo := Memo(plain)))
    for name in ("X", "F"):
        np.testing.assert_array_equal(resumed.pop.get(name), undisturbed.pop.get(name))
    assert (memo.n_eval, rest.calls) == (undisturbed.history[-1].n_eval, whole.calls - 5)
    memo.check(WeighedBits(), resumed.X, resumed.F)


def test_a_search_that_has_ended_is_not_done_again(path, nsga2):
    first = search(WeighedBits(), nsga2, GENERATIONS, seed=3, memo=Memo(path))
    again = search(problem := Counting(), nsga2, GENERATIONS, seed=3, memo=Memo(path))
    assert_same_result(again, first)
    assert problem.calls == 1
    assert [g.elapsed for g in again.history] == [g.elapsed for g in first.history]


@pytest.mark.parametrize(
    ("owner", "name"), [(Archive, "add"), (Memo, "_write"), (Evaluator, "eval"), (NSGA2, "_advance")]
)
@pytest.mark.parametrize("before", [True, False])
def test_an_interrupt_between_two_steps_of_the_loop_changes_nothing(owner, name, before, path, nsga2, monkeypatch):
    original, calls = getattr(owner, name), []

    def interrupting(self, *arguments, **settings):
        calls.append(name)
        if len(calls) == 5 and before:
            raise KeyboardInterrupt
        answer = original(self, *arguments, **settings)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return answer

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(owner, name, interrupting)
        search(WeighedBits(), nsga2, GENERATIONS, seed=3, memo=Memo(path))
    resumed = search(WeighedBits(), nsga2, GENERATIONS, seed=3, memo=Memo(path))
    assert_same_result(resumed, search(WeighedBits(), nsga2, GENERATIONS, seed=3))


def test_progress_is_told_of_new_generations_alone(path, nsga2):
    interrupted(path, nsga2, 5)
    calls = []
    tell = dict(progress=lambda *call: calls.append(call))
    search(WeighedBits(), nsga2, 8, seed=3, memo=Memo(path), **tell)
    assert calls == [(n / 8, n, 16 * n) for n in range(5, 9)]
    search(WeighedBits(), nsga2, 8, seed=3, memo=Memo(path), **tell)
    assert len(calls) == 4


def test_constraints_are_kept(path):
    class Stopping(Constrained):
        calls = 0

        def _evaluate(self, X, out, *args, **kwargs):
            self.calls += 1
            if self.calls == 6:
                raise KeyboardInterrupt
            super()._evaluate(X, out)

    def algorithm():
        return NSGA2(POP_SIZE, **operators())

    undisturbed = search(Constrained(), algorithm(), 20, seed=3)
    assert undisturbed.archive.X.sum(axis=1).min() >= 16
    assert len(undisturbed.history[0].front) == undisturbed.hypervolume([31, 31])[0] == 0
    with pytest.raises(KeyboardInterrupt):
        search(Stopping(), algorithm(), 20, seed=3, memo=Memo(path))
    assert_same_result(search(Constrained(), algorithm(), 20, seed=3, memo=Memo(path)), undisturbed)
