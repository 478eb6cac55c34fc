"""The structure of the package, as far as import-linter cannot see it."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from helpers.windows_view import check_name

import moerank

PROJECT = Path(__file__).resolve().parents[1]
FILES = sorted((PROJECT / "moerank").rglob("*.py"))
LAYERS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0]
ORDER = [{part.strip(" ()") for part in layer.split("|")} for layer in LAYERS["layers"]]
LATER = {layer.strip("()") for layer in LAYERS["layers"] if layer.startswith("(")}
"""Rooms that have a layer, and nothing in them yet."""


def test_every_file_says_in_its_first_line_what_it_is_for():
    for path in [*FILES, *(PROJECT / "plots").glob("*.py"), *(PROJECT / "tests" / "helpers").glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(text)), path
        assert text.startswith(('"""', 'r"""')), path
        assert len(text.splitlines()[0]) > 25, path


def test_no_file_is_over_800_lines():
    long = {
        str(path.relative_to(PROJECT)): n
        for folder in ("moerank", "tests", "plots", "docs")
        for path in (PROJECT / folder).rglob("*.py")
        if (n := len(path.read_text(encoding="utf-8").splitlines())) > 800
    }
    assert long == {}


def texts_in_the_encoding_of_the_country(source):
    """The lines that open a text without saying its encoding, which is not UTF-8 on Windows."""
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call) or any(keyword.arg in ("encoding", None) for keyword in call.keywords):
            continue
        called = ast.unparse(call.func)
        given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
        texts = [value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)]
        opens = called in ("open", "os.fdopen", "io.open", "io.TextIOWrapper") or (
            called.endswith(".open") and called != "os.open" and (texts or not call.args)
        )
        if called.endswith((".read_text", ".write_text")) or (opens and not any("b" in text for text in texts)):
            yield call.lineno


def test_every_text_is_opened_with_its_encoding():
    for line in ("open(p)", "p.open()", "p.open('a')", "p.read_text()", "p.write_text(t)", "os.fdopen(d, mode='w')"):
        assert list(texts_in_the_encoding_of_the_country(line)) == [1]
    for line in ("open(p, 'rb')", "os.open(p, f)", "p.read_text(encoding='utf-8')", "journal.open(about, 2)"):
        assert list(texts_in_the_encoding_of_the_country(line)) == []
    for path in [*FILES, *(PROJECT / "plots").rglob("*.py"), *(PROJECT / "docs").rglob("*.py")]:
        assert list(texts_in_the_encoding_of_the_country(path.read_text(encoding="utf-8"))) == [], path


def test_every_file_can_lie_on_windows():
    for folder in ("moerank", "tests", "problems", "plots"):
        there = [path.relative_to(PROJECT) for path in (PROJECT / folder).rglob("*") if "__pycache__" not in path.parts]
        assert len({str(path).lower() for path in there}) == len(there)
        for path in there:
            check_name(path)


def test_every_room_has_a_layer():
    rooms = {
        path.stem
        for path in (PROJECT / "moerank").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert rooms - {"__init__"} | LATER == set.union(*ORDER)


def test_every_public_name_is_loaded_when_it_is_used():
    assert len(moerank.__all__) == len(set(moerank.__all__)) > 40
    assert set(dir(moerank)) >= set(moerank.__all__) - {"__version__"}
    for name in moerank.__all__:
        assert getattr(moerank, name) is not None
    for name in ("RankSVM", "GAS", "NDCG", "RankingData", "MOFSRank", "Study"):
        assert getattr(moerank, name).__module__.startswith("moerank.")
    with pytest.raises(AttributeError, match="RankSVN"):
        moerank.RankSVN  # noqa: B018


def test_importing_the_package_loads_nothing_that_takes_time():
    code = "import sys, moerank; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "sklearn", "pandas", "numba", "pymoo", "matplotlib", "pydantic"} & set(loaded)


def test_rooms_are_mirrored_by_tests():
    tested = {path.name for path in (PROJECT / "tests").iterdir() if path.is_dir()}
    rooms = {path.name for path in (PROJECT / "moerank").iterdir() if (path / "__init__.py").is_file()}
    assert rooms <= tested
