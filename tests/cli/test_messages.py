"""What users can mend is one sentence on standard error."""

import os
import subprocess
import sys

import pytest

from moerank.cli.messages import notice


@pytest.mark.parametrize("command", [["run"], ["study", "--solvers", "rankrls", "--folds", "1"]])
def test_a_compiler_that_is_switched_off_is_told_in_one_sentence(tiny_problem_file, tmp_path, command):
    words = [sys.executable, "-m", "moerank", command[0], str(tiny_problem_file), *command[1:], "--out", str(tmp_path)]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        "error: the kernels of moerank need numba's compiler, which NUMBA_DISABLE_JIT switches off: unset that "
        "variable\n"
    )


def test_notices_are_broken_between_words_on_a_terminal_and_commands_never(monkeypatch, capsys):
    text = "Interrupted. Nothing that was finished is lost; continue with:\n  moerank run digits --out a-long-name"
    monkeypatch.setenv("COLUMNS", "30")
    notice(text)
    assert capsys.readouterr().err == f"{text}\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    notice(text)
    *lines, last = capsys.readouterr().err.splitlines()
    assert last == text.splitlines()[1]
    assert " ".join(lines) == text.splitlines()[0]
    assert max(map(len, lines)) <= 30
