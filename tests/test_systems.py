"""Locks, folders and files as the systems have them; other systems are simulated in a process of their own."""

import errno
import os
import pkgutil
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

import moerank
from moerank import systems
from moerank.systems import (
    command_line,
    file_name,
    is_private,
    lock,
    n_processors,
    open_regular,
    remove,
    replace,
    unlock,
)

TESTS = Path(__file__).parent
HOLD = """
import os, sys
from moerank.systems import lock
descriptor = os.open(sys.argv[1], os.O_RDWR)
print(lock(descriptor, int(sys.argv[2])), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def opened(tmp_path):
    path = tmp_path / "locks"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    yield path, descriptor
    os.close(descriptor)


def holder(path, place):
    command = [sys.executable, "-c", HOLD, str(path), str(place)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "True\n"
    return process


def test_a_byte_that_another_process_holds_cannot_be_locked_until_that_ends(opened):
    path, descriptor = opened
    process = holder(path, 1 << 60)
    assert not lock(descriptor, 1 << 60)
    assert lock(descriptor, 17)
    process.kill()
    process.wait()
    assert lock(descriptor, 1 << 60)
    unlock(descriptor, 1 << 60)
    unlock(descriptor, 5)  # which was not locked


def test_waiting_for_a_lock_ends_with_it(opened):
    path, descriptor = opened
    process = holder(path, 3)
    begin = time.monotonic()
    subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -9 {process.pid}"])
    assert lock(descriptor, 3, wait=True)
    assert time.monotonic() - begin > 0.3
    process.wait()


def test_a_file_system_without_locks_is_an_error(opened):
    with pytest.raises(OSError) as caught:
        lock(10**6, 0)
    assert caught.value.errno == errno.EBADF


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no modes of files")
def test_a_private_folder(tmp_path):
    for mode, private in ((0o700, True), (0o755, True), (0o775, False), (0o757, False), (0o777, False)):
        tmp_path.chmod(mode)
        assert is_private(tmp_path) is private
    tmp_path.chmod(0o700)
    (tmp_path / "file").touch(mode=0o600)
    (tmp_path / "link").symlink_to(tmp_path)
    assert not is_private(tmp_path / "file")
    assert not is_private(tmp_path / "link")
    with pytest.raises(FileNotFoundError):
        is_private(tmp_path / "nothing")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_only_regular_files_are_opened(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"content\r\n\x1a")
    with open_regular(path) as file:
        assert file.read() == b"content\r\n\x1a"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(path)
    for name in ("pipe", "link", "", "nothing"):
        with pytest.raises(OSError):
            open_regular(tmp_path / name)
    with pytest.raises(OSError):
        open_regular(Path("/dev/null"))


def test_processors():
    assert 1 <= n_processors() <= os.cpu_count()


class Held:
    """A call that is refused some times, as Windows does while another process has a file open."""

    def __init__(self, call, times):
        self.call, self.left = call, times

    def __call__(self, *arguments, **keywords):
        if self.left:
            self.left -= 1
            raise PermissionError(errno.EACCES, "the process cannot access the file")
        return self.call(*arguments, **keywords)


@pytest.mark.parametrize("action", ["replace", "remove"])
def test_a_file_that_another_process_holds_is_tried_again_where_that_is_no_fault_of_rights(
    tmp_path, monkeypatch, action
):
    source, target = tmp_path / "source", tmp_path / "target"

    def act(times):
        source.write_text("new")
        target.write_text("old")
        if action == "replace":
            monkeypatch.setattr(systems.os, "replace", Held(REPLACE, times))
            replace(source, target)
            assert not source.exists()
            assert target.read_text() == "new"
        else:
            held = Held(UNLINK, times)
            monkeypatch.setattr(Path, "unlink", lambda path, missing_ok: held(path, missing_ok=missing_ok))
            remove(target)
            assert not target.exists()

    act(0)
    with pytest.raises(PermissionError):
        act(1)
    assert target.read_text() == "old"
    monkeypatch.setattr(systems, "fcntl", None)
    act(3)
    monkeypatch.setattr(systems, "PATIENCE", 0.2)
    with pytest.raises(PermissionError):
        act(10**6)


def test_a_file_that_another_process_replaces_is_opened_again_where_that_is_no_fault_of_rights(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"content")
    monkeypatch.setattr(systems, "fcntl", None)
    monkeypatch.setattr(systems.os, "open", Held(OPEN, 3))
    with open_regular(tmp_path / "file") as file:
        assert file.read() == b"content"
    begin = time.monotonic()
    with pytest.raises(OSError, match="is a folder, not a file"):
        open_regular(tmp_path)
    assert time.monotonic() - begin < 1


REPLACE, UNLINK, OPEN = os.replace, Path.unlink, os.open


def test_names_of_files(monkeypatch):
    label = 'digits-mofsrank[ensemble={"generations":5}]'
    assert file_name(label) == label
    monkeypatch.setattr(systems, "fcntl", None)
    assert file_name(label) == "digits-mofsrank[ensemble={_generations__5}]"
    assert file_name("a/b\\c\n. ") == "a_b_c_"


@pytest.mark.parametrize("text", ["con", "Aux", "NUL.json", "com1.tar.gz", "lpt9", "COM²", "prn .txt", "nul "])
def test_a_device_is_no_name_of_a_file(text, monkeypatch):
    assert file_name(text) == text
    monkeypatch.setattr(systems, "fcntl", None)
    stem, _, ending = text.partition(".")
    assert file_name(text) == f"{stem.strip()}_" + f".{ending}" * bool(ending)
    for other in ("console", "com", "com0", "com10", "a.con", "_aux"):
        assert file_name(other) == other


def test_a_command_is_quoted_as_the_system_reads_it(monkeypatch):
    words = ["moerank", "study", "a b", 'fsmrank[x={"y":1}]', "C:\\a\\", ""]
    assert shlex.split(command_line(words)) == words
    monkeypatch.setattr(systems, "fcntl", None)
    # by the rules of Microsoft's C library, under which quotes are doubled by a backslash
    assert command_line(words) == 'moerank study "a b" fsmrank[x={\\"y\\":1}] C:\\a\\ ""'


def test_what_is_replaced_is_synced_with_its_folder(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    (tmp_path / "source").touch()
    replace(tmp_path / "source", tmp_path / "target")
    assert synced == [tmp_path.stat().st_ino]


def on_another_system(code, cwd):
    """Run code where what Windows lacks is taken away."""
    start = f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
    start += "from helpers.another_system import simulate\nheld = simulate()\n"
    return subprocess.run([sys.executable, "-c", start + code], cwd=cwd, capture_output=True, text=True)


def test_every_module_can_be_imported_on_another_system(tmp_path):
    modules = sorted(module.name for module in pkgutil.walk_packages(moerank.__path__, "moerank."))
    modules = [name for name in modules if not name.endswith("__main__")]
    assert len(modules) > 150
    result = on_another_system(f"import importlib\nfor name in {modules}: importlib.import_module(name)", tmp_path)
    assert result.stderr == ""
    assert result.returncode == 0


def test_a_run_and_a_study_end_well_on_another_system(tiny_problem_file, tmp_path):
    code = f"""
from moerank.cli.app import main
def call(*arguments):
    sys.argv = ["moerank", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
tiny = {str(tiny_problem_file)!r}
call("run", tiny, "--workers", "1", "--out", "run")
call("study", tiny, "--solvers", "rankrls,mofsrank", "--folds", "1", "--workers", "1", "--out", "study")
assert not held, held
call("report", "study")
call("plot", "fronts", "study")
import moerank
assert len(moerank.Study([tiny], ["rankrls"], "study2", folds=[1]).run().frame()) == 1
"""
    result = on_another_system(code, tmp_path)
    assert result.returncode == 0, result.stderr
    assert {"result.json", "front.csv", "model.json", "front.png"} <= {
        path.name for path in (tmp_path / "run").iterdir()
    }
    assert len(list((tmp_path / "study" / "cells").glob("*.json"))) == 2
    assert (tmp_path / "study" / "report.html").is_file()


def test_claims_of_another_process_hold_on_another_system(tmp_path):
    code = """
import os
from moerank.systems import lock, unlock
first = os.open("claims", os.O_RDWR | os.O_CREAT)
assert lock(first, 1 << 60) and len(held) == 1
second = os.open("claims", os.O_RDWR)
assert not lock(second, 1 << 60)
assert lock(second, 3)
unlock(first, 1 << 60)
unlock(first, 1 << 60)
assert lock(second, 1 << 60, wait=True)
"""
    result = on_another_system(code, tmp_path)
    assert result.returncode == 0, result.stderr


def test_a_worker_leaves_interrupts_to_its_parent_where_signals_cannot_be_blocked(tmp_path):
    code = """
import os, signal, time
from moerank.systems import leave_interrupts_to, without_interrupts
os.getppid = lambda: 7
with without_interrupts():
    leave_interrupts_to(7)
os.kill(os.getpid(), signal.SIGINT)
time.sleep(0.1)
os.getppid = lambda: 1  # the parent has ended
time.sleep(10)
"""
    result = on_another_system(code, tmp_path)
    assert (result.returncode, result.stderr) == (1, "")  # ended with its parent, and not by the interrupt
