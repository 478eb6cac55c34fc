"""Queries in two parts: which are found, and that no source of folds deals the rows of a query to two parts."""

import numpy as np
import pytest
from helpers.logs import plugin, shop

from moerank import RankRLS
from moerank.data import RankingData, load_planted_fold
from moerank.data.folds import of_queries
from moerank.data.ingest import ingest
from moerank.data.overlap import query_digests, shared_queries
from moerank.runs.problem import load_problem, make_problem
from moerank.studies.evidence import half_of


@pytest.fixture(scope="module")
def parts():
    return load_planted_fold(n_queries=25, n_documents=6)


def joined(*parts):
    fields = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "qid"))
    return RankingData(*fields, parts[-1].given_names)


def shuffled(data, shift):
    """The same queries under other ids, with the rows of each in another order."""
    rows = np.lexsort((np.random.default_rng(0).random(data.n_documents), data.qid))
    return RankingData(data.X[rows], data.y[rows], data.qid[rows] + shift, data.given_names)


@pytest.mark.parametrize("shift", [0, 1000])
def test_the_same_rows_in_any_order_are_found_whatever_their_ids(parts, shift):
    train, vali, test = parts
    assert shared_queries(parts) == shared_queries((train,)) == {}
    known = shuffled(of_queries(train, np.array([2, 4, 9])), shift)
    sentence = (
        "3 of 8 test queries are also in the training part by all their rows, such as {}. Keep all rows of a query"
    )
    expected = {f"{sentence.format(known.qid[0])} in one part.": True}
    assert shared_queries((train, vali, joined(known, test))) == expected
    y = known.y.copy()
    y[::6] = 7
    relabelled = joined(RankingData(known.X, y, known.qid), test)
    by_ids = {sentence.replace("all their rows", "their ids"): False for sentence in expected}
    assert shared_queries((train, vali, relabelled)) == ({} if shift else by_ids)


def test_digests_are_equal_for_the_same_rows_only():
    rng = np.random.default_rng(1)
    X, y, qid = rng.integers(-1, 2, (6000, 2)) * 0.5, rng.integers(0, 2, 6000), np.repeat(np.arange(2000), 3)
    rows = np.column_stack([X, y]).reshape(2000, 3, 3).tolist()
    contents = [tuple(sorted(map(tuple, triple))) for triple in rows]
    for dtype, zero in ((np.float64, 0.0), (np.float32, 0.0), (np.float64, -0.0)):
        digests = query_digests(RankingData(np.where(X == 0, zero, X).astype(dtype), y, qid)).tolist()
        pairs = set(zip(digests, contents, strict=True))
        assert len(pairs) == len(set(digests)) == len(set(contents)) < 1500


def test_queries_without_pairs_may_be_alike():
    known = RankingData([[0.0], [0.0], [1.0], [0.0]], [0, 0, 1, 0], [7, 7, 8, 8])
    assert shared_queries((known, RankingData([[0.0], [0.0]], [0, 0], [9, 9]))) == {}
    [sentence] = shared_queries((known, RankingData([[0.0], [1.0], [0.0], [0.0]], [0, 1, 0, 0], [9, 9, 10, 10])))
    assert sentence.startswith("2 of 2 validation queries are also in the training part by all their rows")


@pytest.mark.parametrize(
    ("ids", "n_sentences"),
    [
        ((range(1, 7), range(1, 4), range(1, 4)), 0),  # each part counts its queries
        ((range(6), range(3), range(2)), 0),
        ((range(6), range(6), range(6)), 3),  # the rows of each query were dealt
        ((range(6), [0, 1, 2, 3, 5], [0, 1, 3, 4]), 3),
        (([1, 2, 4, 6, 7], [3, 5], range(1, 5)), 0),  # validation queries were drawn
        ((range(3, 9), [3, 5], range(20, 22)), 1),
        ((["a", "b"], ["b"], ["c"]), 1),
        ((range(1, 64), range(64, 85), range(85, 107)), 0),  # OHSUMED's
    ],
)
def test_ids_tell_unless_a_part_only_counts_its_queries(ids, n_sentences):
    draw = np.random.default_rng(0)
    parts = [RankingData(draw.random((2 * len(part), 2)), [0, 1] * len(part), np.repeat(part, 2)) for part in ids]
    found = shared_queries(parts)
    assert list(found.values()) == [False] * n_sentences
    assert all("part by their ids, such as " in sentence for sentence in found)


def test_fit_warns_of_validation_queries_that_are_training_queries(parts):
    train, vali, _ = parts
    with pytest.warns(UserWarning, match="2 of 7 validation queries are also in the training part by all their rows"):
        RankRLS().fit(train, validation=joined(of_queries(train, np.array([0, 5])), vali))
    RankRLS().fit(train, validation=vali)


CSV = "query,label,a,b\n" + "".join(f"q{n // 6},{n % 3 % 2},{n * 7919 % 997},{n % 7}\n" for n in range(240))
LETOR = "".join(f"{n % 3 % 2} qid:{n // 6} 1:{n * 7919 % 997} 2:{n % 7}\n" for n in range(240))
TABLE = 'source = "table"\nfile = "t.csv"\nlabel = "label"\nquery = "query"\n'
DATA = {
    "a table": TABLE + "split = {}",
    "folds of a table": TABLE + "split = {folds = 7}",
    "a LETOR file": 'source = "letor"\nfile = "t.txt"\nsplit = {validation = 0.3, test = 0.1}',
    "a folder without validation part": 'source = "letor"\nfolder = "folder"\nsplit = {validation = 0.2}',
    "logs": 'source = "table"\nfile = "t.parquet"\nmissing = 0.0\nsplit = {folds = 4}',
    "digits": 'source = "digits"\nn_queries = 20\nn_documents = 10',
    "planted": 'source = "planted"\nn_queries = 20',
    "shop": 'source = "shop"\nn_queries = 20',
    "web": 'source = "web"\nqueries = 20',
}


def ingested(folder):
    """Write the table of a log."""
    world = shop(20)
    (folder / "log.jsonl").write_text(plugin(world))
    grades = "".join(f"{query},{doc},{grade or 0}\n" for query, _, hits in world for doc, grade, *_ in hits)
    (folder / "j.csv").write_text("query_id,document,grade\n" + grades)
    ingest(folder / "log.jsonl", folder / "t.parquet", judgments=folder / "j.csv")


def queries_of(parts):
    """The number of documents of each query, which all stand in one part."""
    ids = np.concatenate([part.qid for part in parts])
    assert len(np.unique(ids)) == sum(part.n_queries for part in parts)
    assert shared_queries(parts) == {}
    return dict(zip(*np.unique(ids, return_counts=True), strict=True))


@pytest.mark.parametrize("source", [*DATA, "memory"])
def test_no_source_of_folds_deals_the_rows_of_a_query_to_two_parts(source, tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    (tmp_path / "t.txt").write_text(LETOR)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "my.train").write_text(LETOR)
    (tmp_path / "folder" / "my.test").write_text("1 qid:100 1:2000\n0 qid:100 1:3\n")
    ingested(tmp_path)
    (tmp_path / "p.toml").write_text(f'name = "p"\n[data]\n{DATA.get(source, DATA["planted"])}\n')
    problem = load_problem(tmp_path / "p.toml")
    if source == "memory":
        problem = make_problem("p", joined(*problem.load_fold(1)), {"data.split.folds": 5})
    folds = [problem.load_fold(fold) for fold in range(1, problem.n_folds() + 1)]
    sizes = [queries_of(fold) for fold in folds]
    assert all(size == sizes[0] for size in sizes) and min(sizes[0].values()) > 1
    train = folds[0][0]
    halves = [of_queries(train, half_of(train.n_queries, half, 0)) for half in (0, 1)]
    assert queries_of(halves).items() <= sizes[0].items()


def test_a_copied_query_ends_the_reading_of_a_fold_unless_it_is_allowed(parts):
    train, vali, test = parts
    copied = joined(test, shuffled(of_queries(vali, np.array([1])), 1000))
    sentence = r"^fold 2: 1 of 6 test queries are also in the validation part by all their rows, such as 10\d\d\. Keep"
    problem = make_problem("p", [parts, (train, vali, copied)])
    problem.load_fold(1)
    for _ in range(2):
        with pytest.raises(ValueError, match=rf'{sentence} all rows .* Or allow it: --set data\.overlap="allow"$'):
            problem.load_fold(2)
    allowed = make_problem("p", [parts, (train, vali, copied)], {"data.overlap": "allow"})
    assert allowed.load_fold(2)[2].n_queries == 6
    assert allowed.configuration() == problem.configuration(), "the setting changes no result"
