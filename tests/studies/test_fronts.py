import numpy as np
import pytest
from helpers.changes import replace
from helpers.further_objective import cost, with_cost
from helpers.plain import front as non_dominated_points

from moerank.studies.results import Results, front_box, front_points, front_quality


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


def test_points_are_the_objectives_in_training(results):
    for result in results:
        sizes, errors = front_points(result).T
        assert sizes.tolist() == [len(member.features) for member in result.front]
        assert errors.tolist() == [1.0 - member.scores["train"]["NDCG@10"] for member in result.front]


def covered(points, ideal, reference):
    """The share of the box that points dominate: the box is cut at every coordinate, and each piece is in or out."""
    sides = zip(points.T, ideal, reference, strict=True)
    cuts = [np.unique([low, high, *np.clip(values, low, high)]) for values, low, high in sides]
    corners = np.stack(np.meshgrid(*(cut[:-1] for cut in cuts), indexing="ij"), axis=-1)
    inside = (points[:, None, None, None] <= corners).all(axis=-1).any(axis=0)
    volumes = np.prod(np.stack(np.meshgrid(*(np.diff(cut) for cut in cuts), indexing="ij"), axis=-1), axis=-1)
    return volumes[inside].sum() / np.prod(np.subtract(reference, ideal))


def test_quality_is_measured_in_all_objectives(results):
    priced = Results(with_cost(result) for result in results)
    table = front_quality(priced)
    for fold in (1, 2):
        runs = [result for result in priced if result.fold == fold]
        everything = np.concatenate([front_points(run) for run in runs])
        ideal, reference = front_box(runs, priced.objectives)
        assert ideal.tolist() == [0.0, 0.0, everything[:, 2].min()]
        assert reference.tolist() == [20.0, 1.0, everything[:, 2].max()]
        target = non_dominated_points(everything)
        for result, (_, row) in zip(priced, table.iterrows(), strict=True):
            if result.fold != fold:
                continue
            points = front_points(result)
            assert points[:, 2].tolist() == [cost(member.features) for member in result.front]
            assert row["hypervolume"] == pytest.approx(covered(points, ideal, reference), rel=1e-9, abs=1e-12)
            side = reference - ideal
            gaps = np.maximum(points[None] - target[:, None], 0.0) / side
            assert row["igd_plus"] == pytest.approx(np.sqrt((gaps**2).sum(axis=2)).min(axis=1).mean(), abs=1e-12)


def test_an_objective_that_is_the_same_for_all_changes_no_hypervolume(results):
    def level(member):
        return replace(member, objectives={**member.objectives, "level": 7.0})

    flat = Results(replace(r, objectives=[*r.objectives, "level"], front=[level(m) for m in r.front]) for r in results)
    np.testing.assert_allclose(front_quality(flat)["hypervolume"], front_quality(results)["hypervolume"], rtol=1e-12)


def test_a_single_objective_has_a_best_value_for_a_front(results):
    single = Results(replace(result, objectives=["error"]) for result in results)
    table = front_quality(single)
    least = {fold: min(front_points(r).min() for r in single if r.fold == fold) for fold in (1, 2)}
    for result, (_, row) in zip(single, table.iterrows(), strict=True):
        mine = front_points(result).min()
        assert row["hypervolume"] == pytest.approx(1.0 - mine, rel=1e-12)
        assert row["igd_plus"] == pytest.approx(mine - least[result.fold], abs=1e-12)
