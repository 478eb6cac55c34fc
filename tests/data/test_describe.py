import json

import numpy as np
import pytest

from moerank.data import RankingData, describe, load_letor


def test_every_count_of_a_small_set():
    X = [
        *([0.0, 1.0, 5.0], [-0.0, 1.0, 5.0], [0.5, 1.0, 5.0], [0.5, 1.0, 5.0], [0.5, 1.0, 5.0]),  # query 4
        *([0.5, 1.0, 5.0], [0.1, 1.0, 5.0]),  # query 2: the first equals a document of another query
        *([0.1 * i, 2.0, 5.0] for i in range(12)),  # query 9
    ]
    y = [0, 0, 1, 3, 0, 0, 0, *([3] * 12)]
    qid = [4] * 5 + [2] * 2 + [9] * 12
    description = describe(RankingData(X, y, qid, ["a", "b", "c"], name="small"))
    assert description.as_dict() == {
        "name": "small",
        "documents": 19,
        "queries": 3,
        "features": 3,
        "labels": {"0": 5, "1": 1, "3": 13},
        "queries_without_relevant": 1,
        "short_queries": 2,
        "shortest_query": 2,
        "median_query": 5.0,
        "longest_query": 12,
        "constant_features": ["c"],
        "pairs": 7,
        "queries_without_pairs": 2,
        "identical_groups": 2,
        "identical_documents": 5,
    }
    assert description.labels == {0: 5, 1: 1, 3: 13}
    assert json.loads(json.dumps(description.as_dict())) == description.as_dict()


@pytest.mark.parametrize(
    ("name", "labels", "without_relevant", "short", "lengths", "constant"),
    [
        ("MQ2008", {0: 12279, 1: 2001, 2: 931}, 220, 403, (5, 8.0, 121), (6, 7, 8, 9, 10, 43)),
        ("OHSUMED", {0: 11303, 1: 2585, 2: 2252}, 1, 0, None, (5, 6, 7, 20, 21, 22, 35, 36, 37)),
    ],
)
def test_whole_real_sets_have_the_known_counts(letor_folder, name, labels, without_relevant, short, lengths, constant):
    parts = [load_letor(letor_folder / name / f"Fold{fold}" / "test.txt") for fold in range(1, 6)]
    X, y, qid = (np.concatenate([getattr(part, field) for part in parts]) for field in ("X", "y", "qid"))
    description = describe(RankingData(X, y, qid))
    assert description.labels == labels
    assert description.queries_without_relevant == without_relevant
    assert description.short_queries == short
    assert description.constant_features == tuple(map(str, constant))
    if lengths:
        assert (description.shortest_query, description.median_query, description.longest_query) == lengths
    else:
        assert description.shortest_query == 35
