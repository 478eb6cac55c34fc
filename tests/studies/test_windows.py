"""Studies whose processes see Windows, as far as it can be simulated: workers, held files, the command line."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from helpers.study_files import contents
from helpers.windows_view import environment

from moerank.studies.study import Study

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Windows is simulated on Linux")

SOLVERS = ("fsmrank", "ranksvm-primal", "mofsrank")

SCRIPT = """
import sys
import moerank
from moerank import systems
assert systems.fcntl is None and systems.sys.platform == "win32"
moerank.Study([sys.argv[1]], sys.argv[3].split(","), sys.argv[2], folds=[1, 2], seeds=2).run(workers=2)
"""
"""Its `__main__` is not guarded: a worker must not run it again."""


@pytest.fixture(scope="module")
def undisturbed(tiny_problem_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    Study([tiny_problem_file], SOLVERS, folder, folds=[1, 2], seeds=2).run()
    return contents(folder)


def without_claims(files):
    return {name: text for name, text in files.items() if name != ".claims"}


def test_a_study_with_two_workers_ends_with_the_same_results(tiny_problem_file, undisturbed, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(tiny_problem_file), "study", ",".join(SOLVERS)]
    result = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert without_claims(contents(tmp_path / "study")) == without_claims(undisturbed)
    assert len(list(tmp_path.glob("seen-*"))) == 3  # this one and two workers


def test_the_command_line_runs_workers_and_writes_to_a_file_of_another_encoding(
    tiny_problem_file, undisturbed, tmp_path
):
    words = ["study", str(tiny_problem_file), "--solvers", ",".join(SOLVERS), "--folds", "1,2", "--seeds", "2"]
    command = [sys.executable, "-m", "moerank", *words, "--workers", "2", "--out", "study", "--json"]
    seen = environment(tmp_path, PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
    result = subprocess.run(command, cwd=tmp_path, env=seen, capture_output=True)
    assert result.returncode == 0, result.stderr
    assert len(json.loads(result.stdout.decode("cp1252"))["cells"]) == 8
    assert without_claims(contents(tmp_path / "study")) == without_claims(undisturbed)


DESCRIBED = """
import sys
from moerank.cli import main
for option in ([], ["--json"]):
    sys.argv[1:] = ["data", "describe", "α𝛼.txt", *option]
    try:
        main()
    except SystemExit as end:
        assert not end.code
    print("then")
"""


@pytest.mark.parametrize(("encoding", "shown"), [("cp1252", r"\u03b1\ud835\udefc"), ("shift_jis", r"α\ud835\udefc")])
def test_signs_that_an_encoding_lacks_stop_no_output(encoding, shown, tmp_path):
    (tmp_path / "α𝛼.txt").write_text("2 qid:1 1:0.5 2:1\n0 qid:1 1:0.25 2:0\n")
    seen = environment(tmp_path, PYTHONIOENCODING=encoding)
    result = subprocess.run([sys.executable, "-c", DESCRIBED], cwd=tmp_path, env=seen, capture_output=True)
    assert result.returncode == 0, result.stderr
    table, listed, _ = result.stdout.decode(encoding).split("then")
    assert shown in table
    assert [part["name"] for part in json.loads(listed)] == ["α𝛼.txt"]


def test_workers_end_with_a_parent_that_was_killed(tmp_path):
    code = "import sys, time; from moerank.systems import leave_interrupts_to as l; l(int(sys.argv[1])); time.sleep(60)"
    parent = subprocess.Popen(["sleep", "60"])
    worker = subprocess.Popen([sys.executable, "-c", code, str(parent.pid)], env=environment(tmp_path))
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("seen-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert worker.poll() is None
    parent.kill()
    parent.wait()
    assert worker.wait(timeout=20) == 1
    # and where the parent had ended before the worker looked
    worker = subprocess.Popen([sys.executable, "-c", code, str(parent.pid)], env=environment(tmp_path))
    try:
        assert worker.wait(timeout=20) == 1
    finally:
        worker.send_signal(signal.SIGKILL)
