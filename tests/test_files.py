"""Files that are replaced at one stroke and read without trust."""

import os
import pkgutil
import socket
import subprocess
import sys
import time

import pytest

import moerank
from moerank.files import is_private, read_json, read_text, read_toml, replace_file


def test_a_text_is_read_as_it_stands_without_a_byte_order_mark(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("ä\r\n".encode())
    (tmp_path / "link").symlink_to(path)
    assert read_text(path, 4) == read_text(tmp_path / "link", 4) == "ä\r\n"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(read_text(path, 100)) == {"a": 1}


def test_what_is_no_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "knot").symlink_to(tmp_path / "knot")
    begin = time.monotonic()
    for reason in ("fifo is a pipe", "folder", "zero is a pipe or a device", "knot"):
        with pytest.raises(OSError, match=reason):
            read_text(tmp_path / reason.partition(" ")[0], 10)
    with socket.socket(socket.AF_UNIX) as server, pytest.raises(OSError, match="No such device or address"):
        os.chdir(tmp_path)  # names of sockets are short
        server.bind("socket")
        read_text(tmp_path / "socket", 10)
    with pytest.raises(FileNotFoundError):
        read_text(tmp_path / "none", 10)
    assert time.monotonic() - begin < 2


def test_texts_that_are_too_large_or_not_utf8_are_refused_by_name(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"x" * (2**20 + 1))
    assert len(read_text(path, 2**20 + 1)) == 2**20 + 1
    with pytest.raises(ValueError, match=r"text: larger than 1 MiB"):
        read_text(path, 2**20)
    path.write_bytes(b"abc\xff")
    with pytest.raises(ValueError, match=r"text: not UTF-8 text: .* at byte 3"):
        read_text(path, 10)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": NaN}', "NaN is not a finite number"),
        ('{"a": [0.1, 1e999]}', "1e999 is not a finite number"),
        ('{"b": {"a": 1, "c": 2, "a": 3}}', "the key 'a' is given twice"),
        ("9" * 5000, "digits"),
        (r'["\ud800"]', "surrogates not allowed"),
        ("", "Expecting value"),
        ("[" * 100_000, "recursion"),
        ('{"a":' * 100_000, "recursion"),
    ],
)
def test_json_that_is_none_is_a_value_error(text, reason):
    with pytest.raises(ValueError, match=reason):
        read_json(text)


def test_toml_of_thousands_of_brackets_is_refused_by_name(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text("a = " + "[" * 5000)
    with pytest.raises(ValueError, match=r"deep\.toml: not a TOML file: .*recursion"):
        read_toml(path)


def test_a_link_is_replaced_and_what_it_led_to_stays(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "report.csv").symlink_to(victim)
    (tmp_path / "report.csv.tmp").symlink_to(victim)  # where a name that can be foreseen would be written
    replace_file(tmp_path / "report.csv", b"new")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "report.csv").is_symlink()
    assert (tmp_path / "report.csv").read_text() == "new"
    # A temporary name that is taken is never written through.
    monkeypatch.setattr("secrets.token_hex", lambda n: "0" * 2 * n)
    (tmp_path / f".result.json.{'0' * 16}.tmp").symlink_to(victim)
    with pytest.raises(OSError, match=r"cannot write .*result\.json: File exists"):
        replace_file(tmp_path / "result.json", b"new")
    assert victim.read_text() == "precious"


def test_a_fifo_in_the_place_of_a_file_is_replaced_and_a_folder_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    replace_file(tmp_path / "fifo", b"new")
    assert read_text(tmp_path / "fifo", 10) == "new"
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"cannot write .*folder: Is a directory"):
        replace_file(tmp_path / "folder", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "folder"]


def test_a_private_folder(tmp_path, monkeypatch):
    for mode, private in ((0o700, True), (0o755, True), (0o775, False), (0o757, False), (0o777, False)):
        tmp_path.chmod(mode)
        assert is_private(tmp_path) is private
    tmp_path.chmod(0o700)
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert is_private(tmp_path) is (owner == 0)  # root may write everywhere
    monkeypatch.undo()
    (tmp_path / "file").touch(mode=0o600)
    (tmp_path / "link").symlink_to(tmp_path)
    assert not is_private(tmp_path / "file")
    assert not is_private(tmp_path / "link")
    with pytest.raises(FileNotFoundError):
        is_private(tmp_path / "nothing")
    monkeypatch.delattr(os, "geteuid")  # as on Windows, where modes say nothing
    assert is_private(tmp_path)
    assert not is_private(tmp_path / "file")


def test_what_is_replaced_is_synced_with_its_folder(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    replace_file(tmp_path / "target", b"new")
    assert synced == [(tmp_path / "target").stat().st_ino, tmp_path.stat().st_ino]


def test_a_run_needs_nothing_that_windows_lacks(tiny_problem_file, tmp_path):
    """Other libraries need fcntl and signal masks here, so these are missing only while moerank is imported."""
    names = (module.name for module in pkgutil.walk_packages(moerank.__path__, "moerank."))
    modules = [name for name in names if not name.endswith("__main__")]
    assert len(modules) > 100
    libraries = "filelock, lightgbm, matplotlib.figure, numba, pandas, pymoo.optimize, rich.progress, sklearn, typer"
    run = ["run", str(tiny_problem_file), "--solver", "rankrls", "--out", "run", "--quiet"]
    code = f"import importlib, os, signal, sys\nimport {libraries}\nsys.modules['fcntl'] = None\n"
    code += "mask = signal.pthread_sigmask\ndel signal.pthread_sigmask, os.geteuid, os.O_NONBLOCK\n"
    code += f"for name in {modules}: importlib.import_module(name)\n"
    code += f"del sys.modules['fcntl']\nsignal.pthread_sigmask = mask\nsys.argv[1:] = {run}\n"
    code += "importlib.import_module('moerank.cli').main()"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "run" / "result.json").exists()
