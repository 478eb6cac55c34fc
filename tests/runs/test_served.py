"""Stored models on new data."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers.changes import replace
from helpers.served_models import GUIDE

import moerank as mr
from moerank.cli.tables import run_summary
from moerank.data import PER_QUERY, RankingData, fit_scaling, make_planted
from moerank.metrics import NDCG
from moerank.runs.problem import make_problem
from moerank.runs.result import find_result, write_result
from moerank.runs.run_fold import run_fold
from moerank.runs.run_folder import judge_on_new

NAMES = ["price", "stars", "age", "clicks", "stock"]


def frame(seed, n_queries=60):
    data = make_planted(n_queries=n_queries, n_documents=10, n_relevant=2, n_redundant=1, n_noise=2, seed=seed).data
    table = pd.DataFrame(data.X, columns=NAMES)
    return table.assign(session=data.qid, bought=data.y)


@pytest.fixture
def stored(tmp_path):
    """Store runs of a solver under a name, trained on a table."""

    def store(name, solver="greedy-rankrls", **section):
        table = frame(1)
        data = RankingData(table[NAMES].to_numpy(), table["bought"], table["session"], feature_names=NAMES)
        named = {key if "." in key else f"data.{key}": value for key, value in section.items()}
        settings = {"comparison.trees": 5, **named}
        (tmp_path / name).mkdir()
        write_result(run_fold(make_problem("shop", data, settings), solver=solver), tmp_path / name)
        return tmp_path / name

    return store


@pytest.mark.parametrize(
    "section", [{"normalize": "none"}, {"normalize": "standard"}, {"normalize": "query"}, {"scaled": "query"}]
)
def test_a_stored_model_is_judged_against_all_features_by_hand(stored, tmp_path, section):
    run = stored("run", **section)
    new = frame(2)
    new[["stock", *reversed(NAMES[:4]), "session", "bought"]].to_csv(tmp_path / "new.csv", index=False)
    found = judge_on_new(run, tmp_path / "new.csv", label="bought", query="session")

    result = json.loads((run / "result.json").read_text())
    data = RankingData(new[NAMES].to_numpy(), new["bought"], new["session"])
    X = data.X
    if section == {"normalize": "query"}:
        X = PER_QUERY.apply(data).X
    elif section == {"normalize": "standard"}:
        scaling = result["scaling"]
        X = (X - np.array(scaling["offset"])) / np.array(scaling["scale"])
    means = []
    for member in (result["front"][result["chosen"]], result["baselines"][0]):
        scores = X[:, member["features"]] @ np.array(member["weights"])
        means.append(NDCG(10).score(data, scores))
    assert result["baselines"][0]["name"] == "all features"
    assert found["n_queries"] == 60
    assert found["n_features_against"] == 5
    share = found["n_differing"] / found["n_queries"]
    assert found["difference"] * share == pytest.approx(means[0] - means[1], abs=1e-12)


def test_a_loss_has_its_own_exit_code_and_line(stored, command, tmp_path):
    good, bad = stored("good"), stored("bad")
    frame(2, 200).to_csv(tmp_path / "new.csv", index=False)
    values = json.loads((bad / "result.json").read_text())
    for member in values["front"]:
        member["weights"] = [-weight for weight in member["weights"]]
    (bad / "result.json").write_text(json.dumps(values))
    asked = ("judge", "bad", "new.csv", "--label", "bought", "--query", "session", "--against", "good")
    outcome = command(*asked)
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.startswith("loss: ") and outcome.stdout.count("\n") == 1
    assert "of bad against" in outcome.stdout and "200 new queries: a loss is detected" in outcome.stdout
    failed = command(*asked, "--fail-on", "loss", "--json")
    assert failed.exit_code == 3
    told = json.loads(failed.stdout)
    assert failed.stdout.count("\n") == 1
    assert (told["finding"], told["against"], told["n_queries"]) == ("loss", "good", 200)
    assert told["interval"][0] < told["difference"] < told["interval"][1] < 0
    assert command(*asked, "--fail-on", "gain").exit_code == 0
    wrong = command(*asked, "--fail-on", "lost")
    assert wrong.exit_code == 2
    assert "--fail-on must be one of 'loss', 'gain', 'likely loss', 'likely gain', 'none', not 'lost'" in wrong.stderr
    same = command("judge", good, "new.csv", "--label", "bought", "--query", "session", "--against", good, "--json")
    assert json.loads(same.stdout)["difference"] == 0


def test_data_without_a_feature_are_refused_by_name(stored, command, tmp_path):
    stored("run")
    frame(2).drop(columns="age").to_csv(tmp_path / "new.csv", index=False)
    outcome = command("judge", "run", "new.csv", "--label", "bought", "--query", "session")
    assert outcome.exit_code == 2
    assert "error: cannot rank by the chosen model of run: new.csv: features=: unknown column 'age'" in outcome.stderr
    values = json.loads((tmp_path / "run" / "result.json").read_text())
    (tmp_path / "run" / "result.json").write_text(json.dumps({**values, "baselines": []}))
    outcome = command("judge", "run", "new.csv", "--label", "bought", "--query", "session")
    assert "run has no model on all features; name another run with --against" in outcome.stderr


def test_a_model_that_cannot_rank_is_named_with_its_run_and_a_way_out(stored, command, tmp_path):
    (run, other), columns = (stored("run"), stored("other")), ("--label", "bought", "--query", "session")
    frame(2).to_csv(tmp_path / "new.csv", index=False)
    values = json.loads((run / "result.json").read_text())
    names = [name.replace("age", "years") for name in NAMES]
    (other / "result.json").write_text(json.dumps({**values, "feature_names": names}))
    refused = command("judge", "run", "new.csv", *columns, "--against", "other").stderr
    assert "cannot rank by the chosen model of other: new.csv: features=: unknown column 'years'" in refused
    assert refused.endswith("; or compare with another run by --against\n")
    best = values["front"][values["chosen"]]
    best |= {"features": best["features"][:1], "weights": best["weights"][:1]}
    (run / "result.json").write_text(json.dumps(values))
    frame(2)[["session", "bought", NAMES[best["features"][0]]]].to_csv(tmp_path / "new.csv", index=False)
    assert "cannot rank by the model on all features of run: " in command("judge", "run", "new.csv", *columns).stderr
    best["weights"] = None  # as of a ranker with kernels
    (run / "result.json").write_text(json.dumps(values))
    refused = command("judge", "run", "new.csv", *columns).stderr
    assert "cannot rank by the chosen model of run: this model has neither weights nor trees" in refused
    assert refused.endswith("; train a linear ranker or LambdaMART on its features\n")


def test_new_data_of_letor_have_numbers_for_names_and_weights_count(stored, tmp_path):
    run, new = stored("run"), frame(2)
    new.to_csv(tmp_path / "new.csv", index=False)
    right = judge_on_new(run, tmp_path / "new.csv", label="bought", query="session")
    heavy = new.session == new.session.iloc[0]
    new[heavy].to_csv(tmp_path / "one.csv", index=False)
    one = judge_on_new(run, tmp_path / "one.csv", label="bought", query="session")
    values = json.loads((run / "result.json").read_text())
    values["configuration"]["data"]["query_weight"] = "weight"
    (run / "result.json").write_text(json.dumps(values))
    new.assign(weight=1 + 10**9 * heavy).to_csv(tmp_path / "weighted.csv", index=False)
    weighted = judge_on_new(run, tmp_path / "weighted.csv", label="bought", query="session")
    assert weighted["difference"] == pytest.approx(one["difference"], abs=1e-6)
    assert weighted["sentence"].endswith("no finding, because few queries carry the traffic")
    assert weighted["interval"] == (None, None) != right["interval"]
    lines = [
        f"{row.bought} qid:{row.session} " + " ".join(f"{f}:{getattr(row, name)!r}" for f, name in enumerate(NAMES, 1))
        for row in new.itertuples()
    ]
    (tmp_path / "new.txt").write_text("\n".join(lines) + "\n")
    values |= {"feature_names": list("12345"), "negative": []}
    (run / "result.json").write_text(json.dumps(values))
    assert judge_on_new(run, tmp_path / "new.txt")["difference"] == right["difference"]
    (tmp_path / "new.txt.weight").write_text("".join(f"{1 + 10**9 * h}\n" for h in heavy.groupby(new.session).first()))
    assert judge_on_new(run, tmp_path / "new.txt")["difference"] == pytest.approx(one["difference"], abs=1e-6)
    assert one["difference"] != pytest.approx(right["difference"], abs=1e-3)


def test_the_first_run_says_which_labels_and_weights_judge_both(stored, command, tmp_path):
    runs = stored("first"), stored("second")
    own = {"label": "bought", "query": "session"}
    read = own, {"label": "wrong", "labels": [1.5], "query": "session", "query_weight": "weight"}
    for run, section in zip(runs, read, strict=True):
        values = json.loads((run / "result.json").read_text())
        values["configuration"]["data"] |= section
        (run / "result.json").write_text(json.dumps(values))
    new = frame(2)
    new.assign(wrong=2 - new.bought, weight=1 + new.session % 7).to_csv(tmp_path / "new.csv", index=False)
    for one, other in (runs, runs[::-1]):
        assert judge_on_new(one, tmp_path / "new.csv", other)["difference"] == 0
    new.assign(bought="yes").to_csv(tmp_path / "texts.csv", index=False)
    new.assign(price=new.price.where(new.index > 0)).to_csv(tmp_path / "gap.csv", index=False)
    for name, fault in (("texts", "the label 'yes' in the column 'bought' is not a number"), ("gap", "is missing")):
        refused = command("judge", "first", f"{name}.csv").stderr
        assert f"{fault}; change it, or run again with a rule for it in [data] of the problem file" in refused


def test_trees_are_compared_with_another_run(stored, tmp_path):
    run, other = stored("run", solver="lambdamart[n_trees=5]"), stored("other")
    frame(2).to_csv(tmp_path / "new.csv", index=False)
    columns = {"label": "bought", "query": "session"}
    assert judge_on_new(run, tmp_path / "new.csv", **columns)["n_features_against"] == 5  # the linear baseline
    found = judge_on_new(other, tmp_path / "new.csv", run, **columns)
    back = judge_on_new(run, tmp_path / "new.csv", other, **columns)
    assert found["n_features_against"] == back["n_features"] == 5
    assert found["difference"] == -back["difference"] != 0


def test_a_model_finds_features_by_their_names(tiny_result, tmp_path):
    (tmp_path / "run").mkdir()
    write_result(tiny_result, tmp_path / "run")
    model = mr.load_model(tmp_path / "run")
    assert model == tiny_result.model(tiny_result.best)
    assert mr.load_model(tmp_path / "run", member=0) == tiny_result.model(tiny_result.front[0])
    with pytest.raises(ValueError, match="member must be"):
        mr.load_model(tmp_path / "run", member=99)
    X = np.array([[3.2, 20, 45], [1.0, 5, 42]])
    table = pd.DataFrame(X, columns=["bm25", "price", "age"])
    right = GUIDE.scores(X)
    np.testing.assert_array_equal(GUIDE.predict(X), right)
    np.testing.assert_array_equal(GUIDE.predict(table[["age", "bm25", "price"]].assign(other=1.0)), right)
    data = RankingData(X[:, ::-1], [0, 1], 0, feature_names=["age", "price", "bm25"])
    np.testing.assert_array_equal(GUIDE.predict(data), right)
    np.testing.assert_array_equal(replace(GUIDE, columns=(1, 4, 7)).predict(table), right)
    with pytest.raises(ValueError, match="X has no feature 'age', which the model needs"):
        GUIDE.predict(table[["bm25", "price"]])
    with pytest.raises(ValueError, match="the model scales its input: give raw values"):
        GUIDE.predict(fit_scaling(data, "standard").apply(data))


@pytest.mark.parametrize("linear", [True, False])
def test_the_ranker_of_the_verdict_is_the_baseline_and_is_stored(stored, tmp_path, linear):
    trees = "lambdamart[n_trees=30,n_leaves=4,min_leaf=3]"
    serve = {"serve.rankers": ["rankrls", trees] if linear else [trees], "serve.proposals": ["lambdamart-gain"]}
    run = stored("run", "mofsrank[instance_selection=false,ensemble=false]", **serve)
    result = find_result(run)
    reference = next(member for member in result.baselines if member.name == "all features")
    assert (reference.trees is None) == linear == (reference.weights is not None)
    values = [np.array(member.per_query["test"]["NDCG@10"]) for member in (result.best, reference)]
    assert result.verdict.difference == pytest.approx((values[0] - values[1])[result.differing].mean(), abs=1e-12)
    share = len(result.differing) / len(values[0])
    low, high = result.verdict.interval
    interval = pytest.approx((share * low, share * high), abs=1e-12) if np.isfinite(low) else None
    assert result.best.difference_interval == interval
    frame(2).to_csv(tmp_path / "new.csv", index=False)
    found = judge_on_new(run, tmp_path / "new.csv", label="bought", query="session")
    new = frame(2)
    data = RankingData(new[NAMES].to_numpy(), new["bought"], new["session"], feature_names=NAMES)
    means = [NDCG(10).score(data, result.model(member).predict(data)) for member in (result.best, reference)]
    assert found["difference"] * found["n_differing"] / 60 == pytest.approx(means[0] - means[1], abs=1e-12)
    assert (result.explanation is None) == linear


def test_trees_that_serve_are_explained_on_validation_queries(command, tmp_path):
    names = [*NAMES[:3], "same"]
    rng = np.random.default_rng(0)
    X = rng.random((900, 4))
    X[:, 3] = np.repeat(rng.random(60) < 0.5, 15)
    y = ((np.where(X[:, 3] == 1, X[:, 0], X[:, 1]) + 0.1 * rng.normal(size=900)) > 0.7).astype(int)
    data = RankingData(X, y, np.repeat(np.arange(60), 15), feature_names=names)
    trees = "lambdamart[n_trees=40,n_leaves=4,min_leaf=3]"
    serve = {"serve.rankers": [trees], "serve.proposals": ["lambdamart-gain[n_trees=20]"], "comparison.trees": 5}
    solver = "mofsrank[instance_selection=false,ensemble=false]"
    problem = make_problem("kinds", data, serve | {"feature_selection.generations": 3})
    result = run_fold(problem, solver=solver)
    chosen, explained = result.best, result.explanation
    validation = problem.load_fold(1)[1]
    model = result.model(chosen)
    own = NDCG(10).per_query(validation, model.predict(validation))
    assert list(explained.worth) == sorted(explained.worth, key=explained.worth.get, reverse=True)
    assert set(explained.worth) == set(result.names(chosen.features)) >= {"price", "stars", "same"}
    rng = np.random.default_rng(result.random_state)
    for feature in chosen.features:
        values = []
        for _ in range(5):
            table = np.array(validation.X64)
            table[:, feature] = rng.permutation(table[:, feature])
            scores = model.predict(RankingData(table, validation.y, validation.qid, feature_names=names))
            values.append(NDCG(10).score(validation, scores))
        assert explained.worth[names[feature]] == pytest.approx(own.mean() - np.mean(values), abs=1e-9)
    mask = np.isin(np.arange(4), chosen.features)
    parts = [part.with_features(mask) for part in problem.load_fold(1)[:2]]
    curves = mr.AdditiveRLS().tune(*parts, metric=NDCG(10)).fit(parts[0])
    d = NDCG(10).per_query(validation, curves.predict(parts[1])) - own
    assert explained.curves == pytest.approx((d.mean(), d.std(ddof=1) / np.sqrt(len(d))), abs=1e-9)
    assert explained.curves[0] < -0.05  # a sum of curves cannot say which feature counts
    text = run_summary(result)
    assert "Explained by curves on validation: −." in text and "Loss where a feature is permuted: " in text
