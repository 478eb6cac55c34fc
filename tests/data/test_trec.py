"""TREC files against ir-measures, which reads and scores them with code of its own."""

import gzip
from itertools import permutations

import ir_measures
import numpy as np
import pytest
import pytrec_eval

from moerank.data import RankingData
from moerank.data.trec import read_run, write_qrels, write_run
from moerank.metrics import ERR, MAP, MRR, NDCG, Hit, MeanNDCG, Precision, Recall


def judged(seed=0, n_queries=15):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 30, n_queries)
    qid = np.repeat([f"q{number}" for number in range(n_queries)], sizes)
    documents = [f"d{number}" for number in rng.permutation(len(qid))]
    return RankingData(np.zeros((len(qid), 1)), rng.integers(0, 3, len(qid)), qid, documents=documents)


def small(**changes):
    return RankingData([[0.1], [0.9]], **{"y": [0, 1], "qid": [7, 7], "documents": ["a", "b"]} | changes)


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e300], ids=["plain", "equal in single precision", "beyond it"])
def test_other_tools_compute_our_metrics_of_the_files(tmp_path, scale):
    data = judged()
    levels = np.random.default_rng(1).permutation(data.n_documents)
    levels = np.where(data.y == 1, levels // 8 * 8 + 0.5, levels)  # equal scores only of documents with equal labels
    scores = 1.0 + scale * levels
    write_run(tmp_path / "test.run", data, scores)
    write_qrels(tmp_path / "test.qrels", data)
    ours = {"AP": MAP(), "RR": MRR(), "R@5": Recall(5), "nDCG@10": NDCG(10, gain="linear")}
    measures = [ir_measures.AP, ir_measures.RR, ir_measures.R @ 5, ir_measures.nDCG @ 10]
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "test.qrels")))
    run = list(ir_measures.read_trec_run(str(tmp_path / "test.run")))
    found = list(ir_measures.iter_calc(measures, qrels, run))
    queries = data.qid[data.offsets[:-1]].tolist()
    for name, metric in ours.items():
        theirs = {entry.query_id: entry.value for entry in found if str(entry.measure) == name}
        np.testing.assert_allclose(
            metric.per_query(data, scores), [theirs[query] for query in queries], rtol=0, atol=1e-12
        )


def test_trec_eval_has_our_value_in_the_mean_over_all_ids_of_equal_scores(tmp_path):
    y, scores, ids = [0, 2, 1, 0, 1], [3.0, 1.0, 1.0, 1.0, 0.5], ["z", "a", "b", "c", "y"]
    names = {"map": MAP(), "recip_rank": MRR(), "P_2": Precision(2), "ndcg_cut_3": NDCG(3, gain="linear")}
    values = []
    for order in permutations(range(1, 4)):
        documents = [ids[0], *(ids[row] for row in order), ids[4]]
        data = RankingData(np.zeros((5, 1)), y, [7] * 5, documents=documents)
        with pytest.warns(UserWarning, match="in 1 of 1 queries documents of different labels have equal scores"):
            write_run(tmp_path / "test.run", data, scores)
        write_qrels(tmp_path / "test.qrels", data)
        with open(tmp_path / "test.run") as run, open(tmp_path / "test.qrels") as qrels:
            read = pytrec_eval.parse_run(run), pytrec_eval.parse_qrel(qrels)
        assert sorted(read[0]["7"].values()) == sorted(scores)
        evaluator = pytrec_eval.RelevanceEvaluator(read[1], {"map", "recip_rank", "P.2", "ndcg_cut.3"})
        values.append([evaluator.evaluate(read[0])["7"][name] for name in names])
    expected = [metric.score(data, scores) for metric in names.values()]
    np.testing.assert_allclose(np.mean(values, axis=0), expected, rtol=0, atol=1e-12)
    assert np.ptp(values, axis=0).min() > 0.01


def test_what_is_written_is_read_again(tmp_path):
    data, scores = judged(), np.random.default_rng(2).standard_normal(judged().n_documents)
    write_run(tmp_path / "test.run", data, scores)
    read = read_run(tmp_path / "test.run", data)
    for metric in (MAP(), MRR(), NDCG(3), ERR(), Precision(5), MeanNDCG()):
        np.testing.assert_array_equal(read.per_query(metric), metric.per_query(data, scores))
        assert read.score(metric) == metric.score(data, scores)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("by_label", [False, True])
def test_a_run_is_scored_as_trec_eval_scores_it(tmp_path, seed, by_label):
    rng = np.random.default_rng(seed)
    data = judged(seed)
    if by_label:
        rows = np.lexsort((-data.y, np.searchsorted(data.offsets, np.arange(data.n_documents), "right")))
        data = RankingData(data.X, data.y[rows], data.qid[rows], documents=data.documents[rows])
    run = {}
    for query in set(data.qid.tolist()) - {"q0", "q3"}:
        own = [d for d, q in zip(data.documents.tolist(), data.qid.tolist(), strict=True) if q == query]
        ids = [d for d in own if rng.random() < 0.7] + [f"u{number}" for number in range(rng.integers(5))]
        if ids:
            values = rng.choice([1.5, 1.5 + 1e-12, -2.0, 0.25, 7.0], len(ids)) if seed % 2 else 0.5 * np.ones(len(ids))
            run[query] = dict(zip(ids, values.tolist(), strict=True))
    lines = [f"{q} Q0 {d} 1 {s!r} x" for q, given in run.items() for d, s in given.items()]
    (tmp_path / "other.run").write_text("\n".join(lines))
    qrels = {q: {} for q in data.qid.tolist()}
    for q, d, label in zip(data.qid.tolist(), data.documents.tolist(), data.y.tolist(), strict=True):
        qrels[q][d] = label
    names = {"map": MAP(), "recip_rank": MRR(), "P_5": Precision(5), "recall_5": Recall(5)}
    names |= {"ndcg_cut_5": NDCG(5, gain="linear"), "ndcg_cut_10": NDCG(10, gain="linear"), "success_5": Hit(5)}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map", "recip_rank", "P", "recall", "ndcg_cut", "success"})
    values = theirs.evaluate(run)
    with pytest.warns(UserWarning, match="unjudged.*missing.*tied documents, and .* missing queries"):
        read = read_run(tmp_path / "other.run", data)
    for name, metric in names.items():
        expected = [values.get(q, {}).get(name, 0.0) for q in data.qid[data.offsets[:-1]].tolist()]
        np.testing.assert_allclose(read.per_query(metric), expected, rtol=0, atol=1e-12)
        assert abs(read.score(metric) - np.mean(expected)) < 1e-12


def test_documents_of_only_one_side(tmp_path):
    data = RankingData(np.zeros((4, 1)), [0, 1, 2, 1], [7] * 4, documents=list("abcd"))
    path = tmp_path / "bm25.run.gz"
    path.write_bytes(gzip.compress(b"7 Q0 d 1 -2.5 bm25\n\n7 Q0 x 2 -3 bm25\n7 Q0 b 3 -3 bm25\n8 Q0 a 1 9 bm25\n"))
    with pytest.warns(UserWarning, match=r"gz: 1 unjudged, 2 missing, 2 tied documents, and 0 missing queries, count"):
        run = read_run(path, data)
    assert run.data.documents.tolist() == ["a", "b", "c", "d", "x"]
    assert run.scores.tolist() == [-np.inf, -3.0, -np.inf, -1.0, -2.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"documents": None}, "the documents have no ids; give documents="),
        ({"documents": ["a", "a"]}, "document a is twice in query 7"),
        ({"documents": ["a", "b c"]}, r"\('7', 'b c'\) is empty or has a space"),
        ({"documents": ["a", ""]}, r"\('7', ''\) is empty or has a space"),
        ({"qid": ["red shoes"] * 2}, "red shoes.* is empty or has a space"),
    ],
)
def test_data_that_no_file_can_name_are_refused(tmp_path, changes, message):
    data = small(**changes)
    (tmp_path / "file").write_text("7 Q0 a 1 0.5 x")
    for use in (lambda path: write_run(path, data, [1, 2]), lambda path: read_run(path, data)):
        with pytest.raises(ValueError, match=message):
            use(tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("7 Q0 a 1 0.5 x\n7 Q0 b 0.5 x", r"line 2: '7 Q0 b 0.5 x' is not like 'q1 Q0 p7 1 12.5 bm25'"),
        ("7 Q0 a 1 nan x", "line 1: the score 'nan' is not a finite number"),
        ("7 Q0 a 1 1e999 x", "line 1: the score '1e999' is not a finite number"),
        ("7 Q0 a 1 1 x\n7 Q0 a 2 0.5 x", "line 2: document a is twice in query 7"),
        ("8 Q0 a 1 0.5 x", "none of its documents is in data, whose first is 'a' of query 7"),
    ],
)
def test_wrong_runs_are_refused_by_line(tmp_path, text, message):
    (tmp_path / "wrong.run").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_run(tmp_path / "wrong.run", small())


def test_a_tag_is_one_word_and_a_run_one_ranking(tmp_path):
    for tag in ("", "a b", "a\nq Q0 d 1 1 x", " a"):
        with pytest.raises(ValueError, match="is not one word"):
            write_run(tmp_path / "run", small(), [1, 2], tag=tag)
    with pytest.raises(ValueError, match=r"has shape \(2, 1\); a run has one"):
        write_run(tmp_path / "run", small(), [[1], [2]])
