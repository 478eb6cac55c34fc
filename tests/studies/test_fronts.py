import numpy as np
import pandas as pd
import pytest
from helpers.changes import replace
from helpers.further_objective import cost, with_cost
from helpers.plain import front as non_dominated_points

from moerank.studies.results import Results, front_points, front_quality


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
    inside = np.any([(point <= corners).all(axis=-1) for point in points], axis=0)
    volumes = np.prod(np.stack(np.meshgrid(*(np.diff(cut) for cut in cuts), indexing="ij"), axis=-1), axis=-1)
    return volumes[inside].sum() / np.prod(np.subtract(reference, ideal))


@pytest.mark.parametrize("made", [lambda result: result, with_cost])
def test_quality_is_measured_in_all_objectives_against_all_of_the_fold(results, made):
    every = Results(map(made, results))
    table = front_quality(every)
    for fold in (1, 2):
        runs = [result for result in every if result.fold == fold]
        everything = np.concatenate([front_points(run) for run in runs])
        ideal, reference = np.zeros(everything.shape[1]), np.array([20.0, 1.0, cost(range(20))][: everything.shape[1]])
        target = non_dominated_points(everything)
        for result, (_, row) in zip(every, table.iterrows(), strict=True):
            if result.fold != fold:
                continue
            points = front_points(result)
            if made is with_cost:
                assert points[:, 2].tolist() == [cost(member.features) for member in result.front]
            assert row["hypervolume"] == pytest.approx(covered(points, ideal, reference), rel=1e-9, abs=1e-12)
            side = reference - ideal
            gaps = np.maximum(points[None] - target[:, None], 0.0) / side
            assert row["igd_plus"] == pytest.approx(np.sqrt((gaps**2).sum(axis=2)).min(axis=1).mean(), abs=1e-12)


def test_an_objective_that_is_the_same_for_all_changes_no_hypervolume(results):
    def level(member):
        return replace(member, objectives={**member.objectives, "level": 7.0})

    changes = {"objectives": [*results.objectives, "level"], "box": {**results[0].box, "level": (7.0, 7.0)}}
    flat = Results(replace(r, **changes, front=[level(m) for m in r.front]) for r in results)
    np.testing.assert_allclose(front_quality(flat)["hypervolume"], front_quality(results)["hypervolume"], rtol=1e-12)


def test_hypervolumes_of_figures_and_tables_are_one_number(results):
    table = front_quality(results).set_index(["solver", "fold", "seed"])["hypervolume"]
    searches = [run for run in results if run.convergence]
    for run in searches:
        assert run.box == {"features": (0.0, 20.0), "error": (0.0, 1.0)}
        last = list(run.convergence.values())[-1].hypervolume[-1]
        assert table[run.solver, run.fold, run.seed] == pytest.approx(last, rel=1e-12)
    assert searches


def test_only_fronts_of_one_goal_are_compared(results):
    other = [replace(with_cost(run), solver="own") for run in results if run.solver == "mofsrank"]
    both = Results([*results, *other])
    assert list(both.alike()) == ["features, error by NDCG@10", "features, error, cost by NDCG@10"]
    apart = pd.concat([front_quality(results), front_quality(Results(other))], ignore_index=True)
    pd.testing.assert_frame_equal(front_quality(both), apart)


def test_a_single_objective_has_a_best_value_for_a_front(results):
    single = Results(replace(result, objectives=["error"]) for result in results)
    table = front_quality(single)
    least = {fold: min(front_points(r).min() for r in single if r.fold == fold) for fold in (1, 2)}
    for result, (_, row) in zip(single, table.iterrows(), strict=True):
        mine = front_points(result).min()
        assert row["hypervolume"] == pytest.approx(1.0 - mine, rel=1e-12)
        assert row["igd_plus"] == pytest.approx(mine - least[result.fold], abs=1e-12)
