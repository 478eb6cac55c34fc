import gc
import os
import signal
from collections import defaultdict
from contextlib import suppress
from contextvars import copy_context
from hashlib import blake2b
from pathlib import Path
from zlib import crc32

import pytest
from filelock import FileLock

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # so that processes of tests need not compile the package again
for library in ("OMP", "OPENBLAS"):  # threads of several workers would wait for each other
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

ALL_TESTS = 2000
"""Fewer tests than this need few of the kernels."""

gc.disable()  # until the first test
signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells take from what they start in the background


def pytest_addoption(parser):
    parser.addoption("--one", action="store_true", help="run each test with one of its parameters")


def pytest_collection_modifyitems(config, items):
    if config.getoption("one"):
        of_test = defaultdict(list)
        for item in items:
            of_test[item.nodeid.partition("[")[0]].append(item)
        items[:] = [each[crc32(test.encode()) % len(each)] for test, each in of_test.items()]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each worker tests that stand together: they share what is compiled, fitted and drawn for them."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None


@pytest.fixture(scope="session", autouse=True)
def what_stays_is_no_garbage(each_kernel_is_compiled_by_one_worker):
    """Leave modules, tests and compilers' objects out of every collection of garbage: they are half a million."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


@pytest.fixture(scope="session")
def each_kernel_is_compiled_by_one_worker(request, tmp_path_factory):
    """Let a worker wait for a kernel that another one compiles: it would take as long to compile it once more.

    Where all tests run, the workers compile the recorded kernels first, so that they need not wait, nor do processes.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    from moerank.kernels.compiled import GROUPS, KernelCache, _compile, missing

    compiled = Dispatcher.compile

    def file_of(*kernel):
        name = blake2b(repr(kernel).encode(), digest_size=8).hexdigest()
        return tmp_path_factory.getbasetemp().parent / f"{name}.kernel"

    def compiled_once(dispatcher, signature):
        if not isinstance(dispatcher._cache, KernelCache):
            return compiled(dispatcher, signature)
        function = dispatcher.py_func
        file = file_of(function.__module__, function.__qualname__, str(signature))
        lock = FileLock(file, is_singleton=True)  # a kernel may compile itself
        with global_compiler_lock, lock:  # so that one thread alone holds locks: a kernel's, then those of its callees
            return compiled(dispatcher, signature)

    Dispatcher.compile = compiled_once
    entries = missing(GROUPS) if request.session.testscollected > ALL_TESTS else []
    for name, types, _ in sorted(entries, key=lambda entry: -entry[2]):
        with suppress(FileExistsError):  # another worker has taken it
            file_of(name, types).touch(exist_ok=False)
            _compile(name, types)


@pytest.fixture
def pymoo_sorts_stably(monkeypatch):
    """Let pymoo's NSGA-II order ties as ours does: the sort that it uses depends on the processor."""
    from pymoo.operators.survival.rank_and_crowding import classes

    def stable_argsort(values, order, method, random_state):
        drawn = random_state.permutation(len(values))
        ascending = drawn[values[drawn].argsort(kind="stable")]
        return ascending[::-1] if order == "descending" else ascending

    monkeypatch.setattr(classes, "randomized_argsort", stable_argsort)


@pytest.fixture(scope="session")
def letor_folder():
    """The folder of real LETOR data, or a skip where it is not there."""
    project = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("MOERANK_DATA", project.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no LETOR data at {folder}; set MOERANK_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def tiny_problem_file(tmp_path_factory):
    """A planted problem that is searched in a fraction of a second."""
    budget = "population = 8\ngenerations = 3\n"
    path = tmp_path_factory.mktemp("problem") / "tiny.toml"
    path.write_text(
        'name = "tiny"\n[data]\nsource = "planted"\nn_queries = 15\nn_documents = 12\nn_noise = 5\n'
        "[comparison]\ntrees = 0\n"
        + "".join(f"[{stage}]\n{budget}" for stage in ("instance_selection", "feature_selection", "ensemble"))
    )
    return path


@pytest.fixture(scope="session")
def tiny_problem(tiny_problem_file):
    from moerank.runs.problem import load_problem

    return load_problem(tiny_problem_file)


@pytest.fixture(scope="session")
def tiny_result(tiny_problem):
    """MOFSRank on the second fold of the tiny problem."""
    from moerank.runs.run_fold import run_fold

    return run_fold(tiny_problem, 2, seed=4)


@pytest.fixture(scope="session")
def tiny_study(tiny_problem_file, tmp_path_factory):
    """Some solvers and an ablation on two folds, those that draw with three seeds."""
    from moerank.studies.study import Study

    folder = tmp_path_factory.mktemp("tiny-study")
    names = ("fsmrank", "ranksvm-primal", "mofsrank", "mofsrank[ensemble=false]", "greedy-rankrls")
    ablate = {"complete": "mofsrank", "without ensemble": "mofsrank[ensemble=false]"}
    return Study([tiny_problem_file], names, folder, folds=[1, 2], seeds=3, ablate=ablate).run()


@pytest.fixture(scope="session")
def results(tiny_study):
    """The results of the tiny study."""
    return tiny_study.results()


@pytest.fixture
def command(tiny_problem_file, tmp_path, monkeypatch):
    """Call the command line in an own folder without data; TINY stands for a problem that is solved at once."""
    from typer.testing import CliRunner

    from moerank.cli.app import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MOERANK_DATA", raising=False)

    def call(*arguments):
        words = [str(tiny_problem_file) if word == "TINY" else str(word) for word in arguments]
        monkeypatch.setattr("sys.argv", ["moerank", *words])
        result = copy_context().run(CliRunner().invoke, app, words)  # one command's --quiet is none of the next's
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.stderr
        return result

    return call


@pytest.fixture
def undrawn(monkeypatch):
    """Figures of a run are empty, others are not laid out, and files of figures have no drawing."""
    from matplotlib.figure import Figure

    def save(figure, file, **options):
        (file.write if hasattr(file, "write") else Path(file).write_bytes)(b"<svg ></svg>")

    monkeypatch.setattr(Figure, "savefig", save)
    monkeypatch.setattr("moerank.figures.RunFigure.draw", lambda figure, result, paper=None: Figure())
    monkeypatch.setattr("matplotlib.layout_engine.ConstrainedLayoutEngine.execute", lambda engine, figure: None)
