"""Studies on full and read-only disks, and studies that are interrupted: what stays, what is said, what goes on."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from helpers.small_disk import small_disk  # noqa: F401
from helpers.study_files import contents
from pydantic import field_serializer

import moerank
from moerank.runs.result import Result, Stored
from moerank.studies.study import Study

SOLVERS = "fsmrank,ranksvm-primal,mofsrank"
PAGE = 4096
"""A tmpfs gives room by pages."""

FULL = "No space left on device; make room, or choose another folder with --out"


def moerank_command(*words):
    """The command line in a process group of its own, as a terminal starts it."""
    environment = {**os.environ, "PYTHONPATH": str(Path(moerank.__file__).parents[1])}
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    command = [sys.executable, "-m", "moerank", *map(str, words)]
    return subprocess.Popen(command, text=True, start_new_session=True, env=environment, **pipes)


def sentence(err):
    """The one line that says what is wrong, the others being cells."""
    (line,) = [line for line in err.splitlines() if not line[0].isdigit()]
    return line


def keys(folder):
    return {path.stem for path in (folder / "cells").glob("*.json")}


def temporary(folder):
    return [path for path in folder.rglob("*") if "tmp" in path.name]


def group(leader):
    """The processes of a session that still run."""
    listed = subprocess.run(["ps", "-s", str(leader), "-o", "stat=,args="], capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if not line.startswith("Z")]


def none_left(leader):
    """Whether all processes of a session end within seconds."""
    deadline = time.monotonic() + 15
    while group(leader) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not group(leader)


def words(problem, solvers, folder, *more):
    """The words of a study in a folder."""
    return ("study", problem, "--solvers", solvers, "--folds", "1,2", "--seeds", 2, "--out", folder, *more)


@pytest.fixture
def asked(tiny_problem_file):
    return partial(words, tiny_problem_file, SOLVERS)


def test_a_study_goes_on_where_the_disk_was_full(small_disk, command, asked, undisturbed):  # noqa: F811
    disk = small_disk(f"size={9 * PAGE}")
    study = disk.folder / "study"
    outcome = command(*asked(study))
    assert outcome.exit_code == 2
    assert sentence(outcome.stderr).startswith(f"error: cannot write {study}/cells/")
    assert sentence(outcome.stderr).endswith(FULL)
    there = keys(study)
    assert 0 < len(there) < 8
    for key in there:
        Result.from_json((study / "cells" / f"{key}.json").read_text())
    assert not temporary(study)
    assert not list((study / "failures").iterdir())
    before = {path: path.stat().st_mtime_ns for path in study.glob("cells/*")}
    disk.remount("size=10m")
    assert command(*asked(study)).exit_code == 0
    assert contents(study) == contents(undisturbed)
    assert {path: path.stat().st_mtime_ns for path in before} == before


class ThreadPool(ThreadPoolExecutor):
    """In the place of the pool of a worker process, which would import the package first."""

    def __init__(self, max_workers, **_):
        super().__init__(max_workers)

    def shutdown(self, **_):
        super().shutdown()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_cell_that_finds_the_disk_full_is_no_failure(tiny_problem_file, tmp_path, monkeypatch, workers):
    """What a cell writes besides its result lies elsewhere: compiled kernels, temporary files."""
    monkeypatch.setattr("loky.ProcessPoolExecutor", ThreadPool)
    monkeypatch.delattr("signal.pthread_sigmask")  # Windows has none
    study = Study([tiny_problem_file], ["rankrls"], tmp_path / "s")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/cache/kernel.nbi")

    monkeypatch.setattr("moerank.studies.study.run_fold", full)
    with pytest.raises(OSError, match="No space left on device"):
        study.run(workers=workers)
    assert set(study.states().values()) == {"open"}


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told(tiny_problem_file, tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match=r"cannot write .*\.claims/.*: .*; choose another folder with --out"):
        Study([tiny_problem_file], ["rankrls"], tmp_path, folds=[1]).run()


def test_an_interrupt_while_a_result_becomes_text_is_no_failure_of_its_cell():
    class Interrupted(Stored):
        value: int = 1
        serialize = field_serializer("value")(lambda self, value: signal.raise_signal(signal.SIGINT))

    with pytest.raises(KeyboardInterrupt):
        Interrupted().to_json()


def interrupted(asked, folder, workers, number, times, whole_group):
    """Send a signal after it has started two cells; return exit code and standard error."""
    log = folder / "starts.log"
    process = moerank_command(*asked(folder, "--workers", workers))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (log.exists() and len(log.read_text().splitlines()) >= 2):
        time.sleep(0.01)
    time.sleep(0.2)
    for _ in range(times):
        (os.killpg if whole_group else os.kill)(process.pid, number)
        time.sleep(0.03)
    _, err = process.communicate(timeout=60)
    assert none_left(process.pid)
    return process.returncode, err


@pytest.fixture(scope="module")
def slow_problem_file(tiny_problem_file, tmp_path_factory):
    """A problem that is searched in about a quarter of a second: no signal comes after the end of its study."""
    path = tmp_path_factory.mktemp("slow") / "slow.toml"
    path.write_text(tiny_problem_file.read_text().replace("generations = 3", "generations = 60"))
    return path


@pytest.fixture(scope="module")
def slow_undisturbed(slow_problem_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow-undisturbed")
    Study([slow_problem_file], ["mofsrank"], folder, folds=[1, 2], seeds=2).run()
    return folder


@pytest.fixture
def slow(slow_problem_file):
    return partial(words, slow_problem_file, "mofsrank")


@pytest.mark.parametrize(
    ("workers", "number", "times", "whole_group", "code"),
    [
        (2, signal.SIGINT, 3, True, 130),
        (1, signal.SIGTERM, 1, False, 143),
        (2, signal.SIGKILL, 1, False, -9),
    ],
)
def test_a_study_that_is_ended_leaves_no_process_and_goes_on(
    command, slow, slow_undisturbed, tmp_path, workers, number, times, whole_group, code
):
    study = tmp_path / "study"
    returned, err = interrupted(slow, study, workers, number, times, whole_group)
    assert (returned, "Traceback" in err) == (code, False)
    again = slow(study)
    if number != signal.SIGKILL:
        *cells, said, asked = err.splitlines()
        assert all(line[0].isdigit() for line in cells), err
        assert said == "Interrupted. All finished work is saved; continue with:"
        assert not temporary(study)
        assert not list((study / "failures").iterdir())
        program, *again = asked.removesuffix(f" --workers {workers}").split()
        assert (program, len(again)) == ("moerank", len(slow(study)))
    assert command(*again).exit_code == 0
    assert contents(study) == contents(slow_undisturbed)
