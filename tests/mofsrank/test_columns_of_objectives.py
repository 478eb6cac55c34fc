"""Every objective means the same columns, whichever the search leaves out and in whatever order they come."""

import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.optimize import minimize

from moerank.data import FeatureCosts, RankingData, load_planted_fold
from moerank.metrics import NDCG
from moerank.mofsrank import FeatureSelection, MOFSRank
from moerank.mofsrank.objectives import OBJECTIVES, Objective
from moerank.rankers import RankRLS
from moerank.runs.problem import make_problem
from moerank.runs.run_fold import run_fold
from moerank.runs.solver import GivenSolver

NAMES = ("a", "b", "c", "d", "e", "f")
GROUPS = {"a": "text", "b": "text", "c": "text"}
ONLINE = ("b", "d", "f")
FEW = {"population": 12, "generations": 3}


class AtQueryTime(Objective):
    """The recipe of docs/recipes/methods.md."""

    title = "Features at query time"

    def __init__(self, name, online):
        self.name = name
        self.online = online

    def values(self, candidates):
        return candidates.uses(self.online).sum(axis=1)

    def bounds(self, data, n_var):
        return 0, len(self.online)


class ByMask(AtQueryTime):
    """The same by the columns of the mask."""

    def values(self, candidates):
        return candidates.feature_mask[:, list(self.online)].sum(axis=1)


class Size(Objective):
    """The sum of a number of the table of costs, with a bound for each feature of the table."""

    name, title = "size", "Size, bytes"

    def values(self, candidates):
        return candidates.sums("size")

    def bounds(self, data, n_var):
        return 0, sum(size_of(name) for name in data.feature_names)


def size_of(name):
    return 2.0 ** NAMES.index(name)


def objectives_of(names):
    """All objectives of feature strings: those of the package, and one of a user's by names, columns and mask."""
    columns = [names.index(name) for name in ONLINE]
    own = AtQueryTime("named", ONLINE), AtQueryTime("numbered", columns), ByMask("masked", columns), Size()
    return (*(name for name in OBJECTIVES if name != "pairs"), *own)


def fold_of(names, flat=()):
    """A fold with these columns, in this order; those of `flat` are constant."""
    columns = [NAMES.index(name) for name in names]
    numbers = {number: list(map(size_of, names)) for number in ("size", "latency")}
    own, groups = [1.0 + column for column in columns], list(map(GROUPS.get, names))
    prices = FeatureCosts.of(own, groups, {"text": 8.0}, numbers)
    fold = load_planted_fold(1, n_queries=24, n_documents=8, n_relevant=3, n_redundant=2, n_noise=1)
    tables = [np.where(np.isin(names, flat), 1.0, part.X[:, columns]) for part in fold]
    return tuple(RankingData(X, part.y, part.qid, names, costs=prices) for X, part in zip(tables, fold, strict=True))


def solver_of(names, limits=None):
    return MOFSRank(
        RankRLS(),
        NDCG(5),
        objectives=objectives_of(names),
        instance_selection=False,
        feature_selection=FEW,
        ensemble=False,
        tune=False,
        limits=limits,
        random_state=0,
    )


def members_of_search(fold, limits):
    front = solver_of(fold[0].feature_names, limits).fit(fold[0]).front_
    table = front.drop(columns=["validation", "features"]).rename(columns={"n_features": "features"})
    return front["features"], table.to_dict("records")


def members_of_stage(fold, limits):
    stage = FeatureSelection(
        fold[0], RankRLS(), NDCG(5), objectives=objectives_of(fold[0].feature_names), limits=limits
    )
    found = minimize(stage, NSGA2(12, **stage.operators()), ("n_gen", 3), seed=1)
    names = [objective.name for objective in stage.objectives]
    return [np.flatnonzero(mask) for mask in found.X], [dict(zip(names, row, strict=True)) for row in found.F]


def members_of_study(fold, limits):
    settings = {f"features.{name}": value for name, value in limits.items()}
    problem = make_problem("mine", fold, {"metric.name": "NDCG@5", "backend.tune": False, **settings})
    solver = GivenSolver.of(lambda problem, seed: solver_of(fold[0].feature_names), "own", own_goal=True)
    result = run_fold(problem, 1, solver, baselines=False)
    columns = [fold[0].feature_names.index(name) for name in result.feature_names]
    features = [np.take(columns, member.features) for member in result.front]
    return features, [member.objectives for member in result.front]


CASES = {
    "permuted": (NAMES[::-1], (), {}),
    "excluded": (NAMES, (), {"exclude": ("a",)}),
    "constant in queries": (NAMES, ("a",), {}),
    "all at once": (("d", "a", "c", "b", "f", "e"), ("a",), {"exclude": ("c",)}),
}


@pytest.mark.parametrize("members_of", [members_of_search, members_of_stage, members_of_study])
@pytest.mark.parametrize("case", CASES)
def test_objectives_mean_the_columns_of_the_users_table(case, members_of):
    names, flat, limits = CASES[case]
    excluded = limits.get("exclude", ())
    left_out = {*flat, *excluded}
    reference = fold_of([name for name in NAMES if name not in left_out])[0]
    stage = FeatureSelection(reference, RankRLS(), NDCG(5), objectives=objectives_of(reference.feature_names))
    rows, values = members_of(fold_of(names, flat), limits)
    assert len(rows) > 1
    for columns, measured in zip(rows, values, strict=True):
        used = [names[column] for column in columns if names[column] not in left_out]
        if not used:  # a column that is constant in queries, alone
            continue
        mask = np.isin(reference.feature_names, used)
        expected = dict(zip(measured, stage.evaluate(mask[None])[0], strict=True))
        if members_of is members_of_stage:  # it may select constant columns
            expected |= {name: measured[name] for name in ("features", "cost", "size")}
        assert measured == pytest.approx(expected, abs=1e-9), used


@pytest.mark.parametrize("members_of", [members_of_search, members_of_stage])
def test_bounds_are_those_of_the_users_table(members_of, monkeypatch):
    tables = []
    monkeypatch.setattr(Size, "bounds", lambda self, data, n_var: (tables.append(data.feature_names), (0, 63))[1])
    members_of(fold_of(NAMES, flat=("a",)), {"exclude": ("c",)})
    assert len(tables) > 0 and set(tables) == {NAMES}
    with pytest.raises(ValueError, match="number must be one of 'size', 'latency', 'cost', not 'lateness'"):
        fold_of(NAMES)[0].costs.sums(np.ones((1, 6), bool), "lateness")
