import re
import runpy
import struct
import sys
import warnings
from pathlib import Path

import pytest

from moerank.figures import FIGURES

PLOTS = Path(__file__).resolve().parents[2] / "plots"
SHOWN = [name for name in FIGURES if any(PLOTS.glob(f"{name}[.-]*"))]
"""The figures that the gallery has a recipe or a picture of."""


@pytest.mark.parametrize("name", SHOWN)
def test_a_recipe_draws_its_figure_of_each_problem(name, tiny_study, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(tiny_study.out), "--out", str(tmp_path)])
    monkeypatch.syspath_prepend(PLOTS)
    runpy.run_path(str(PLOTS / f"{name}.py"), run_name="__main__")
    (path,) = tmp_path.iterdir()
    assert path.name == f"{name}-tiny.png"
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">I", content[16:20])[0] == 680  # a column of a paper at 200 dpi


@pytest.mark.parametrize("recipe", ["density", "fsmrank_descent"])
def test_the_recipe_of_a_paper_draws_any_problem_without_a_warning(recipe, tiny_problem_file, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [f"{recipe}.py", str(tiny_problem_file), "--out", str(tmp_path)])
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(PLOTS / f"{recipe}.py"), run_name="__main__")
    (path,) = tmp_path.iterdir()
    assert path.name.startswith(recipe.replace("_", "-"))


def test_the_title_of_kernel_accuracy_speaks_of_all_draws_of_each_ranker():
    title = runpy.run_path(str(PLOTS / "kernel_accuracy.py"))["title"]
    comparisons = {
        "RankNystrom": {"NDCG@1": ([0.35, 0.36], 0.34), "NDCG@3": ([0.41, 0.40], 0.42), "MAP": ([0.44, 0.43], 0.45)},
        "RankFourier": {"NDCG@1": ([0.33, 0.36], 0.34), "NDCG@3": ([0.41, 0.43], 0.42), "MAP": ([0.44, 0.46], 0.45)},
    }
    assert title(500, comparisons) == (
        "With 500 components, all draws against the linear ranker: RankNystrom above in NDCG@1 and below in NDCG@3, "
        "MAP; RankFourier on both sides in each metric"
    )


def test_every_figure_that_is_files_is_explained():
    text = (PLOTS / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w-]+\.png)`", text))
    files = {path.name for path in PLOTS.glob("*.png")}
    assert named == files
    assert len(SHOWN) >= 9
    drawn = [name for name in FIGURES if any(path == f"{name}.png" or path.startswith(f"{name}-") for path in files)]
    assert len(drawn) >= 8
    assert all(f"python plots/{name}.py" in text for name in drawn)
