"""What CONTRIBUTING names exists, and its recipe of a ranker passes the checks of the house in a copy."""

import os
import re
import shutil
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path

from helpers.pages import blocks

PROJECT = Path(__file__).resolve().parents[1]
TEXT = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPE = re.compile(r"This\s+is\s+`([^`]+)`")


@cache
def names_of_code():
    """The names in the code of the package and of the tests, those of files, and those in the blocks of the page."""
    names = set()
    files = [path for folder in ("moerank", "tests") for path in (PROJECT / folder).rglob("*.py")]
    for path in set(files) - {Path(__file__)}:
        names |= {*path.relative_to(PROJECT).with_suffix("").parts}
        with tokenize.open(path) as file:
            tokens = tokenize.generate_tokens(file.readline)
            kinds = (tokenize.NAME, tokenize.STRING)  # of a word, such as "MOERANK_DATA"
            names |= {token.string.strip('"') for token in tokens if token.type in kinds}
    for block in blocks(TEXT):
        names |= set(re.findall(r"\w+", block.text))
    return names


def unknown(sentences, names=None):
    """Return what stands in backticks and is neither a path of the project, nor made by a recipe, nor a name."""
    recipes = set(RECIPE.findall(sentences))
    tests = {f"tests/{path.split('/')[1]}/test_{Path(path).name}" for path in recipes}
    missing = []
    for quoted in re.findall(r"`([^`]+)`", sentences):
        path = quoted.removesuffix("/")
        if "/" in path and re.fullmatch(r"[\w./]+", path) and "NAME" not in path:
            if not ((PROJECT / path).exists() or path in recipes | tests):
                missing.append(quoted)
        elif (PROJECT / path).exists():
            continue
        else:
            code = re.sub(r'"[^"]*"|\w*(NAME|SOURCE)\w*(\.py)?', "", quoted)
            missing += [word for word in re.findall(r"[^\W\d]\w+", code) if word not in names_of_code()]
    return missing


def sentences_of(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def test_what_its_sentences_name_exists():
    assert unknown(sentences_of(TEXT)) == []


def test_names_that_do_not_exist_are_noticed():
    wrong = "`Reader` has `columns_that_never_were`, see `moerank/nothing.py`, `moerank/solvers.py` and `pytest --one`."
    assert unknown(wrong) == ["columns_that_never_were", "moerank/nothing.py"]


def block_behind(sentence, text=TEXT):
    """Return the first block of code behind a sentence."""
    return blocks(text[text.index(sentence) :])[0].text


def test_its_ranker_passes_the_checks_of_the_house(tmp_path):
    for name in ("moerank", "tests", "plots", "docs"):
        ignored = shutil.ignore_patterns("__pycache__", "*.png", "*.svg", "_build")
        shutil.copytree(PROJECT / name, tmp_path / name, ignore=ignored)
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    ranker = "This is `moerank/rankers/mean_difference.py`"
    (tmp_path / "moerank/rankers/mean_difference.py").write_text(block_behind(ranker), encoding="utf-8")
    stub, table = tmp_path / "moerank/rankers/__init__.pyi", tmp_path / "moerank/solvers.py"
    line = block_behind("A line in `moerank/rankers/__init__.pyi`")
    neighbour = "from .population import AnyRanker"
    stub.write_text(stub.read_text(encoding="utf-8").replace(neighbour, line + neighbour, 1), encoding="utf-8")
    row = block_behind("A row in `moerank/solvers.py` makes it").strip().replace("SOURCE", "CAO")
    neighbour = '    _ranker("listnet"'
    rows = table.read_text(encoding="utf-8").replace(neighbour, f"    {row},\n{neighbour}", 1)
    table.write_text(rows, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    # The tests that are left out start processes; the weight is that of the package without the ranker.
    house = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/test_house.py"]
    house += ["-k", "not load and not without_statistics and not weight"]
    for arguments, end in (
        (house, r"\d+ passed"),
        (["-c", "import moerank; print(moerank.make_solver('mean-difference'))"], r"MeanDifference\(\)"),
    ):
        command = [sys.executable, *arguments]
        process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert process.returncode == 0, process.stdout + process.stderr
        assert re.search(end, process.stdout), process.stdout
