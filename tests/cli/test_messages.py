"""What users can mend is one sentence on standard error."""

import os
import subprocess
import sys

from moerank.cli.messages import notice


def test_a_compiler_that_is_switched_off_is_told_in_one_sentence(tiny_problem_file, tmp_path):
    words = [sys.executable, "-m", "moerank", "run", str(tiny_problem_file), "--out", str(tmp_path)]
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
