"""Problems whose training part is in shards: read in shards, run here or on workers, and refused by name."""

import numpy as np
import pandas as pd
import pytest

from moerank.data.shards import ShardedData
from moerank.studies.problem import load_problem
from moerank.studies.run_fold import run_fold
from moerank.studies.sources import query_ids

BUDGET = "population = 6\ngenerations = 2\n"


def problem_in(folder, data):
    path = folder / "mine.toml"
    stages = "".join(f"[{stage}]\n{BUDGET}" for stage in ("instance_selection", "feature_selection", "ensemble"))
    path.write_text(f'name = "mine"\n[data]\nshards = 3\n{data}\n{stages}')
    return path


@pytest.fixture(scope="module")
def letor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letor")
    rng = np.random.default_rng(0)
    for part, n_queries, widest in (("train", 12, 3), ("vali", 4, 4), ("test", 4, 3)):
        lines = []
        for query in range(n_queries):
            for _ in range(8):
                x = rng.random(4).round(3)
                features = " ".join(f"{j + 1}:{x[j]}" for j in range(widest if query == 0 else 2))
                lines.append(f"{int(x[0] > 0.5)} qid:{query} {features}")
        (folder / f"{part}.txt").write_text("\n".join(lines) + "\n")
    return problem_in(folder, 'source = "letor"\nfolder = "."\ndtype = "float32"')


def test_training_parts_are_read_in_shards(letor):
    with_shards, without = load_problem(letor), load_problem(letor)
    without = without.model_copy(update={"data": without.data.model_copy(update={"shards": None})}).beside(letor.parent)
    there, here = with_shards.load_fold(1), without.load_fold(1)
    assert isinstance(there[0], ShardedData)
    np.testing.assert_array_equal(np.concatenate(there[0].map(lambda shard: shard.X)), here[0].X)
    assert query_ids(there[0]) == query_ids(here[0]) == list(range(12))
    for one, other in zip(there[1:], here[1:], strict=True):
        np.testing.assert_array_equal(one.X, other.X)


def test_tables_are_read_in_shards(tmp_path):
    rng = np.random.default_rng(0)
    for part in ("train", "vali", "test"):
        table = pd.DataFrame(rng.random((40, 3)).round(3), columns=["a", "b", "c"])
        table.assign(q=np.repeat(np.arange(10), 4), l=rng.integers(0, 3, 40)).to_parquet(tmp_path / f"{part}.parquet")
    path = problem_in(tmp_path, 'source = "table"\nfolder = "."\nlabel = "l"\nquery = "q"')
    train, vali, _ = load_problem(path).load_fold(1)
    assert (train.where, train.n_queries, train.feature_names, vali.feature_names) == (
        "3 shards", 10, ("a", "b", "c"), ("a", "b", "c")
    )  # fmt: skip


@pytest.mark.parametrize(
    ("solver", "normalize"), [("mofsrank", "query"), ("mofsrank", "standard"), ("fsmrank", "none")]
)
def test_a_run_on_shards_finds_what_the_whole_does_but_for_rounding(tiny_problem_file, solver, normalize):
    overrides = {"data.normalize": normalize, "instance_selection.unit": "query"}
    there = run_fold(load_problem(tiny_problem_file, overrides | {"data.shards": 3}), solver=solver)
    here = run_fold(load_problem(tiny_problem_file, overrides), solver=solver)
    assert [member.features for member in there.front] == [member.features for member in here.front]
    for one, other in zip(there.front, here.front, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, rtol=1e-8)
        assert one.scores["train"] == pytest.approx(other.scores["train"])
    assert [baseline.name for baseline in there.baselines] == ["all features", "best single feature"]
    assert (there.queries, there.instances) == (here.queries, "query" if solver == "mofsrank" else None)
    assert there.configuration["data"]["shards"] == 3
    assert here.configuration["data"]["shards"] is None


@pytest.mark.parametrize(
    ("overrides", "solver", "message"),
    [
        ({}, "gas", "GAS needs all documents at once, and cannot work on data in shards; RankRLS, RankSVM and FSMRank"),
        ({"instance_selection.unit": "pair"}, "mofsrank", 'unit="pair" lists .* take "query" or "document"'),
    ],
)
def test_what_cannot_work_on_shards_is_refused_before_data_are_read(tiny_problem_file, overrides, solver, message):
    problem = load_problem(tiny_problem_file, {"data.shards": 2} | overrides)
    with pytest.raises(ValueError, match=message):
        run_fold(problem, solver=solver)


def test_a_problem_is_put_into_as_many_shards_as_it_says_or_eight(tiny_problem_file):
    assert load_problem(tiny_problem_file).in_shards().data.shards == 8
    assert load_problem(tiny_problem_file, {"data.shards": 5}).in_shards().data.shards == 5
