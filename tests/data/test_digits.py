import hashlib

import numpy as np
import pytest
from sklearn.datasets import load_digits

from moerank.data import load_digits_fold


def test_sizes_labels_and_names_of_the_default_problem():
    train, vali, test = load_digits_fold(1)
    assert [part.n_queries for part in (train, vali, test)] == [90, 30, 30]
    for part in (train, vali, test):
        assert set(np.diff(part.offsets)) == {100}
        assert set(np.unique(part.y)) == {0, 1}
        relevant = np.add.reduceat(part.y, part.offsets[:-1])
        assert relevant.min() >= 1
        assert 9 < relevant.mean() < 11
        assert part.X.min() == 0.0
        assert part.X.max() == 1.0
    assert train.feature_names[:2] == ("row 1 column 1", "row 1 column 2")
    assert train.feature_names[8] == "row 2 column 1"
    assert train.feature_names[63] == "row 8 column 8"


def test_documents_are_other_images_compared_with_the_query_image():
    """One image alone, taken as the query, explains the features as similarities to other images, and the labels."""
    images, digits = load_digits(return_X_y=True)
    _, _, test = load_digits_fold(1, n_queries=5, n_documents=30)
    found = []
    for query in range(len(images)):
        similarity = 1.0 - np.abs(images - images[query]) / 16.0
        if (similarity == test.X[0]).all(axis=1).any():
            where = (similarity[:, None] == test.X).all(axis=2)
            if where.any(axis=0).all():
                found.append((query, where.argmax(axis=0)))
    ((query, documents),) = found
    assert len(set(documents)) == 30
    assert query not in documents
    np.testing.assert_array_equal(digits[documents] == digits[query], test.y == 1)


def test_folds_share_the_queries_and_deal_them_in_turn():
    folds = [load_digits_fold(fold, n_queries=10, n_documents=20) for fold in range(1, 6)]
    assert [sorted(set(test.qid)) for _, _, test in folds] == [[9, 10], [1, 2], [3, 4], [5, 6], [7, 8]]
    for query in range(1, 11):
        rows = [part.X[part.qid == query] for fold in folds for part in fold if (part.qid == query).any()]
        assert len(rows) == 5
        for other in rows[1:]:
            np.testing.assert_array_equal(rows[0], other)


def test_the_default_problem_never_changes():
    digest = hashlib.sha256()
    for part in load_digits_fold(1):
        digest.update(np.ascontiguousarray(part.X * 16, dtype="<i8").tobytes())
        digest.update(part.y.astype("<i8").tobytes())
    assert digest.hexdigest()[:16] == "b60cd6697c429331"


def test_seeds_differ():
    assert (load_digits_fold(1, seed=0)[0].X != load_digits_fold(1, seed=1)[0].X).any()


@pytest.mark.parametrize("n_documents", [2, 3, 1796])
def test_each_query_has_a_preference_pair_however_few_documents_it_has(n_documents):
    for part in load_digits_fold(2, n_queries=25 if n_documents < 10 else 5, n_documents=n_documents):
        assert set(part.qid[part.pairs.better]) == set(part.qid)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("fold", 0), ("fold", 6), ("n_queries", 4), ("n_queries", 1798), ("n_documents", 1), ("n_documents", 1797)),
        *(("fold", "5"), ("n_queries", 5.0), ("n_documents", True), ("seed", None)),
    ],
)
def test_numbers_out_of_range_are_refused(argument, value):
    with pytest.raises(ValueError, match=f"{argument} (must be (at|an integer)|is )"):
        load_digits_fold(**{argument: value})
