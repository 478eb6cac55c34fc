"""The public types, as a user's mypy sees them in an installed package."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import moerank

FOLDER = Path(__file__).parent / "typing"
SCRIPT, MISTAKES = FOLDER / "user_script.py", FOLDER / "user_mistakes.py"


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """What ``mypy --strict`` finds in both scripts: file name, line and code, beside the whole text."""
    folder = tmp_path_factory.mktemp("typing")
    (folder / "mypy.ini").write_text("[mypy]\nstrict = True\n")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-error-summary", SCRIPT, MISTAKES]
    # What is on PYTHONPATH counts as installed, so that the package's types are taken from it if it has py.typed.
    environment = {**os.environ, "PYTHONPATH": str(Path(moerank.__file__).parents[1])}
    environment.pop("MYPYPATH", None)
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert not result.stderr
    found = re.findall(r"^(.*?):(\d+): error: .*\[([\w-]+)\]$", result.stdout, re.MULTILINE)
    assert len(found) == result.stdout.count("error:"), result.stdout
    return [(Path(path).name, int(line), code) for path, line, code in found], result.stdout


def test_a_users_script_has_no_error(errors):
    found, text = errors
    assert {name for name, _, _ in found} == {MISTAKES.name}, text


def test_mistakes_are_found_where_they_are(errors):
    found, text = errors
    marked = []
    for number, line in enumerate(MISTAKES.read_text().splitlines(), start=1):
        _, mark, codes = line.partition("# error: ")
        marked += [(number, code) for code in codes.split()] if mark else []
    assert sorted((line, code) for name, line, code in found if name == MISTAKES.name) == sorted(marked), text


def test_the_users_script_runs():
    spec = importlib.util.spec_from_file_location("user_script", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main()
