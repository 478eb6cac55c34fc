import numpy as np
from helpers.changes import replace

from moerank.studies.results import best_by_size, mean_by_size, offers_sizes


def offering(result, members):
    """Return the result with members of given sizes and values in validation and in the test."""
    front = [
        replace(
            result.best,
            features=tuple(range(size)),
            weights=(1.0,) * size,
            scores={"validation": {"NDCG@10": validation}, "test": {"NDCG@10": test}},
        )
        for size, validation, test in members
    ]
    return replace(result, front=front, chosen=0, feature_names=list("abcdef"))


def test_the_best_is_chosen_by_validation_with_ties_to_fewer_features(tiny_result):
    run = offering(tiny_result, [(2, 0.5, 0.1), (3, 0.5, 0.9), (4, 0.7, 0.2), (5, 0.6, 0.8)])
    np.testing.assert_array_equal(best_by_size(run, "test", "NDCG@10"), [np.nan, 0.1, 0.1, 0.2, 0.2, 0.2])
    on_test = best_by_size(run, "test", "NDCG@10", chosen_on="test")
    np.testing.assert_array_equal(on_test, [np.nan, 0.1, 0.9, 0.9, 0.9, 0.9])


def test_means_are_over_seeds_first_and_need_every_run(tiny_result):
    one, two, three = (
        offering(tiny_result, [(1, 0.1, a), (2, 0.2, b)]) for a, b in ((0.2, 0.4), (0.4, 0.8), (0.1, 0.2))
    )
    mean = mean_by_size({1: [one, two], 2: [three]}, "test", "NDCG@10")
    np.testing.assert_allclose(mean, [0.2, *[0.4] * 5], rtol=1e-15)
    late = offering(tiny_result, [(2, 0.2, 0.4)])
    np.testing.assert_array_equal(np.isnan(mean_by_size({1: [one, late]}, "test", "NDCG@10")), [True, *[False] * 5])
    assert offers_sizes({1: [late], 2: [one]})
    assert not offers_sizes({1: [late]})
