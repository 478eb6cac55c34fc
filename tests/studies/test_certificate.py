import json
from itertools import combinations

import numpy as np
import pytest
from typer.testing import CliRunner

from moerank.cli.app import app
from moerank.figures import RUN_FIGURES
from moerank.rankers import RankRLS
from moerank.studies.evidence import certify
from moerank.studies.problem import load_problem
from moerank.studies.result import find_result, write_result
from moerank.studies.run_fold import run_fold

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


def test_ctrl_c_leaves_bounds(result, certificate):
    def interrupt(stage, fraction, text):
        raise KeyboardInterrupt

    early = certify(result, progress=interrupt)
    assert (np.array(early.bounds) <= np.array(certificate.best) * (1 + 1e-9)).all()
    assert len(early.proved) < 30
    assert early.given_up[0] >= certificate.given_up[0]


def test_nothing_is_said_where_an_assumption_does_not_hold(problem, result):
    hinge = run_fold(load_problem("planted", SMALL | {"backend.name": "ranksvm-primal"}), solver=ONE_SEARCH)
    with pytest.raises(
        ValueError,
        match="with one weight a feature, but the backend is RankSVM",
    ):
        certify(hinge)
    data = {**result.configuration["data"], "seed": 99}
    other = result.model_copy(update={"configuration": {**result.configuration, "data": data}})
    with pytest.raises(ValueError, match="differs from the data of this run; give the right folder with --data"):
        certify(other)


def test_the_command_adds_the_certificate_to_the_result(result, certificate, tmp_path):
    write_result(result, tmp_path)
    assert not RUN_FIGURES["certificate"].shows(result)
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
