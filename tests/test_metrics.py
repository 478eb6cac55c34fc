"""Metrics against LETOR's rules restated, against trec_eval, and against values of LETOR's scripts on real data."""

import pickle
from dataclasses import replace
from itertools import pairwise

import ir_measures
import numpy as np
import pytest
import scipy.stats
from helpers.plain import all_orders
from hypothesis import given, settings
from hypothesis import strategies as st

from moerank.data import RankingData
from moerank.metrics import ERR, MAP, MRR, NDCG, Hit, MeanNDCG, Metric, Precision, Recall, make_metric

METRICS = [
    NDCG(1),
    NDCG(5, convention="letor"),
    NDCG(10),
    NDCG(10, convention="letor"),
    NDCG(10, convention="letor", short_queries="own_length"),
    NDCG(10, gain="linear"),
    NDCG(7, discount="letor"),
    MeanNDCG(),
    MeanNDCG(convention="letor"),
    MeanNDCG(gain="linear", discount="letor"),
    Precision(1),
    Precision(10),
    Recall(1),
    Recall(10),
    MRR(),
    MRR(5),
    Hit(3),
    ERR(),
    ERR(10, max_label=5),
    MAP(),
]


def labelled(y, qid):
    return RankingData(np.zeros((len(y), 1)), y, qid)


def random_data(seed, n_queries=12, longest=40, largest_label=4):
    """Queries of 1 to `longest` documents, the third without a relevant one."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, n_queries)
    y = rng.integers(0, largest_label + 1, lengths.sum()) * (rng.random(lengths.sum()) < 0.6)
    qid = np.repeat(np.arange(n_queries), lengths)
    y[qid == 2] = 0
    return labelled(y, qid)


def random_scores(data, n_individuals, seed, n_levels=None):
    """Normal scores; with `n_levels` they are rounded to multiples of 1 / n_levels, so that many are equal."""
    scores = np.random.default_rng(seed).standard_normal((data.n_documents, n_individuals))
    return scores if n_levels is None else np.round(scores * n_levels) / n_levels


# LETOR's rules, restated for one query: labels in order of rank in, value out.


def letor_dcg(metric, labels):
    total = 0.0
    for rank, label in enumerate(labels, start=1):
        gain = 2.0**label - 1 if metric.gain == "exp2" else float(label)
        if (metric.discount or metric.convention) == "letor":
            total += gain if rank <= 2 else gain / np.log2(rank)
        else:
            total += gain / np.log2(1 + rank)
    return total


def letor_ndcg(metric, labels, k):
    ideal = letor_dcg(metric, sorted(labels, reverse=True)[:k])
    return letor_dcg(metric, labels[:k]) / ideal if ideal > 0 else 0.0


def expected_reciprocal_rank(metric, labels):
    """The mean of 1 / rank over all readers: at each document a share of those who have come there stops."""
    readers, value = 1.0, 0.0
    for rank, label in enumerate(labels, start=1):
        stopped = readers * (2**label - 1) / 2**metric.max_label
        value += stopped / rank
        readers -= stopped
    return value


def letor_value(metric, labels):
    if isinstance(metric, NDCG):
        if metric.convention == "letor" and metric.short_queries is None and len(labels) < metric.k:
            return 0.0
        return letor_ndcg(metric, labels, metric.k)
    if isinstance(metric, MeanNDCG):
        return sum(letor_ndcg(metric, labels, k) for k in range(1, len(labels) + 1)) / len(labels)
    if isinstance(metric, Precision):
        return sum(label > 0 for label in labels[: metric.k]) / metric.k
    ranks = [rank for rank, label in enumerate(labels, start=1) if label > 0]
    if isinstance(metric, Recall):
        return sum(rank <= metric.k for rank in ranks) / max(len(ranks), 1)
    if isinstance(metric, Hit):
        return float(ranks[:1] <= [metric.k]) if ranks else 0.0
    if isinstance(metric, MRR):
        return 1 / ranks[0] if ranks and ranks[0] <= (metric.k or ranks[0]) else 0.0
    if isinstance(metric, ERR):
        return expected_reciprocal_rank(metric, labels[: metric.k])
    return sum(n_hits / rank for n_hits, rank in enumerate(ranks, start=1)) / max(len(ranks), 1)


def letor_per_query(metric, data, scores):
    values = []
    for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        order = np.argsort(-scores[begin:end], kind="stable")
        values.append(letor_value(metric, data.y[begin:end][order].tolist()))
    return np.array(values)


@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("n_levels", [None, 2, 0.1], ids=["distinct", "ties", "nearly constant"])
def test_values_are_letors(metric, n_levels):
    metric = replace(metric, ties="order")
    for seed, n_rankings in enumerate((19, 3)):
        data = random_data(seed)
        scores = random_scores(data, n_rankings, seed + 100, n_levels)
        values = metric.per_query(data, scores)
        expected = np.column_stack([letor_per_query(metric, data, column) for column in scores.T])
        assert values.shape == (data.n_queries, n_rankings)
        assert (expected[[0, 1, *range(3, 12)]] > 0).any()
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(metric.score(data, scores), expected.mean(axis=0), rtol=0, atol=1e-12)


def test_one_ranking_gives_a_float_and_many_give_a_column_each():
    data = random_data(0)
    scores = random_scores(data, 3, 1)
    for metric in METRICS:
        assert isinstance(metric.score(data, scores[:, 0]), float)
        assert metric.per_query(data, scores[:, 0]).shape == (data.n_queries,)
        assert metric.score(data, scores[:, :1]).shape == (1,)
        assert metric.per_query(data, scores[:, :0]).shape == (data.n_queries, 0)
        np.testing.assert_array_equal(metric.batch(data, scores), metric.score(data, np.asfortranarray(scores)))
        np.testing.assert_array_equal(metric.score(data, scores[:, 1].tolist()), metric.score(data, scores)[1])


# Groups of equal scores in a query, the best first.
GROUPS = [(7,), (1, 7, 2), (4, 5), (2, 1, 6, 3), (3, 3, 3), (1, 1), (6,), (1,), (1, 1, 1, 1, 7)]


@pytest.mark.parametrize("weighted", [False, True])
def test_equal_scores_count_as_the_mean_over_all_their_orders(weighted):
    rng = np.random.default_rng(3)
    sizes = np.array([sum(groups) for groups in GROUPS])
    level = np.concatenate([np.repeat(np.arange(len(groups)), groups) for groups in GROUPS])
    qid = np.repeat(np.arange(len(GROUPS)), sizes)
    rows = np.lexsort((rng.random(len(qid)), qid))
    y, x = rng.integers(0, 5, len(qid)) * (rng.random(len(qid)) < 0.7), -level[rows] / 8.0
    u, v = rng.uniform(0.5, 2.0, (2, len(y))) if weighted else np.ones((2, len(y)))
    data = RankingData(x[:, None], y, qid, document_weights=u, query_weights=v[: len(GROUPS)])
    W = np.arange(1.0, 41.0)[:, None]
    for metric in [*METRICS, NDCG(3), NDCG(2, gain="linear"), Precision(4), Recall(3), Hit(2), MRR(3), ERR(6), ERR(2)]:
        expected = []
        for rows in map(slice, *zip(*pairwise(data.offsets), strict=True)):
            query = RankingData(x[rows, None], y[rows], 0, document_weights=u[rows])
            expected.append(metric.per_query(query, all_orders(x[rows])).mean())
        for values in (
            metric.per_query(data, x),
            metric.per_query(data, np.tile(x[:, None], 23))[:, 22],
            metric.of_linear(data, W)[:, 39],
            metric.of_linear(data, W[:1])[:, 0],
        ):
            np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)
        mean = np.average(expected, weights=data.query_weights)
        assert metric.score(data, x) == pytest.approx(mean, abs=1e-12)
        assert metric.mean_of_linear(data, W)[5] == pytest.approx(mean, abs=1e-12)


def test_equal_scores_of_many_documents_have_the_values_of_drawing_without_putting_back():
    n, r, k = 300, 40, 10
    data = labelled(np.arange(n) < r, [0] * n)
    hits = scipy.stats.hypergeom(n, r, np.arange(n + 1))  # relevant documents among the first 0 … n
    none = hits.pmf(0)
    discount = 1 / np.log2(np.arange(2, k + 2))
    precisions = (1 + np.arange(n) * (r - 1) / (n - 1)) / np.arange(1, n + 1)
    for metric, expected in (
        (Hit(k), 1 - none[k]),
        (Precision(k), r / n),
        (Recall(k), k / n),
        (NDCG(k), r / n),
        (NDCG(k, convention="letor"), r / n),
        (MRR(), ((none[:-1] - none[1:]) / np.arange(1, n + 1)).sum()),
        (MAP(), precisions.mean()),
    ):
        assert metric.score(data, np.zeros(n)) == pytest.approx(expected, abs=1e-13)
    graded = labelled([3, 2, 1, 0, 0], [1] * 5)
    gains = [7, 3, 1, 0, 0]
    discount = 1 / np.log2(np.arange(2, 7))
    value = np.mean(gains) * discount.sum() / (gains @ discount)
    assert NDCG(10).score(graded, np.zeros(5)) == pytest.approx(value, abs=1e-15) == pytest.approx(0.6906, abs=1e-4)


@pytest.mark.parametrize("metric", [NDCG(10), NDCG(16), NDCG(17), MeanNDCG(), MAP()], ids=repr)
def test_a_perfect_ranking_is_exactly_1(metric):
    data = random_data(0)
    perfect = RankingData(data.y[:, None].astype(float), data.y, data.qid)
    relevant = np.maximum.reduceat(data.y, data.offsets[:-1]) > 0
    assert (metric.per_query(data, data.y)[relevant] == 1.0).all()
    assert (metric.of_linear(perfect, np.arange(1.0, 20.0)[:, None])[relevant] == 1.0).all()


examples = settings(max_examples=25, deadline=None)


@examples
@given(seed=st.integers(0, 10**6), n_levels=st.sampled_from([1, 2, 8, 0.1]))
def test_the_order_of_the_rows_changes_no_value_whatever_scores_are_equal(seed, n_levels):
    data, rng = random_data(seed), np.random.default_rng(seed)
    scores = random_scores(data, 5, seed, n_levels)
    old_engine = data.y + rng.normal(size=data.n_documents)
    for key in (rng.random(data.n_documents), data.y, -data.y, -old_engine):
        rows = np.lexsort((key, data.qid))
        permuted = labelled(data.y[rows], data.qid[rows])
        for metric in METRICS:
            expected = metric.per_query(data, scores)
            np.testing.assert_allclose(metric.per_query(permuted, scores[rows]), expected, rtol=0, atol=1e-12)


@examples
@given(
    seed=st.integers(0, 10**6), width=st.integers(1, 40), cut=st.integers(0, 40), n_levels=st.sampled_from([None, 1])
)
def test_an_individual_has_the_same_bits_in_any_batch(seed, width, cut, n_levels):
    data = random_data(seed)
    scores = random_scores(data, width, seed, n_levels)
    for metric in METRICS:
        together = metric.score(data, scores)
        np.testing.assert_array_equal(
            np.concatenate([metric.score(data, scores[:, :cut]), metric.score(data, scores[:, cut:])]), together
        )
        column = seed % width
        assert metric.score(data, scores[:, column]) == together[column]


@examples
@given(seed=st.integers(0, 10**6))
def test_orders_of_queries_and_rows_and_increasing_functions_of_distinct_scores_change_no_bit(seed):
    data, rng = random_data(seed), np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(float(data.n_documents)), (5, 1)), axis=1).T - 50.0
    order = rng.permutation(data.n_queries)
    rows = [rng.permutation(np.arange(data.offsets[q], data.offsets[q + 1])) for q in order]
    rows = np.concatenate(rows)
    permuted = labelled(data.y[rows], data.qid[rows])
    for metric in METRICS:
        values = metric.per_query(data, scores)
        for increasing in (lambda s: 3 * s + 7, lambda s: s**3, lambda s: np.exp(s / 10)):
            np.testing.assert_array_equal(metric.per_query(permuted, increasing(scores[rows])), values[order])


TREC_GAINS = {label: 2**label - 1 for label in range(5)}


@pytest.mark.parametrize(
    ("metric", "measure"),
    [
        (MAP(), ir_measures.AP),
        (Precision(1), ir_measures.P @ 1),
        (Precision(10), ir_measures.P @ 10),
        (NDCG(10), ir_measures.nDCG(dcg="log2", gains=TREC_GAINS) @ 10),
        (NDCG(5, gain="linear"), ir_measures.nDCG(dcg="log2") @ 5),
        (Recall(10), ir_measures.R @ 10),
        (MRR(), ir_measures.RR),
        (Hit(3), ir_measures.Success @ 3),
        (ERR(10), ir_measures.ERR @ 10),
    ],
    ids=str,
)
def test_agrees_with_trec_eval_where_conventions_coincide(metric, measure):
    """Without equal scores, which trec_eval orders by document id; ERR with gdeval, to its five decimals."""
    data = random_data(11, n_queries=20)
    scores = random_scores(data, 1, 12)[:, 0]
    documents = list(zip(data.qid.astype(str), map(str, range(data.n_documents)), strict=True))
    qrels = [ir_measures.Qrel(q, d, int(label)) for (q, d), label in zip(documents, data.y, strict=True)]
    run = [ir_measures.ScoredDoc(q, d, score) for (q, d), score in zip(documents, scores, strict=True)]
    provider, atol = (ir_measures.gdeval, 6e-6) if metric == ERR(10) else (ir_measures.pytrec_eval, 1e-12)
    theirs = {int(m.query_id): m.value for m in provider.iter_calc([measure], qrels, run)}
    ours = metric.per_query(data, scores)
    assert len(theirs) == 20
    assert ours.max() > 0
    np.testing.assert_allclose(ours, [theirs[query] for query in range(20)], rtol=0, atol=atol)


@pytest.fixture(scope="module")
def folds(letor_folder):
    """Data and feature values of the five test files of a set, by set and feature number."""

    def read(name, feature):
        read_folds = []
        for fold in range(1, 6):
            with open(letor_folder / name / f"Fold{fold}" / "test.txt") as file:
                words = [line.split("#")[0].split() for line in file]
            data = labelled([int(w[0]) for w in words], [w[1] for w in words])
            read_folds.append((data, np.array([float(w[1 + feature].partition(":")[2]) for w in words])))
        return read_folds

    return {name: read(name, feature) for name, feature in (("MQ2008", 39), ("OHSUMED", 11))}


@pytest.mark.parametrize(
    ("name", "metric", "published"),
    [
        ("MQ2008", NDCG(1), 0.3524),
        ("MQ2008", NDCG(5, convention="letor"), 0.4683),
        ("MQ2008", NDCG(10, convention="letor"), 0.2233),
        ("MQ2008", MeanNDCG(convention="letor"), 0.4831),
        ("MQ2008", MAP(), 0.4712),
        ("OHSUMED", NDCG(1), 0.5201),
        ("OHSUMED", NDCG(5, convention="letor"), 0.4652),
        ("OHSUMED", NDCG(10, convention="letor"), 0.4460),
        ("OHSUMED", MAP(), 0.4418),
    ],
)
def test_single_features_score_as_letors_scripts_say(folds, name, metric, published):
    metric = replace(metric, ties="order")  # as the scripts do; features have many equal values
    mean = np.mean([metric.score(data, scores) for data, scores in folds[name]])
    assert round(mean, 4) == published


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0, 2.0], r"shape \(2,\); give one score per document: shape \(3,\) or \(3, n_individuals\)"),
        (1.0, r"shape \(\)"),
        (np.zeros((2, 3)), r"shape \(2, 3\)"),
        (np.zeros((3, 1, 1)), r"shape \(3, 1, 1\)"),
        (["a", "b", "c"], "must be numbers"),
        ([0.0, np.nan, 0.0], "row 1 is nan; .* check the ranker's weights"),
        ([[0, 0], [0, 0], [0, -np.inf]], "row 2, individual 1 is -inf"),
    ],
)
def test_bad_scores_are_refused_by_place(scores, message):
    data = labelled([0, 1, 2], [1, 1, 1])
    for method in (NDCG(2).score, NDCG(2).per_query, MAP().score):
        with pytest.raises(ValueError, match=f"data: .*{message}"):
            method(data, scores)


class Revenue(Metric):
    name = "revenue"

    def values(self, data, scores):
        return np.array([[0.5] * scores.shape[1], [100.0] * scores.shape[1]])


def test_values_that_are_not_between_0_and_1_are_refused_wherever_they_are_taken():
    data, W = labelled([0, 1, 2, 1], [7, 7, 8, 8]), np.ones((2, 1))
    for call in (
        lambda: Revenue().per_query(data, np.arange(4.0)),
        lambda: Revenue().score(data, np.arange(4.0)),
        lambda: Revenue().mean_of_linear(data, W),
        lambda: Revenue().can_differ(data),
    ):
        with pytest.raises(ValueError, match=r"^revenue is 100 for query 8 of data\. Return values between 0 and 1$"):
            call()


def test_labels_too_large_for_the_exponential_gain():
    fits, too_large = labelled([0, 62, 1], [1, 1, 1]), labelled([0, 63, 1], [1, 1, 1])
    assert NDCG(2).score(fits, [0, 2, 1]) == 1.0
    for metric in (NDCG(2), MeanNDCG()):
        with pytest.raises(ValueError, match=r"y\[1\] is 63, too large .* gain='linear'"):
            metric.score(too_large, [0, 1, 2])
    assert NDCG(1, gain="linear").score(too_large, [0, 1, 2]) == 1 / 63


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NDCG(2.5), "k must be an integer, not 2.5"),
        (lambda: Precision(0), "k must be at least 1, not 0"),
        (lambda: NDCG(5, gain="exp"), "gain must be one of 'exp2', 'linear', not 'exp'"),
        (lambda: NDCG(5, short_queries="own"), "'zero', 'own_length'"),
        (lambda: MRR(ties="file"), "ties must be one of 'mean', 'order', not 'file'"),
        (lambda: NDCG(5, convention="trec"), "convention must be one of 'usual', 'letor', not 'trec'"),
        (lambda: MeanNDCG(discount="ln"), "discount must be one of .*, not 'ln'"),
        (lambda: make_metric("RBP@10"), "unknown metric 'RBP@10'; choose one of NDCG@k, P@k, Recall@k, Hit@k"),
        (lambda: make_metric("NDCG@"), "unknown metric"),
        (lambda: make_metric("MAP@5"), "unknown metric"),
        (lambda: make_metric("NDCG@٣"), "unknown metric 'NDCG@٣'"),
        (lambda: make_metric(5), "a metric has a name, such as 'NDCG@10', not 5"),
        (lambda: make_metric(None), "a metric has a name, such as 'NDCG@10', not None"),
        (lambda: make_metric("Hit"), "unknown metric 'Hit'"),
        (lambda: make_metric("NDCG@10 (letr)"), "convention must be one of 'usual', 'letor', not 'letr'"),
        (lambda: make_metric("MAP (letor)"), r"MAP does not have the conventions \(letor\), or has one twice"),
        (lambda: make_metric("NDCG@5 (letor)", convention="usual"), "has one twice"),
        (lambda: make_metric("NDCG@10 ("), "unknown metric"),
        (lambda: Hit(None), "k must be an integer, not None"),
        (lambda: ERR(max_label=63), "max_label .* 62"),
        (lambda: ERR(5, max_label=1).score(labelled([0, 2], [1, 1]), [1, 2]), r"y\[1\] is 2, above .* max_label=2"),
    ],
)
def test_unknown_names_and_conventions_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "metric",
    [
        *(NDCG(10), Precision(5), MAP(), MeanNDCG(), Recall(5), Hit(1), MRR(), MRR(10), ERR(), ERR(20)),
        *(NDCG(3, gain="linear", discount="log2"), NDCG(5, short_queries="zero"), ERR(4, max_label=2)),
        *(NDCG(10, convention="letor"), MeanNDCG(gain="linear", convention="letor")),
        *(NDCG(10, convention="letor", ties="order"), MAP(ties="order"), ERR(ties="order"), Hit(3, ties="order")),
    ],
    ids=repr,
)
def test_names_lead_back_to_the_metric(metric):
    for name in (metric.name, metric.name.lower(), f" {metric.name.upper()} "):
        assert make_metric(name) == metric


def test_conventions_are_part_of_name_and_identity():
    metric = make_metric("ndcg@10", convention="letor")
    assert metric == NDCG(10, convention="letor") != NDCG(10)
    assert metric.name == "NDCG@10 (letor)"
    assert NDCG(10, ties="order").name == "NDCG@10 (ties=order)"
    assert NDCG(10, gain="linear", discount="letor").name == "NDCG@10 (gain=linear, discount=letor)"
    assert len({NDCG(10), NDCG(10), Precision(10), MAP(), MAP(), MeanNDCG()}) == 4
    assert pickle.loads(pickle.dumps(metric)) == metric


@pytest.mark.parametrize(("dtype", "order"), [(np.float64, "C"), (np.float64, "F"), (np.float32, "C")])
@pytest.mark.parametrize(
    "metric", [*map(NDCG, (1, 10, 16, 17)), NDCG(5, short_queries="zero"), MAP(), Precision(3), MeanNDCG(), ERR(7)]
)
def test_values_under_linear_rankers_are_those_of_their_scores_with_any_number_of_threads(metric, dtype, order):
    rng = np.random.default_rng(17)
    sizes = np.append(rng.integers(1, 60, 40), [1, 2, 600, 1100, 3])
    qid = np.repeat(np.arange(45), sizes)
    # Few different values: many ties; and some queries without a relevant document.
    X = np.asarray(rng.integers(0, 3, (len(qid), 7)).astype(dtype) / 8, order=order)
    X.setflags(write=False)
    data = RankingData(X, rng.integers(0, 3, len(qid)) * (qid % 3 > 0), qid)
    W = np.where(rng.random((37, 7)) < 0.6, rng.integers(-4, 5, (37, 7)), 0) / 8.0
    W[0] = 0.0
    expected = metric.per_query(data, X.astype(float) @ W.T)  # exact in both precisions
    for workers in (1, 2, 3, 20):
        np.testing.assert_array_equal(metric.of_linear(data, W, workers=workers), expected)
        rounded = [metric.of_linear(RankingData(X / dtype(3), data.y, qid), W / 7, workers=n) for n in (1, workers)]
        np.testing.assert_array_equal(*rounded)
    np.testing.assert_array_equal(metric.mean_of_linear(data, W), metric.score(data, X.astype(float) @ W.T))


@pytest.mark.parametrize("metric", [NDCG(10), NDCG(20), MAP(), ERR()], ids=repr)
def test_a_query_of_weight_3_counts_as_three_queries(metric):
    rng = np.random.default_rng(5)
    data = random_data(5)
    times = rng.integers(1, 4, data.n_queries)
    X = rng.standard_normal((data.n_documents, 4))
    weighted = RankingData(X, data.y, data.qid, query_weights=times)
    rows = [np.arange(*data.offsets[q : q + 2]) for q in np.repeat(np.arange(data.n_queries), times)]
    documents = np.concatenate(rows)
    copies = RankingData(X[documents], data.y[documents], np.repeat(np.arange(len(rows)), list(map(len, rows))))
    W = rng.standard_normal((9, 4))
    expected = metric.score(copies, copies.X @ W.T)
    np.testing.assert_allclose(metric.score(weighted, X @ W.T), expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(metric.mean_of_linear(weighted, W), expected, rtol=0, atol=1e-14)
    values = metric.of_linear(weighted, W)
    np.testing.assert_allclose(weighted.weighted(values).mean(axis=0), expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(values, metric.of_linear(RankingData(X, data.y, data.qid), W))


def test_weights_of_documents_multiply_the_gain():
    weights = np.array([1.0, 2.0, 4.0, 1.0])
    data = RankingData(np.zeros((4, 1)), [0, 1, 2, 1], [1] * 4, document_weights=weights)
    gain = weights / weights.mean() * [0, 1, 3, 1]
    discount = 1 / np.log2(1 + np.arange(1, 5))
    ideal = np.sort(gain)[::-1]
    scores = [4.0, 3.0, 2.0, 1.0]
    assert NDCG(2).score(data, scores) == pytest.approx(gain[:2] @ discount[:2] / (ideal[:2] @ discount[:2]), abs=1e-15)
    each = [gain[:k] @ discount[:k] / (ideal[:k] @ discount[:k]) for k in range(1, 5)]
    assert MeanNDCG().score(data, scores) == pytest.approx(np.mean(each), abs=1e-15)
    assert Recall(2).score(data, scores) == pytest.approx(2 / 7, abs=1e-15)
    assert NDCG(4).score(data, gain) == 1.0
    alike = RankingData(np.zeros((4, 1)), [1] * 4, [1, 1, 2, 2], document_weights=[1, 2, 2, 2])
    assert NDCG(2).can_differ(alike).tolist() == [True, False]
    assert MAP().can_differ(alike).tolist() == [False, False]
    assert MAP().score(data, scores) == MAP().score(labelled([0, 1, 2, 1], [1] * 4), scores)
    W = np.eye(1)
    ranked = RankingData(np.array(scores)[:, None], data.y, data.qid, document_weights=weights)
    np.testing.assert_array_equal(NDCG(2).of_linear(ranked, W)[:, 0], NDCG(2).per_query(data, scores))
