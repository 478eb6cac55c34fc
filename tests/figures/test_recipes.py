import re
import runpy
import struct
import sys
from pathlib import Path

import pytest

PLOTS = Path(__file__).resolve().parents[2] / "plots"
RECIPES = ("ablation", "accuracy", "attainment", "cost", "frequency", "fronts", "hypervolume", "ranks")


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_draws_its_figure_of_each_problem(name, tiny_study, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(tiny_study.out), "--out", str(tmp_path)])
    monkeypatch.syspath_prepend(PLOTS)
    runpy.run_path(str(PLOTS / f"{name}.py"), run_name="__main__")
    (path,) = tmp_path.iterdir()
    assert path.name == ("ranks.png" if name == "ranks" else f"{name}-tiny.png")
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">I", content[16:20])[0] == 680  # a column of a paper at 200 dpi


def test_every_figure_of_a_study_has_a_recipe_of_a_few_lines():
    from moerank.cli.report import FIGURES

    assert set(RECIPES) == set(FIGURES)
    for name in RECIPES:
        assert 10 <= len((PLOTS / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= 40


def test_every_figure_that_is_kept_is_explained():
    told = (PLOTS / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w-]+\.png)`", told))
    assert named == {path.name for path in PLOTS.glob("*.png")}
    assert all(f"python plots/{name}.py" in told for name in RECIPES)
