"""No room above the rankers knows a backend, and a backend of one's own gets what those of the package have."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import moerank as mr
from moerank.mofsrank import FeatureSelection, InstanceSelection
from moerank.solvers import solvers

PROJECT = Path(__file__).resolve().parents[1]
ROOMS = ("mofsrank", "exports", "runs", "studies", "figures", "reports", "cli")
ENTRIES = [entry for entry in solvers().values() if entry.backend]
NAMES = {entry.name for entry in ENTRIES}
BACKENDS = {entry.kind.__name__ for entry in ENTRIES} | {"LambdaMART", "RankerAdapter", "Trainer"}
BACKENDS |= {"LinearPopulation", "TablePopulation", "FittedPopulation"}


def files_of_rooms():
    for room in ROOMS:
        path = PROJECT / "moerank" / room
        yield from path.rglob("*.py") if path.is_dir() else [path]


def test_no_room_above_the_rankers_asks_for_the_class_or_the_name_of_a_backend():
    places = []
    for path in files_of_rooms():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            asks = isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass", "type")
            asks |= isinstance(node, ast.Compare)
            lists = isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict)
            classes = BACKENDS & set(re.findall(r"\w+", ast.unparse(node)))
            texts = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
            if (asks and classes) or ((asks or lists) and NAMES & texts):
                places.append(f"{path}:{node.lineno}: {ast.unparse(node)}")
    assert places == []


@pytest.fixture(scope="module")
def small_data():
    return mr.load_planted_fold(1, n_queries=8, n_documents=10, n_relevant=3, n_redundant=1, n_noise=1)[0]


@pytest.fixture(scope="module")
def quadratic():
    """The backend of CONTRIBUTING."""
    guide = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [code] = [block for block in re.findall(r"```python\n(.*?)```", guide, re.S) if "class Quadratic" in block]
    scope = {"__name__": "quadratic"}
    exec(code, scope)
    return scope["Quadratic"]


def test_the_backend_of_the_guide_trains_as_the_packages_own(quadratic, small_data):
    own, reference = quadratic(alpha=0.1), mr.RankRLS(alpha=0.1)
    features = np.random.default_rng(0).random((6, small_data.n_features)) < 0.7
    features[:, 0] = True
    widths = {"pair": small_data.n_pairs, "document": small_data.n_documents, "query": small_data.n_queries}
    for unit, width in widths.items():
        masks = np.random.default_rng(1).random((6, width)) < 0.8
        for given in (masks, masks[0]):
            arguments = {"pair_mask": given, "feature_mask": features, "unit": unit}
            expected = reference.fit_population(small_data, **arguments)
            np.testing.assert_allclose(own.fit_population(small_data, **arguments), expected, atol=1e-3)
    strings = FeatureSelection(small_data, reference).starting_strings(6)
    np.testing.assert_array_equal(FeatureSelection(small_data, own).starting_strings(6), strings)


def test_the_backend_of_the_guide_gets_subsets_packed_strings_and_ablations(quadratic, small_data):
    few = {"population": 8, "generations": 2}
    stages = {"instance_selection": few, "feature_selection": few, "ensemble": few}
    assert InstanceSelection(small_data, quadratic()).packs
    for change in ({}, {"instance_selection": False}, {"ensemble": False}, {"adaptive_mutation": False}):
        solver = mr.MOFSRank(quadratic(), random_state=0, **{**stages, **change}).fit(small_data)
        assert len(solver.front_) >= 1
        assert (solver.instance_subsets_ is None) == ("instance_selection" in change)
