import numpy as np
import pytest

from moerank.analysis.fronts import front_points, front_quality
from moerank.analysis.results import Results


@pytest.fixture(scope="module")
def results(tiny_study):
    return Results(tiny_study.results())


def test_quality_of_fronts_is_measured_against_all_of_the_fold(results):
    table = front_quality(results)
    assert len(table) == len(results)
    for fold in (1, 2):
        everything = np.concatenate([front_points(r) for r in results if r.fold == fold])
        n_features = len(results[0].feature_names)
        for result, (_, row) in zip(results, table.iterrows(), strict=True):
            if result.fold != fold:
                continue
            front = front_points(result)
            steps = [front[front[:, 0] <= k, 1].min(initial=1.0) for k in range(1, n_features)]
            assert row["hypervolume"] == pytest.approx(np.sum(1 - np.array(steps)) / n_features)
            best = [p for p in everything if not any((q <= p).all() and (q < p).any() for q in everything)]
            best = np.unique(best, axis=0)
            gaps = [min(np.hypot(max(f - g, 0) / n_features, max(e - h, 0)) for f, e in front) for g, h in best]
            assert row["igd_plus"] == pytest.approx(np.mean(gaps), abs=1e-12)
