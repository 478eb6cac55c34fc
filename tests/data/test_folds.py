import gzip

import numpy as np
import pytest

from moerank.data import RankingData, load_fold
from moerank.data.folds import count_folds, deal_queries, split_fold, split_queries

TRAIN = b"1 qid:1 1:0.5 2:1\n0 qid:1 1:0.25\n"
VALI = b"1 qid:2 1:0.5 4:1\n"
TEST = b"1 qid:3 1:0.5\n"

SIZES = {  # documents and queries of the parts of folds 1 and 5, and preference pairs of the training part
    "MQ2008": [
        ((9630, 471), (2707, 157), (2874, 156), 52325),
        ((9442, 470), (3062, 157), (2707, 157), 50836),
    ],
    "OHSUMED": [
        ((9219, 63), (3538, 21), (3383, 22), 367663),
        ((9029, 64), (3573, 21), (3538, 21), 283484),
    ],
}


def write_fold(folder, names):
    for name, content in zip(names, (TRAIN, VALI, TEST), strict=True):
        compress = {".gz": gzip.compress}.get(name[-3:].lower(), bytes)
        (folder / name).write_bytes(compress(content))


@pytest.mark.parametrize(
    "names",
    [
        ("train.txt", "vali.txt", "test.txt"),
        ("trainingset.txt", "validationset.txt", "testset.txt"),
        ("train.txt.gz", "vali.txt.gz", "test.txt.gz"),
        ("trainingset.txt.gz", "validationset.txt.gz", "test.txt"),
        ("TRAIN.TXT", "Vali.txt", "Testset.TXT"),
        ("Trainingset.txt.GZ", "VALIDATIONSET.TXT.gz", "test.TXT"),
        ("rank.train", "rank.vali.gz", "RANK.TEST"),
        ("set1.train.txt", "set1.valid.txt.gz", "set1.test.txt"),
        ("a.train", "b.valid", "c.test.gz"),
    ],
)
def test_every_spelling_is_found_and_all_parts_have_the_same_features(tmp_path, names):
    write_fold(tmp_path, names)
    train, vali, test = load_fold(tmp_path)
    assert train.X.tolist() == [[0.5, 1, 0, 0], [0.25, 0, 0, 0]]
    assert vali.X.tolist() == [[0.5, 0, 0, 1]]
    assert test.X.tolist() == [[0.5, 0, 0, 0]]
    assert [part.qid[0] for part in (train, vali, test)] == [1, 2, 3]
    assert [part.name for part in (train, vali, test)] == [str(tmp_path / name) for name in names]


def test_a_missing_folder_or_part_is_named_with_what_is_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent does not exist; load_fold reads the folder"):
        load_fold(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match=r"no training part; .* and found nothing"):
        load_fold(tmp_path)
    write_fold(tmp_path, ("train.txt", "valid.txt", "test.txt"))
    with pytest.raises(FileNotFoundError, match=r"train\.txt is a file, not a folder"):
        load_fold(tmp_path / "train.txt")
    with pytest.raises(FileNotFoundError) as caught:
        load_fold(tmp_path)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path}: no validation part; looked for vali.txt and validationset.txt")
    assert "found test.txt, train.txt, valid.txt. load_fold(…, validation=0.2), or split = " in said


def test_a_missing_validation_part_is_drawn_from_the_training_queries(tmp_path):
    (tmp_path / "rank.train").write_text("".join(f"1 qid:{query} 1:{query}\n" for query in range(10)))
    (tmp_path / "rank.test").write_text("1 qid:1 2:0.5\n")
    with pytest.raises(FileNotFoundError, match=r"no validation part.*rank\.train\. load_fold\(…, vali"):
        load_fold(tmp_path)
    train, vali, test = load_fold(tmp_path, validation=0.3)
    assert (train.n_queries, vali.n_queries, test.qid.tolist()) == (7, 3, [1])
    assert sorted([*train.qid, *vali.qid]) == list(range(10))
    assert (train.X[:, 0] == train.qid).all()
    assert train.n_features == vali.n_features == test.n_features == 2
    assert load_fold(tmp_path, validation=0.3, seed=1)[1].qid.tolist() != vali.qid.tolist()
    for share, message in (
        (0.01, "10 queries cannot be split into shares of 0.01 for validation; give"),
        (1.0, r"validation must be in \(0, 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            load_fold(tmp_path, validation=share)
    (tmp_path / "rank.vali").write_text("1 qid:7 2:0.5\n")
    assert load_fold(tmp_path, validation=0.3)[1].qid.tolist() == [7]


@pytest.mark.parametrize("fold", [1, 5])
@pytest.mark.parametrize("name", SIZES)
def test_real_folds_have_the_known_sizes(letor_folder, name, fold):
    *sizes, n_pairs = SIZES[name][fold > 1]
    parts = load_fold(letor_folder / name / f"Fold{fold}")
    assert [(part.n_documents, part.n_queries) for part in parts] == sizes
    assert {part.n_features for part in parts} == {46 if name == "MQ2008" else 45}
    assert len(parts[0].pairs) == n_pairs


@pytest.mark.parametrize("n_queries", [5, 10, 13])
def test_split_deals_the_queries_as_letor_does(n_queries):
    data = own(n_queries)
    folds = [split_fold(data, fold) for fold in range(1, 6)]
    for parts in folds:
        require_parts_of(data, parts)
    # Fold 1 validates on S4 and tests on S5; each part is held out once.
    parts = [part.tolist() for part in np.array_split(order_of(data), 5)]
    assert [order_of(vali) for _, vali, _ in folds] == parts[3:] + parts[:3]
    assert [order_of(test) for _, _, test in folds] == parts[4:] + parts[:4]
    assert order_of(folds[3][0]) == parts[3] + parts[4] + parts[0]


def own(n_queries, seed=0):
    rng = np.random.default_rng(seed)
    qid = np.repeat(rng.permutation(1000)[:n_queries], rng.integers(1, 6, n_queries))
    X = rng.random((len(qid), 2))
    X[0, 0] = np.nan
    return RankingData(X, rng.integers(0, 3, len(qid)), qid, ["a", "b"], name="own", missing=0.5)


def order_of(data):
    return data.qid[data.offsets[:-1]].tolist()


def require_parts_of(data, parts):
    """Every query is in one part, with all its rows."""
    assert sorted(query for part in parts for query in order_of(part)) == sorted(order_of(data))
    for part in parts:
        rows = np.concatenate([np.flatnonzero(data.qid == query) for query in order_of(part)])
        np.testing.assert_array_equal(part.X, data.X[rows])
        np.testing.assert_array_equal(part.y, data.y[rows])
        np.testing.assert_array_equal(part.qid, data.qid[rows])
        assert (part.feature_names, part.missing) == (("a", "b"), 0.5)
    assert sum(part.n_missing for part in parts).tolist() == data.n_missing.tolist() == [1, 0]


def require_parts_in_order(data, parts):
    require_parts_of(data, parts)
    assert all(order_of(part) == sorted(order_of(part), key=order_of(data).index) for part in parts)


@pytest.mark.parametrize(
    ("n_queries", "shares", "sizes"),
    [(10, (), (6, 2, 2)), (11, (0.25, 0.1), (7, 3, 1)), (3, (0.3, 0.3), (1, 1, 1)), (100, (0.005, 0.9), (9, 1, 90))],
)
def test_shares_of_the_queries_are_drawn(n_queries, shares, sizes):
    data = own(n_queries)
    parts = split_queries(data, *shares, seed=5)
    require_parts_in_order(data, parts)
    assert tuple(part.n_queries for part in parts) == sizes
    assert [part.name for part in parts] == ["own, training", "own, validation", "own, test"]


@pytest.mark.parametrize(("n_queries", "n_folds"), [(3, 3), (10, 4), (23, 5), (40, 40)])
def test_queries_are_dealt_into_equal_parts(n_queries, n_folds):
    data = own(n_queries)
    folds = [deal_queries(data, fold, n_folds, seed=2) for fold in range(1, n_folds + 1)]
    tested = [set(order_of(test)) for _, _, test in folds]
    assert set.union(*tested) == set(order_of(data))
    assert sum(map(len, tested)) == n_queries
    assert max(map(len, tested)) - min(map(len, tested)) <= 1
    for fold, parts in enumerate(folds, start=1):
        require_parts_in_order(data, parts)
        assert set(order_of(parts[1])) == tested[fold - 2]  # what was tested on is validated on next
        assert parts[0].name == f"own, fold {fold}, training"


@pytest.mark.parametrize(
    ("split", "arguments", "message"),
    [
        (split_queries, (0.0, 0.2), r"validation must be in \(0, 1\), not 0\.0"),
        (split_queries, (0.2, 1.0), r"test must be in \(0, 1\), not 1\.0"),
        (split_queries, (0.5, 0.5), "own: 10 queries cannot be split"),
        (split_queries, (0.2, 0.01), r"10 queries cannot be split into shares of 0\.2 for validation and 0\.01 for"),
        (split_queries, (0.04, 0.2), "own: 10 queries cannot be split"),
        (split_queries, (0.48, 0.5), "own: 10 queries cannot be split"),
        *((split_fold, (fold,), "fold must be ") for fold in (0, 6, 1.5)),
        (deal_queries, (1, 11), "own: 10 queries cannot be dealt into 11 parts"),
        (deal_queries, (5, 4), "fold must be at most 4, not 5"),
        (deal_queries, (1, 2), "n_folds must be at least 3, not 2"),
    ],
)
def test_what_cannot_be_split_is_refused(split, arguments, message):
    with pytest.raises(ValueError, match=message):
        split(own(10), *arguments)


def test_folders_are_counted_up_to_the_first_gap(tmp_path):
    assert count_folds(tmp_path) == 0
    for number in (1, 2, 4):
        (tmp_path / f"Fold{number}").mkdir()
    (tmp_path / "Fold3").touch()
    assert count_folds(tmp_path) == 2
