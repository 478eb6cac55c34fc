"""What stands in a memo, what is cut off, and what is refused."""

import ast
import copy
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from helpers.small_disk import small_disk as small_disk
from helpers.toy_search import ALGORITHMS, POP_SIZE, SPARSE, WeighedBits, operators
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.optimize import minimize

import moerank
from moerank.evolution import Archive, Memo, search
from moerank.evolution.memo import Finished

GENERATIONS = 12


class Counting(WeighedBits):
    """Counts the batches that it evaluates, and raises in the middle of the given one."""

    def __init__(self, last=None):
        super().__init__()
        self.calls = 0
        self.last = last

    def _evaluate(self, X, out, *args, **kwargs):
        self.calls += 1
        if self.calls == self.last:
            raise KeyboardInterrupt
        super()._evaluate(X, out)


def assert_same_result(here, there):
    np.testing.assert_array_equal(here.pop.get("X"), there.pop.get("X"))
    for name in ("F", "G", "H"):
        np.testing.assert_array_equal(here.pop.get(name), there.pop.get(name))
    np.testing.assert_array_equal(here.archive.X, there.archive.X)
    np.testing.assert_array_equal(here.archive.F, there.archive.F)
    for one, other in zip(here.history, there.history, strict=True):
        assert (one.n_gen, one.n_eval) == (other.n_gen, other.n_eval)
        np.testing.assert_array_equal(one.front, other.front)


def interrupted(path, algorithm, last=7):
    """Search, and raise in the evaluation of the given batch."""
    with pytest.raises(KeyboardInterrupt):
        search(Counting(last), algorithm, GENERATIONS, seed=3, memo=Memo(path))


CONFIGURATION = {"problem": "toy", "seed": 3, "grid": (1, 2)}


def searched(path, algorithm, problem=None, configuration=CONFIGURATION, seed=3, generations=GENERATIONS):
    memo = Memo(path, configuration)
    return search(problem or WeighedBits(), algorithm, generations, seed=seed, memo=memo)


@pytest.fixture
def written(path, nsga2):
    """The lines of the memo of a search of twelve generations."""
    searched(path, nsga2)
    return path.read_bytes().splitlines(keepends=True)


def test_a_batch_is_in_the_file_as_soon_as_it_is_evaluated(path, nsga2):
    sizes = []

    class Looking(WeighedBits):
        def _evaluate(self, X, out, *args, **kwargs):
            sizes.append(len(path.read_bytes().splitlines()))
            super()._evaluate(X, out)

    searched(path, nsga2, Looking())
    assert sizes == list(range(1, GENERATIONS + 1))


def test_every_value_is_read_as_it_was_written(path):
    values = np.array([[np.inf, -0.0], [5e-324, 1 / 3], [1e300, -7.0]])
    X = np.eye(3, 5, dtype=bool)

    class Odd(WeighedBits):
        def _evaluate(self, X, out, *args, **kwargs):
            out["F"] = values[X.argmax(axis=1)]

    class Silent(WeighedBits):
        def _evaluate(self, X, out, *args, **kwargs):
            raise AssertionError("what is known was evaluated again")

    for problem in (Odd(5), Silent(5)):
        F = Memo(path).eval(problem, Population.new("X", X)).get("F")
        assert F.tobytes() == values.tobytes()


def test_a_torn_last_line_is_cut_off(path, nsga2, written):
    undisturbed = searched(path, nsga2)
    content = b"".join(written)
    last = len(content) - len(written[-1])
    for end in (1, len(written[0]) - 1, len(written[0]), last + 1, last + 40, len(content) - 1):
        path.write_bytes(content[:end])
        assert_same_result(searched(path, nsga2), undisturbed)
        assert len(path.read_bytes().splitlines()) == len(written)
    path.write_bytes(content[:last] + bytes(4096))  # as a power cut may leave it
    assert_same_result(searched(path, nsga2), undisturbed)


def test_every_flipped_bit_before_the_last_line_is_refused_with_its_place(path, nsga2, written):
    rng = np.random.default_rng(0)
    begins = np.cumsum([0, *map(len, written)])
    for number in (1, 2, len(written) - 2):
        for position in rng.integers(begins[number], begins[number + 1] - 1, 25):
            content = bytearray(b"".join(written))
            content[position] ^= 1 << rng.integers(8)
            path.write_bytes(content)
            with pytest.raises(ValueError, match=r"record \d+ of memo .*run.memo is damaged; cut the file off at byte"):
                searched(path, nsga2)
            assert path.read_bytes() == content


def test_a_record_of_another_memo_is_refused(path, nsga2, written):
    other = path.with_name("other")
    searched(other, nsga2, configuration={})
    path.write_bytes(b"".join(written[:2]) + other.read_bytes().splitlines(keepends=True)[2])
    with pytest.raises(ValueError, match=r"record 2 of memo .* is damaged"):
        searched(path, nsga2)


def test_records_that_are_lost_or_moved_cost_their_evaluation_alone(path, nsga2, written):
    undisturbed = searched(path, nsga2)
    path.write_bytes(b"".join([*written[:3], *written[:5:-1]]))
    assert_same_result(searched(path, nsga2, problem := Counting()), undisturbed)
    assert problem.calls == 4  # three records, and the front


FORGED = ["[]", "[0, 1]", '[0, {"00": 1}]', '[0, {"zz": [1, 2]}]', '[0, {"00": [1, 2, 3]}]', '["x", {"00": [1, 2]}]']


@pytest.mark.parametrize("body", [*FORGED, "[" * 100_000, '[0, {"00": [1, "y"]}]'])
def test_a_record_without_values_is_refused(path, nsga2, body):
    memo = Memo(path)
    search(WeighedBits(), nsga2, 1, seed=3, memo=memo)
    with path.open("ab") as file:
        file.write(memo._with_check(body.encode()))
    with pytest.raises(ValueError, match=r"record 2 of memo .* is damaged"):
        searched(path, nsga2, configuration={})


def test_a_forged_front_is_refused(path, nsga2):
    interrupted(path, nsga2)
    memo = Memo(path)
    lines = path.read_bytes().splitlines(keepends=True)
    search(WeighedBits(), nsga2, 1, seed=3, memo=memo)  # takes the key
    seconds, values = json.loads(lines[-1].rpartition(b" ")[0])
    values[next(iter(values))] = [1.0, 0.0]
    lines[-1] = memo._with_check(json.dumps([seconds, values]).encode())
    path.write_bytes(b"".join(lines))
    with pytest.raises(ValueError, match=r"wrong values: measured again, the member of the front with \[1.0, 0.0\]"):
        search(WeighedBits(), nsga2, GENERATIONS, seed=3, memo=Memo(path))


def test_another_problem_is_noticed(path, nsga2):
    class Other(WeighedBits):
        def _evaluate(self, X, out, *args, **kwargs):
            super()._evaluate(X, out)
            out["F"][:, 1] += 1e-6

    interrupted(path, nsga2)
    with pytest.raises(ValueError, match=r"holds wrong values: .*; remove the memo to start again"):
        search(Other(), nsga2, GENERATIONS, seed=3, memo=Memo(path))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (dict(seed=4), "seed of the search is 3 there and 4 here"),
        (dict(problem=WeighedBits(61)), "variables is 60 there and 61 here"),
        (dict(algorithm=ALGORITHMS["SPEA2"]()), "algorithm class is 'NSGA2' there and 'SPEA2' here"),
        (dict(configuration={"problem": "toy", "seed": 4, "grid": [1, 2]}), "seed is 3 there and 4 here; resume"),
        (dict(configuration={"problem": "toy", "fold": 1}), "fold is 'missing' there and 1 here, grid is"),
    ],
)
def test_another_search_is_refused_by_name(settings, sentence, path, nsga2, written):
    with pytest.raises(ValueError, match=f"belongs to another configuration: .*{sentence}"):
        searched(**dict(path=path, algorithm=nsga2) | settings)
    assert path.read_bytes() == b"".join(written)


def test_a_seed_that_was_drawn_stands_in_the_memo(path, nsga2):
    drawn = searched(path, nsga2, seed=None)
    assert_same_result(searched(path, nsga2, seed=drawn.algorithm.seed), drawn)
    with pytest.raises(ValueError, match=f"seed of the search is {drawn.algorithm.seed} there"):
        searched(path, nsga2, seed=None)


@pytest.mark.parametrize("key", ["moerank", "pymoo", "numpy", "python"])
def test_other_versions_are_refused(key, path, nsga2, written):
    header = json.loads(written[0])
    header["versions"][key] = "0.0"
    path.write_bytes(json.dumps(header).encode() + b"\n" + b"".join(written[1:]))
    with pytest.raises(ValueError, match=rf"other versions: {key} is '0.0' there and .* here; .* remove it"):
        searched(path, nsga2)


OTHER_FILES = {
    "no json": b"no json\n",
    "list": b"[1, 2]\n",
    "pickle": b"\x80\x05\xff\n",
    "no newline": b"precious",
    "no configuration": b'{"format": "moerank memo 2", "versions": {}}\n',
    "wrong types": b'{"format": "moerank memo 2", "versions": [], "configuration": 3}\n',
    "other format": b'{"format": "other", "versions": {}, "configuration": {}}\n',
    "nested": b"[" * 200_000,
    "long number": b'{"format": ' + b"9" * 100_000 + b"}\n",
}


@pytest.mark.parametrize("content", OTHER_FILES.values(), ids=OTHER_FILES)
def test_other_files_are_refused_and_stay_as_they_are(content, path, nsga2):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a memo of this version of moerank"):
        searched(path, nsga2)
    assert path.read_bytes() == content


def test_what_is_no_file_is_refused_without_waiting(path, nsga2):
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a file"):
        searched(path, nsga2)


def test_a_full_disk_is_named_and_what_was_written_stays(small_disk, nsga2):
    disk = small_disk("size=8k")
    path = disk.folder / "run.memo"
    with pytest.raises(OSError, match=r"cannot write .*run.memo: No space left on device; make room"):
        searched(path, nsga2)
    disk.remount("size=1m")
    resumed = searched(path, nsga2, problem := Counting())
    assert_same_result(resumed, search(WeighedBits(), nsga2, GENERATIONS, seed=3))
    assert problem.calls < GENERATIONS


def test_who_removes_a_memo_gets_no_record_of_its_writer(path, nsga2):
    memo, problem = Memo(path, CONFIGURATION), Counting()
    nsga2.setup(problem, ("n_gen", 6), seed=3, evaluator=memo)
    nsga2.next()
    path.unlink()
    nsga2.next()
    assert not path.exists()
    other = Finished(path, {"another": "search"}, resume=False)
    other["first"] = 1
    nsga2.next()
    assert dict(Finished(path, {"another": "search"}, resume=True)) == {"first": 1}


def test_a_copy_of_a_memo_writes_to_the_same_file(path):
    memo = Finished(path, CONFIGURATION, resume=False)
    memo["first"] = 1
    for number, copied in enumerate((copy.deepcopy(memo), pickle.loads(pickle.dumps(memo)))):
        copied[f"copy {number}"] = 2
    assert dict(Finished(path, CONFIGURATION, resume=True)) == {"first": 1, "copy 0": 2, "copy 1": 2}


def test_nothing_in_the_package_can_read_a_pickle_but_the_cache_of_kernels():
    found = []
    for path in Path(moerank.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [entry.name for entry in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call):
                allowed = [word.value for word in node.keywords if word.arg == "allow_pickle"]
                names = ["allow_pickle"] if any(not isinstance(v, ast.Constant) or v.value for v in allowed) else []
            else:
                continue
            readers = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "allow_pickle"}
            found += [(path.name, name) for name in names if name.partition(".")[0] in readers]
    assert found == [("compiled.py", "pickle")]


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
