import io
import re

import pytest

from moerank.cli.progress import shown_reading
from moerank.data import load_letor
from moerank.data.read.files import report_reading


class Clock:
    """Goes on by so many seconds with every look."""

    def __init__(self, step):
        self.step, self.now = step, 0.0

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("MOERANK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("moerank.data.read.cache.SETTLED", 0.0)
    path = tmp_path / "train.txt"
    path.write_bytes(b"1 qid:1 1:0.5\n0 qid:1 1:1\n")
    return path


def test_a_file_that_takes_long_gets_a_line(path, capsys):
    with shown_reading(Clock(1.0)):
        load_letor(path)
    said = capsys.readouterr().err
    assert re.fullmatch(r"read train\.txt \(\d\.0 s\)\n", said)
    with shown_reading(Clock(1.0)):
        load_letor(path)  # from the cache
    assert capsys.readouterr().err == ""


def test_nothing_is_said_of_others_and_where_nobody_listens(path, capsys):
    with shown_reading(Clock(0.1)):
        load_letor(path)
    load_letor(path, cache=False)
    report_reading(path, 0.5)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar(path, monkeypatch):
    shown = io.StringIO()
    shown.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with shown_reading(Clock(1.5)):
        for share in (0.0, 0.25, 0.5):
            report_reading(path, share)
    assert "reading train.txt" in shown.getvalue()


def test_a_file_that_is_refused_leaves_no_bar(path, capsys):
    path.write_bytes(b"x\n")
    with pytest.raises(ValueError, match="line 1"), shown_reading(Clock(1.5)):
        load_letor(path)
    assert capsys.readouterr().err == ""
