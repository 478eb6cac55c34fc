import json
from itertools import combinations

import numpy as np
import pytest
from typer.testing import CliRunner

from moerank.cli.app import app
from moerank.figures import RUN_FIGURES
from moerank.rankers import RankRLS
from moerank.runs.problem import load_problem
from moerank.runs.result import find_result, write_result
from moerank.runs.run_fold import run_fold
from moerank.studies.evidence import certify

SMALL = {
    "data.n_queries": 60,
    "data.n_documents": 8,
    "metric.name": "NDCG@5",
    "comparison.trees": 0,
    "feature_selection.population": 20,
    "feature_selection.generations": 40,
}
ONE_SEARCH = "mofsrank[instance_selection=false,ensemble=false]"


@pytest.fixture(scope="module")
def problem():
    return load_problem("planted", SMALL)


@pytest.fixture(scope="module")
def result(problem):
    return run_fold(problem, solver=ONE_SEARCH)


@pytest.fixture(scope="module")
def certificate(result):
    return certify(result)


def loss_of(train, alpha, features):
    """The loss of RankRLS, from a list of the preference pairs."""
    D = (train.X[train.pairs.better] - train.X[train.pairs.worse])[:, features]
    return 1 - D.mean(axis=0) @ np.linalg.solve(D.T @ D / len(D) + alpha * np.eye(len(features)), D.mean(axis=0))


def test_the_certificate_is_that_of_all_subsets(problem, result, certificate):
    train, vali, _ = problem.load_fold(1)
    assert certificate.alpha == RankRLS().tune(train, vali).alpha
    losses = [min(loss_of(train, certificate.alpha, list(S)) for S in combinations(range(30), k)) for k in (1, 2)]
    np.testing.assert_allclose(certificate.best[:2], losses, rtol=1e-9)
    of_members = [loss_of(train, certificate.alpha, list(member.features)) for member in result.front]
    np.testing.assert_allclose(certificate.losses, of_members, rtol=1e-9)
    sizes = [len(member.features) for member in result.front]
    np.testing.assert_array_equal(certificate.least, np.array(certificate.best)[np.array(sizes) - 1])
    assert certificate.proved == list(range(1, 31))


def test_limits_hold_for_what_the_front_is_compared_with():
    limits = {"features.include": [4], "features.max_features": 3, "features.exclude": [0]}
    certificate = certify(run_fold(load_problem("planted", SMALL | limits), solver=ONE_SEARCH))
    assert certificate.sizes == [1, 2, 3]  # feature 4 with up to two others
    assert all(loss >= least for loss, least in zip(certificate.losses, certificate.least, strict=True))


@pytest.mark.parametrize("by_group", [False, True])
def test_bounds_hold_for_all_selections_within_a_cost(by_group, tmp_path, monkeypatch):
    few = SMALL | {"data.n_relevant": 4, "data.n_redundant": 2, "data.n_noise": 2}
    train, vali, _ = load_problem("planted", few).load_fold(1)
    costs, groups = [5, 2, 1, 2, 3, 5, 3, 1], ["a", "", "b", "b", "", "a", "", "b"]
    rows = [f"{name},{cost},{group}\n" for name, cost, group in zip(train.feature_names, costs, groups, strict=True)]
    (tmp_path / "costs.csv").write_text("name,cost,group\n" + "".join(rows))
    limits = {"features.table": str(tmp_path / "costs.csv"), "features.max_cost": 7.0}
    limits["feature_selection.by_group"] = by_group
    result = run_fold(load_problem("planted", few | limits), solver=ONE_SEARCH)
    alpha = RankRLS().tune(train, vali).alpha
    units = [(0, 5), (2, 3, 7), (1,), (4,), (6,)] if by_group else [(column,) for column in range(8)]
    best = {}
    for n in range(1, len(units) + 1):
        subsets = [sum(chosen, ()) for chosen in combinations(units, n)]
        if subsets := [list(S) for S in subsets if sum(costs[column] for column in S) <= 7]:
            best[n] = min(loss_of(train, alpha, S) for S in subsets)
    sizes = [sum({*unit} <= {*member.features} for unit in units) for member in result.front]
    for n_nodes in (1, 10_000):
        monkeypatch.setattr("moerank.selectors.best_subset.WORK", n_nodes * 8**2)
        certificate = certify(result)
        assert certificate.sizes == list(best) and certificate.groups == (sizes if by_group else None)
        assert (np.array(certificate.least) <= np.array([best[size] for size in sizes]) * (1 + 1e-9)).all()
        assert (certificate.proved == certificate.sizes) == (n_nodes == 10_000)
        assert certificate.sentence(result).endswith("all sizes)") == (n_nodes == 10_000)
    np.testing.assert_allclose(certificate.least, [best[size] for size in sizes], rtol=1e-9)
    write_result(result, tmp_path)
    ran = CliRunner().invoke(app, ["certify", str(tmp_path)])
    assert ("groups" in ran.stdout.splitlines()[0]) == by_group and find_result(tmp_path).certificate == certificate
    figure = RUN_FIGURES["certificate"].draw(result.model_copy(update={"certificate": certificate}))
    assert figure.axes[0].get_xlabel() == f"Number of {'groups' if by_group else 'features'}"
    assert f"compared with the best {sizes[result.chosen]} {'group' if by_group else 'for'}" in certificate.sentence(
        result
    )


def test_ctrl_c_leaves_bounds(result, certificate):
    def interrupt(stage, fraction, text):
        raise KeyboardInterrupt

    early = certify(result, progress=interrupt)
    assert (np.array(early.bounds) <= np.array(certificate.best) * (1 + 1e-9)).all()
    assert len(early.proved) < 30
    assert early.given_up[0] >= certificate.given_up[0]


def test_nothing_is_said_where_an_assumption_does_not_hold(problem, result):
    hinge = run_fold(load_problem("planted", SMALL | {"backend.name": "ranksvm-primal"}), solver=ONE_SEARCH)
    with pytest.raises(ValueError, match="with one weight a feature, but the backend is RankSVM"):
        certify(hinge)
    data = {**result.configuration["data"], "seed": 99}
    other = result.model_copy(update={"configuration": {**result.configuration, "data": data}})
    with pytest.raises(ValueError, match="differs from the data of this run; give the right folder with --data"):
        certify(other)


def test_the_command_adds_the_certificate_to_the_result(result, certificate, tmp_path):
    write_result(result, tmp_path)
    assert not RUN_FIGURES["certificate"].has_data(result)
    ran = CliRunner().invoke(app, ["certify", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    found = find_result(tmp_path)
    assert found.certificate == certificate
    assert found.model_copy(update={"certificate": None}) == result
    assert (tmp_path / "certificate.png").exists()
    assert f"{certificate.sentence(result)}." in " ".join(ran.stdout.split())
    cell = tmp_path / "cell.json"
    cell.write_text(result.to_json())
    ran = CliRunner().invoke(app, ["certify", str(cell), "--json"])
    assert json.loads(ran.stdout) == certificate.model_dump()
    assert find_result(cell).certificate == certificate
