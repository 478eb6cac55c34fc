"""A search that was interrupted and goes on from its journal has the bits of an undisturbed one, or is refused."""

import time

import numpy as np
import pytest
from helpers.interrupted_search import GENERATIONS, Counting, assert_same_result, interrupted
from helpers.toy_search import ALGORITHMS, POP_SIZE, SPARSE, WeighedBits, operators
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.evaluator import Evaluator
from pymoo.core.mutation import Mutation
from pymoo.core.population import Population
from pymoo.core.problem import Problem

from moerank.evolution import Archive, Journal, search

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


class Slow(WeighedBits):
    """Leaves the time to be killed in."""

    def _evaluate(self, X, out, *args, **kwargs):
        time.sleep(0.001 * len(X))
        super()._evaluate(X, out)


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
    undisturbed = search(whole := Counting(), made(), GENERATIONS, seed=3)
    batches = 0
    for more in (3, 0, 1, 2, 5):
        interrupted(path, made(), more + 1)
        batches += more
    journal = Journal(path, {})
    resumed = search(rest := Counting(), made(), GENERATIONS, seed=3, journal=journal)
    assert_same_result(resumed, undisturbed)
    assert journal.resumed
    # Nothing is evaluated twice but the front, at the end.
    assert rest.calls == whole.calls - batches + 1


def test_a_search_that_has_ended_is_not_done_again(path, nsga2):
    first = search(WeighedBits(), nsga2, GENERATIONS, seed=3, journal=Journal(path, {}))
    again = search(problem := Counting(), nsga2, GENERATIONS, seed=3, journal=Journal(path, {}))
    assert_same_result(again, first)
    assert problem.calls == 1
    assert [g.elapsed for g in again.history] == [g.elapsed for g in first.history]


@pytest.mark.parametrize(
    ("owner", "name"), [(Archive, "add"), (Journal, "append"), (Evaluator, "eval"), (NSGA2, "tell")]
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
        search(WeighedBits(), nsga2, GENERATIONS, seed=3, journal=Journal(path, {}))
    resumed = search(WeighedBits(), nsga2, GENERATIONS, seed=3, journal=Journal(path, {}))
    assert_same_result(resumed, search(WeighedBits(), nsga2, GENERATIONS, seed=3))


def test_progress_is_told_of_new_generations_alone(path, nsga2):
    interrupted(path, nsga2, 5)
    calls = []
    tell = dict(progress=lambda *call: calls.append(call))
    search(WeighedBits(), nsga2, 8, seed=3, journal=Journal(path, {}), **tell)
    assert calls == [(n / 8, n, 16 * n) for n in range(5, 9)]
    search(WeighedBits(), nsga2, 8, seed=3, journal=Journal(path, {}), **tell)
    assert len(calls) == 4


class Fading(Mutation):
    """Flips fewer bits the more of the budget is gone, as `decay="linear"` does."""

    def _do(self, problem, X, random_state=None, algorithm=None, **kwargs):
        return X ^ (random_state.random(X.shape) < 0.2 * max(0.0, 1.0 - algorithm.termination.perc))


def test_where_time_decides_all_that_was_written_down_is_repeated(path):
    termination = ("time", 0.4)

    def algorithm():
        return NSGA2(POP_SIZE, **operators() | {"mutation": Fading()})

    ended = search(Slow(), algorithm(), termination, seed=3, journal=Journal(path, {}))
    content = path.read_bytes()
    again = search(problem := Counting(), algorithm(), termination, seed=3, journal=Journal(path, {}))
    assert problem.calls == 1
    assert_same_result(again, ended)
    assert again.algorithm.termination.perc == ended.algorithm.termination.perc
    # Of half the journal all is repeated, and then the search goes on for the rest of its time.
    half = (len(ended.history) + 1) // 2
    path.write_bytes(b"".join(content.splitlines(keepends=True)[: half + 1]) + b"[0.1,")
    begin = time.monotonic()
    resumed = search(Slow(), algorithm(), termination, seed=3, journal=Journal(path, {}))
    spent = time.monotonic() - begin
    assert [g.elapsed for g in resumed.history[:half]] == [g.elapsed for g in ended.history[:half]]
    np.testing.assert_array_equal(resumed.history[half - 1].front, ended.history[half - 1].front)
    assert ended.history[-1].elapsed - resumed.history[half - 1].elapsed - 0.1 < spent


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
        search(Stopping(), algorithm(), 20, seed=3, journal=Journal(path, {}))
    assert_same_result(search(Constrained(), algorithm(), 20, seed=3, journal=Journal(path, {})), undisturbed)
    # A journal that calls something feasible which is not.
    looser = Constrained()
    looser._evaluate = lambda X, out: (
        Constrained._evaluate(looser, X, out),
        out.update(G=out["G"] - 20, H=0 * out["H"]),
    )
    path.unlink()
    search(looser, algorithm(), 3, seed=3, journal=Journal(path, {}))
    with pytest.raises(ValueError, match="holds wrong values"):
        search(Constrained(), algorithm(), 3, seed=3, journal=Journal(path, {}))


def test_an_evaluated_initial_population_is_taken_as_it_is(path):
    X = np.random.default_rng(0).random((POP_SIZE, 60)) < 0.3
    initial = Evaluator().eval(WeighedBits(), Population.new("X", X))

    def algorithm(start):
        return NSGA2(POP_SIZE, **operators() | {"sampling": start})

    undisturbed = search(WeighedBits(), algorithm(initial), 6, seed=3)
    search(WeighedBits(), algorithm(initial), 6, seed=3, journal=Journal(path, {}))
    path.write_bytes(path.read_bytes()[:-900])
    assert_same_result(search(WeighedBits(), algorithm(initial), 6, seed=3, journal=Journal(path, {})), undisturbed)
    assert undisturbed.history[0].n_eval == 0
    initial.set("F", initial.get("F") + 1)
    with pytest.raises(ValueError, match=r"record 1 .* values are not those of the initial population"):
        search(WeighedBits(), algorithm(initial), 6, seed=3, journal=Journal(path, {}))
