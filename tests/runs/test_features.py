import pytest

from moerank.runs.problem import load_problem
from moerank.runs.run_fold import run_fold

FEATURES = """
[search]
objectives = ["cost", "error"]
[features]
table = "costs.csv"
exclude = {exclude}
{limits}
"""


@pytest.fixture
def priced(tiny_problem_file, tiny_problem, tmp_path):
    """Write a problem file with a table of costs beside it, and read it."""

    def write(exclude="[]", costs=None, limits=""):
        path = tmp_path / "priced.toml"
        path.write_text(tiny_problem_file.read_text() + FEATURES.format(exclude=exclude, limits=limits))
        names = tiny_problem.load_fold(1)[0].feature_names
        rows = costs or [f"{name},{number + 1}" for number, name in enumerate(names)]
        (tmp_path / "costs.csv").write_text("\n".join(["name,cost,group"[: 9 + 6 * (rows[-1].count(",") > 1)], *rows]))
        return load_problem(path), names

    return write


def test_features_that_are_left_out_are_nowhere(priced):
    problem, names = priced(exclude='[0, "noise 2"]')
    left = [name for name in names[1:] if name != "noise 2"]
    parts = problem.load_fold(1)
    assert all(list(part.feature_names) == left for part in parts)
    result = run_fold(problem, 1)
    assert result.feature_names == left
    assert {len(baseline.features) for baseline in result.baselines} <= set(range(1, len(left) + 1))
    costs = dict(zip(names, range(1, len(names) + 1), strict=True))
    for member in result.front:
        assert member.objectives["cost"] == sum(costs[name] for name in result.names(member.features))
    assert type(result).from_json(result.to_json()) == result
    assert result.configuration["features"]["exclude"] == [0, "noise 2"]


LIMITS = """
include = [2, "noise 1"]
max_features = 4
max_cost = 21
"""


@pytest.mark.filterwarnings("ignore:no objective of FeatureSelection is the number of ones")  # but the cost is
@pytest.mark.parametrize("solver", ["mofsrank", "mofsrank-staircase"])
def test_every_member_of_the_front_keeps_the_limits_of_the_file(priced, solver):
    problem, names = priced(exclude="[0]", limits=LIMITS)
    costs = dict(zip(names, range(1, len(names) + 1), strict=True))
    result = run_fold(problem, 1, solver, baselines=False)
    for member in result.front:
        selected = result.names(member.features)
        assert {names[2], "noise 1"} <= set(selected)
        assert len(selected) <= 4
        assert sum(costs[name] for name in selected) == member.objectives["cost"] <= 21
    features = result.configuration["features"]
    assert {name: value for name, value in features.items() if value is not None} == {
        "table": "costs.csv", "exclude": [0], "include": [2, "noise 1"], "max_features": 4, "max_cost": 21.0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("exclude", "limits", "message"),
    [
        ('["nobody"]', "", "exclude: unknown feature 'nobody'"),
        ("[-1]", "", "exclude: there is no column -1"),
    ],
)
def test_what_cannot_be_left_out_is_refused(priced, exclude, limits, message):
    problem, _ = priced(exclude, limits=limits)
    with pytest.raises(ValueError, match=rf"\[features\] {message}"):
        problem.load_fold(1)


def test_a_missing_or_wrong_table_is_named(priced, tmp_path):
    problem, _ = priced(costs=["noise 1,free"])
    with pytest.raises(ValueError, match=r"costs.csv: .* has a cost that is not a number from 0 on"):
        problem.load_fold(1)
    (tmp_path / "costs.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"no costs.csv in .*; put it beside the problem file"):
        problem.load_fold(1)
    with pytest.raises(ValueError, match="give table, too"):
        load_problem("planted", {"features.other": 5.0})
