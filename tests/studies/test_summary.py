import json
import statistics

import pytest

from moerank.studies.comparison import summarise
from moerank.studies.problem import Published
from moerank.studies.run_fold import run_fold


def test_means_and_standard_errors(tiny_problem, tiny_result):
    results = [tiny_result, run_fold(tiny_problem, 3, seed=4), run_fold(tiny_problem, 5, seed=4)]
    summary = summarise(results, [Published(method="M", source="a paper", scores={"MAP": 0.5})])
    assert json.loads(json.dumps(summary)) == summary
    assert summary["folds"] == [2, 3, 5]
    assert [row["name"] for row in summary["rows"]] == ["mofsrank", "all features", "best single feature", "FSMRank"]
    for number, row in enumerate(summary["rows"]):
        rankers = [[result.best, *result.baselines][number] for result in results]
        assert row["n_features"] == pytest.approx(statistics.fmean(len(ranker.features) for ranker in rankers))
        for part in ("train", "validation", "test"):
            for metric in ("NDCG@10", "MAP"):
                values = [ranker.scores[part][metric] for ranker in rankers]
                assert row["means"][part][metric] == pytest.approx(statistics.fmean(values), abs=1e-14)
                error = statistics.stdev(values) / 3**0.5
                assert row["errors"][part][metric] == pytest.approx(error, abs=1e-14)
        assert row["objectives"] == {}  # none but number of features and error
    assert summary["published"][0]["scores"] == {"MAP": 0.5}
