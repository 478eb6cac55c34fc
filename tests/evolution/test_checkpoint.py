import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.toy_search import ALGORITHMS, WeighedBits, directions, operators
from pymoo.algorithms.moo.moead import MOEAD
from pymoo.algorithms.moo.nsga2 import NSGA2

from moerank.evolution import Archive, Checkpoint, search

GENERATIONS = 12


class Interrupted(WeighedBits):
    """Raises in the middle of the given call, when the offspring have been made and the random state has moved on."""

    def __init__(self, call, error=KeyboardInterrupt):
        super().__init__()
        self.calls_left = call
        self.error = error

    def _evaluate(self, X, out, *args, **kwargs):
        self.calls_left -= 1
        if self.calls_left == 0:
            raise self.error
        super()._evaluate(X, out)


class Slow(WeighedBits):
    """Leaves the time to be killed in."""

    def _evaluate(self, X, out, *args, **kwargs):
        time.sleep(0.02)
        super()._evaluate(X, out)


class Cached(WeighedBits):
    """Remembers how often it was asked, as a stage remembers objective values."""

    def __init__(self):
        super().__init__()
        self.asked = 0

    def _evaluate(self, X, out, *args, **kwargs):
        self.asked += 1
        super()._evaluate(X, out)

    def cache_state(self):
        return {"asked": self.asked}

    def restore_cache(self, state):
        self.asked = state["asked"]


def assert_same_result(here, there):
    np.testing.assert_array_equal(here.pop.get("X"), there.pop.get("X"))
    np.testing.assert_array_equal(here.pop.get("F"), there.pop.get("F"))
    np.testing.assert_array_equal(here.archive.X, there.archive.X)
    np.testing.assert_array_equal(here.archive.F, there.archive.F)
    for one, other in zip(here.history, there.history, strict=True):
        assert (one.n_gen, one.n_eval) == (other.n_gen, other.n_eval)
        np.testing.assert_array_equal(one.front, other.front)


@pytest.fixture
def nsga2():
    return ALGORITHMS["NSGA2"]()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.checkpoint"


def interrupted(checkpoint, call, algorithm, error=KeyboardInterrupt, generations=GENERATIONS):
    with pytest.raises(error):
        search(Interrupted(call, error), algorithm, generations, seed=3, checkpoint=checkpoint)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_interrupted_again_and_again_the_search_ends_with_the_same_bits(name, path):
    undisturbed = search(WeighedBits(), ALGORITHMS[name](), GENERATIONS, seed=3)
    finished = 0
    for more in (3, 0, 1, 2, 5):
        checkpoint = Checkpoint(path, {"seed": 3}, every=1e9)
        interrupted(checkpoint, more + 1, ALGORITHMS[name]())
        finished += more
        assert len(checkpoint.load(WeighedBits())[2]) == finished
    resumed = search(WeighedBits(), ALGORITHMS[name](), GENERATIONS, seed=3, checkpoint=Checkpoint(path, {"seed": 3}))
    assert_same_result(resumed, undisturbed)


@pytest.mark.parametrize("generation", range(1, 7))
def test_a_kill_after_any_generation_loses_nothing(generation, path, nsga2):
    class Killed(BaseException):
        pass

    def kill(fraction, n_gen, n_eval):
        if n_gen == generation:
            # What stands on the disk at this moment is all that a killed process leaves.
            path.with_name("left").write_bytes(path.read_bytes())
            raise Killed

    with pytest.raises(Killed):
        search(WeighedBits(), nsga2, 7, seed=3, checkpoint=Checkpoint(path, {}, every=0.0), progress=kill)
    resumed = search(WeighedBits(), nsga2, 7, seed=3, checkpoint=Checkpoint(path.with_name("left"), {}))
    assert_same_result(resumed, search(WeighedBits(), nsga2, 7, seed=3))


def test_a_killed_process_is_resumed_to_the_same_bits(path, nsga2):
    program = (
        "from helpers.toy_search import ALGORITHMS\n"
        "from test_checkpoint import Checkpoint, Slow, search\n"
        f"search(Slow(), ALGORITHMS['NSGA2'](), 60, seed=3, checkpoint=Checkpoint({str(path)!r}, {{}}, every=0.0))\n"
    )
    here = Path(__file__).parent
    folders = os.pathsep.join([str(here), str(here.parent), str(here.parents[1]), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": folders})
    deadline = time.monotonic() + 60
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    finished = len(Checkpoint(path, {}).load(WeighedBits())[2])
    assert 0 < finished < 60
    resumed = search(WeighedBits(), nsga2, 60, seed=3, checkpoint=Checkpoint(path, {}))
    assert_same_result(resumed, search(WeighedBits(), nsga2, 60, seed=3))


def test_a_search_that_has_ended_is_not_done_again(path, nsga2):
    first = search(WeighedBits(), nsga2, GENERATIONS, seed=3, checkpoint=Checkpoint(path, {}))
    again = search(Interrupted(1), nsga2, GENERATIONS, seed=3, checkpoint=Checkpoint(path, {}))
    assert_same_result(again, first)


@pytest.mark.parametrize("moment", [(Archive, "add"), (Checkpoint, "record")])
def test_an_interrupt_between_two_steps_of_the_loop_leaves_a_whole_generation(moment, path, nsga2, monkeypatch):
    owner, name = moment
    original, calls = getattr(owner, name), []

    def interrupting(self, *arguments):
        calls.append(name)
        if len(calls) == 5 and owner is Checkpoint:
            # The generation stands in the history already.
            raise KeyboardInterrupt
        original(self, *arguments)
        if len(calls) == 5:
            # The generation stands in the archive already.
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(owner, name, interrupting)
        search(WeighedBits(), nsga2, GENERATIONS, seed=3, checkpoint=Checkpoint(path, {}, every=1e9))
    _, archive, history = Checkpoint(path, {}).load(WeighedBits())
    assert len(history) == 4
    np.testing.assert_array_equal(archive.F, history[-1].front)
    resumed = search(WeighedBits(), nsga2, GENERATIONS, seed=3, checkpoint=Checkpoint(path, {}))
    assert_same_result(resumed, search(WeighedBits(), nsga2, GENERATIONS, seed=3))


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_any_exception_leaves_the_last_finished_generation(error, path, nsga2):
    interrupted(Checkpoint(path, {}, every=1e9), 5, nsga2, error)
    assert len(Checkpoint(path, {}).load(WeighedBits())[2]) == 4


def test_an_interrupt_before_the_first_generation_leaves_no_file(path, nsga2):
    interrupted(Checkpoint(path, {}), 1, nsga2)
    assert not Checkpoint(path, {}).exists()


def test_an_interrupted_write_leaves_the_old_state(path, nsga2, monkeypatch):
    checkpoint = Checkpoint(path, {})
    interrupted(checkpoint, 4, nsga2)
    before = path.read_bytes()

    def fail(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        search(WeighedBits(), nsga2, GENERATIONS, seed=3, checkpoint=Checkpoint(path, {}))
    assert path.read_bytes() == before


def test_writes_keep_their_distance(path, nsga2, monkeypatch):
    written = []
    monkeypatch.setattr(Checkpoint, "save", lambda self: written.append(self._pending))
    search(WeighedBits(), nsga2, GENERATIONS, seed=3, checkpoint=Checkpoint(path, {}, every=1e9))
    assert len(written) == 1
    search(WeighedBits(), nsga2, GENERATIONS, seed=3, checkpoint=Checkpoint(path, {}, every=0.0))
    assert len(written) == 1 + GENERATIONS + 1


def test_a_pause_does_not_count(path, nsga2, monkeypatch):
    interrupted(Checkpoint(path, {}), 4, nsga2, generations=("time", 1000.0))
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + 5000)
    algorithm, _, history = Checkpoint(path, {}).load(WeighedBits())
    # Between the recording and now there was next to no work, but 5000 seconds by the clock.
    assert history[-1].elapsed <= time.time() - algorithm.start_time < history[-1].elapsed + 60
    assert algorithm.has_next()


def test_problem_and_unpacked_rows_stay_outside(path):
    problem = WeighedBits(n_var=20_000)
    problem.ballast = np.random.default_rng(0).random(500_000)
    result = search(problem, NSGA2(16, **operators()), 3, seed=1, checkpoint=Checkpoint(path, {}))
    packed_rows = (2 * 16 + len(result.archive)) * 20_000 / 8
    assert path.stat().st_size < packed_rows + 100_000
    twin = WeighedBits(n_var=20_000)
    algorithm, _, _ = Checkpoint(path, {}).load(twin)
    assert algorithm.problem is twin
    assert problem.ballast is not None
    assert len(pickle.dumps(problem)) > 4_000_000


def test_rows_keep_their_identity_and_own_their_memory(path, nsga2):
    interrupted(Checkpoint(path, {}), 6, nsga2)
    algorithm, _, _ = Checkpoint(path, {}).load(WeighedBits())
    survivors = [individual for individual in algorithm.off if any(individual is other for other in algorithm.pop)]
    assert survivors
    assert all(individual.X.flags.owndata and individual.X.flags.writeable for individual in algorithm.pop)


def test_the_cache_of_the_problem_is_carried_along(path, nsga2):
    search(Cached(), nsga2, GENERATIONS, seed=3, checkpoint=Checkpoint(path, {}))
    problem = Cached()
    Checkpoint(path, {}).load(problem)
    assert problem.asked == GENERATIONS


CONFIGURATION = {"problem": "toy", "seed": 3, "grid": (1, 2)}


def test_the_same_configuration_is_accepted(path, nsga2):
    interrupted(Checkpoint(path, CONFIGURATION), 4, nsga2)
    assert len(Checkpoint(path, dict(CONFIGURATION)).load(WeighedBits())[2]) == 3


def test_another_configuration_is_refused_by_its_keys(path, nsga2):
    interrupted(Checkpoint(path, CONFIGURATION), 4, nsga2)
    other = Checkpoint(path, {"problem": "toy", "seed": 4, "fold": 1, "grid": [1, 2]})
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"fold is 'missing' there and 1 here, seed is 3 there and 4 here; resume"):
        search(WeighedBits(), nsga2, GENERATIONS, seed=3, checkpoint=other)
    assert path.read_bytes() == before


def test_a_configuration_that_cannot_be_written_is_refused_at_once(path):
    with pytest.raises(TypeError, match="not JSON serializable"):
        Checkpoint(path, {"seed": np.int64(3)})


@pytest.mark.parametrize("key", ["checkpoint format", "moerank", "pymoo", "numpy", "python"])
def test_other_versions_are_refused_before_anything_is_unpickled(key, path, nsga2):
    interrupted(Checkpoint(path, {}), 4, nsga2)
    header = json.loads(path.read_bytes().split(b"\n")[0])
    header["versions"][key] = "0.0"
    path.write_bytes(json.dumps(header).encode() + b"\nno pickle")
    with pytest.raises(ValueError, match=rf"other versions: {key} is '0.0' there and .* here; .* remove it"):
        Checkpoint(path, {}).load(WeighedBits())


@pytest.mark.parametrize("content", [b"", b"no json\n", b"[1, 2]\n", b'{"versions": {}}\n', b"\x80\x05\xff\n"])
def test_other_files_are_refused(content, path):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a checkpoint of moerank"):
        Checkpoint(path, {}).load(WeighedBits())


def test_remove_leaves_nothing(path, nsga2):
    checkpoint = Checkpoint(path, {})
    checkpoint.remove()
    interrupted(checkpoint, 4, nsga2)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    path.with_name(f".{path.name}.{0:016x}.tmp").write_bytes(b"half written")
    checkpoint.remove()
    checkpoint.save()
    assert list(path.parent.iterdir()) == []


def test_moead_is_refused_at_once(path):
    made = operators()
    del made["eliminate_duplicates"]
    with pytest.raises(ValueError, match=r"MOEAD keeps its state in a Python generator.*use ParallelMOEAD"):
        search(WeighedBits(), MOEAD(directions(), **made), 3, seed=1, checkpoint=Checkpoint(path, {}))
