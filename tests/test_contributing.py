"""What CONTRIBUTING names exists, and its recipes pass the checks of the package in a copy."""

import os
import re
import shutil
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path

import pytest
from helpers.pages import blocks

PROJECT = Path(__file__).resolve().parents[1]
TEXT = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPE = re.compile(r"This\s+is\s+`([^`]+)`")


@cache
def names_of_code():
    """The names in the code of the package and of the tests, those of files, and those in the blocks of the page."""
    names = set()
    files = [path for folder in ("moerank", "tests", "docs") for path in (PROJECT / folder).rglob("*.py")]
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


OBJECTIVES = "moerank/mofsrank/objectives.py"
CHANGES = (
    (
        "moerank/solvers.py",
        '_row("gas", "filter"',
        '_row("largest-variance", "filter", CAO, "selectors.variance:LargestVariance"),',
    ),
    ("moerank/solvers.py", '_ranker("listnet"', '_ranker("mean-difference", CAO, "mean_difference:MeanDifference"),'),
    ("moerank/solvers.py", '_ranker("listnet"', '_ranker("quadratic", CAO, "quadratic:Quadratic", backend=True),'),
    (
        "moerank/solvers.py",
        '_mofs_rank("mofsrank-daea"',
        '_mofs_rank("mofsrank-local", CAO, fixed={"algorithm": "local"}),',
    ),
    ("moerank/evolution/algorithms.py", '"sparseea": SparseEA,', '"local": LocalSearch,'),
    (
        "moerank/evolution/algorithms.py",
        "from moerank.evolution.memo",
        "from moerank.evolution.local import LocalSearch",
    ),
    (OBJECTIVES, "OBJECTIVES: dict", block_behind(f"This class in `{OBJECTIVES}`") + "\n"),
    (OBJECTIVES, "Features(), Pairs()", "Latency(),"),
    ("moerank/data/read/table.py", '".parquet": _PARQUET,', '".h5": Reader.of(read_hdf5),'),
    ("moerank/data/read/table.py", "from moerank.files", "from moerank.data.read.hdf5 import read_hdf5"),
    ("moerank/figures/__init__.py", '"shapes": RunFigure(', '"sizes": RunFigure("sizes_of_run:sizes_figure"),'),
    ("moerank/exports/formats.py", '"python": Format(', '"sql": Format("ranker.sql", "moerank.exports.sql:sql"),'),
)
"""What the recipes add to files of the package, and the text before which it stands."""


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A function that runs Python in a copy of the project with all recipes."""
    copy = tmp_path_factory.mktemp("extended")
    ignored = shutil.ignore_patterns("__pycache__", "*.png", "*.svg", "_build")
    for name in ("moerank", "tests", "plots", "docs", ".mypy_cache"):
        if (PROJECT / name).exists():
            shutil.copytree(PROJECT / name, copy / name, ignore=ignored)
    shutil.copy(PROJECT / "pyproject.toml", copy)
    for recipe in RECIPE.finditer(TEXT):
        (copy / recipe[1]).write_text(block_behind(recipe[0]), encoding="utf-8")
    for name, neighbour, added in CHANGES:
        text = (copy / name).read_text(encoding="utf-8")
        assert text.count(neighbour) == 1, (name, neighbour)
        (copy / name).write_text(text.replace(neighbour, f"{added}\n{neighbour}"), encoding="utf-8")

    def run(*arguments):
        command = [sys.executable, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        process = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    run("-m", "ruff", "format", "-q", *{name for name, *_ in CHANGES})
    return run


def test_its_recipes_are_as_good_as_the_package(extended):
    extended("-m", "ruff", "check", "moerank")
    extended("-m", "ruff", "format", "--check", "moerank")
    # Stubs of libraries for a newer Python have syntax that is an error in the oldest one, for which types are checked.
    if sys.version_info[:2] == (3, 11):
        extended("-m", "mypy", "moerank")
    # The tests that are left out start processes; the weight is that of the package without the recipes.
    tests = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    left_out = ["-k", "not load and not without_statistics and not weight"]
    extended(*tests, "tests/test_house.py", *left_out)
    extended(*tests, *RECIPE.findall(TEXT))


USED = """
import sqlite3
from pathlib import Path
import h5py
import numpy as np
import moerank as mr
from moerank.data import fit_scaling
from moerank.figures import RUN_FIGURES
from moerank.mofsrank.objectives import read_objectives
from moerank.solvers import make_backend

print(mr.make_solver("mean-difference"), mr.make_solver("largest-variance"), make_backend("quadratic"))
print(mr.make_solver("mofsrank-local").algorithm, *read_objectives(["latency"]), "sizes" in RUN_FIGURES)
with h5py.File("shop.h5", "w") as file:
    file["label"], file["query"] = [1, 0, 2, 0], [7, 7, 8, 8]
    file["price"], file["order"] = [0.5, np.nan, 0.9, 0.1], [1.0, -2.0, 4.0, 8.0]
shop = mr.load_table("shop.h5", label="label", query="query", missing=0.25)
ranker = mr.RankRLS().fit(fit_scaling(shop, "standard").apply(shop))
mr.export(ranker, "sql")
database = sqlite3.connect(":memory:")
database.execute('CREATE TABLE documents ("price" REAL, "order" REAL)')
database.executemany("INSERT INTO documents VALUES (?, ?)", [(0.5, 1.0), (None, -2.0), (0.9, 4.0), (0.1, 8.0)])
scores = database.execute(f"SELECT {Path('ranker.sql').read_text()} FROM documents").fetchall()
np.testing.assert_allclose(np.ravel(scores), ranker.predict(shop.X), rtol=1e-12)
"""


def test_its_recipes_are_found_by_name(extended):
    names = ["MeanDifference()", "LargestVariance()", "Quadratic()", "local", "Latency()", "True"]
    assert extended("-c", USED).split() == names
