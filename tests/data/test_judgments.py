"""Files of judgments are read in all their forms, joined with a log, and their grades become labels."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers import logs
from helpers.logs import GOLDEN

from moerank.data.logs.ingest import ingest
from moerank.data.logs.judgments import labels_by, read_judgments

TEXTS = [(query, doc, grade) for _, query, doc, grade in logs.judged(GOLDEN)]
IDS = [(qid, doc, grade) for qid, _, doc, grade in logs.judged(GOLDEN)]
RATINGS = [
    {
        "query": query,
        "ratings": [{"docId": doc, "rating": f"{g:.1f}"} for _, q, doc, g in logs.judged(GOLDEN) if q == query],
    }
    for _, query, _ in GOLDEN
]
WORKBENCH = {"name": "shop", "type": "IMPORT_JUDGMENT", "judgmentRatings": RATINGS}
RRE = {
    "index": "shop",
    "id_field": "id",
    "topics": [
        {
            "query_groups": [
                {
                    "queries": [{"placeholders": {"$query": "trail shoes"}}],
                    "relevant_documents": {"p7": {"gain": 3}, "p3": {"rating": 1}, "p9": {"gain": 0}},
                },
                {"queries": [{"placeholders": {"$query": "blue kettle"}}], "relevant_documents": {"2": ["k1"]}},
            ]
        }
    ],
}
QUEPID_RRE = {
    "queries": [{**entry, "relevant_documents": group["relevant_documents"]}
    for group in RRE["topics"][0]["query_groups"]
    for entry in group["queries"]]
}  # fmt: skip


def table(header, row, separator=","):
    return "\n".join([header, *(separator.join(row(*judgment)) for judgment in logs.judged(GOLDEN))])


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (logs.trec(GOLDEN), "id"),
        (logs.quepid(GOLDEN), "query"),
        (table("query,doc_id,rating", lambda q, t, d, g: [t, d, str(g)]), "query"),
        (table("query_id\tquery\tdoc_id\tgrade", lambda q, t, d, g: [q, t, d, str(g)], "\t"), "both"),
        (table("grade,keywords,docId", lambda q, t, d, g: [str(g), t, d]), "query"),
        (table("Team Name,Query Text,Doc ID,Title,Rating", lambda q, t, d, g: ["x", t, d, "", f"{g}.0"]), "query"),
        ("".join(f"{t}|{d:8}|{g}.0|CLICK_LOGS\n" for t, d, g in TEXTS), "query"),
        ("".join(f"{g}.0 qid:{q} # {d} {t}\n\n" for q, t, d, g in logs.judged(GOLDEN)), "both"),
        ("# qid:q1: trail shoes*1\n# qid:q2: blue kettle*1\n\n"
         + "".join(f"{g} qid:{q} #\t{d}\n" for q, d, g in IDS), "both"),
        (json.dumps(RRE), "query"),
        (json.dumps(QUEPID_RRE, indent=1), "query"),
        (json.dumps(WORKBENCH), "query"),
        (json.dumps({"hits": {"hits": [{"_source": WORKBENCH}]}}), "query"),
    ],
)  # fmt: skip
def test_every_form_gives_the_same_judgments(text, known, tmp_path):
    (tmp_path / "j").write_text(text)
    found = list(read_judgments(tmp_path / "j"))
    if known != "id":
        assert sorted((entry.query, entry.doc, entry.grade) for entry in found) == sorted(TEXTS)
    if known != "query":
        assert sorted((entry.id, entry.doc, entry.grade) for entry in found) == sorted(IDS)


def test_what_spreadsheets_and_evaluators_do_to_a_text(tmp_path):
    (tmp_path / "j").write_text('query,docid,rating\n" -20 degrees",x,1\n"a, b",y,2\n')
    assert [entry.query for entry in read_judgments(tmp_path / "j")] == ["-20 degrees", "a, b"]
    group = {"queries": [{"placeholders": {"$q": text}} for text in ("a", "b")], "relevant_documents": {"1": ["x"]}}
    (tmp_path / "j").write_text(json.dumps({"query_placeholder": "$q", "topics": [{"query_groups": [group]}]}))
    assert [(entry.query, entry.doc) for entry in read_judgments(tmp_path / "j")] == [("a", "x"), ("b", "x")]
    (tmp_path / "j").write_text("query,doc,clicks\na,x,5\n")
    assert [entry.grade for entry in read_judgments(tmp_path / "j", grade="clicks")] == [5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query,docid\na,b\n", "no column is a grade among query,docid; name it by --grade|no column is a grade"),
        ("rating,other\n1,b\n", "no column is a query or doc among rating, other"),
        ("query,docid,rating\na,b,high\n", "line 2: the grade 'high' is no number"),
        ("query,docid,rating\na,b,1\nc\n", "line 3: no row of the table"),
        ("q1 0 p7 3\nq1 0 p8 x\n", "line 2: the grade 'x' is no number"),
        ("3 qid:1 # a\n3 qid:1\n", "line 2: '3 qid:1.*' is not like"),
        ('{"queries": 5}', "JSON of judgments has judgmentRatings, topics or queries"),
        ('{"queries"', "not JSON"),
        (json.dumps(WORKBENCH).replace("2.0", "nan"), "the grade 'nan' is no number"),
        ('{"action_name": "click", "query_id": "x"}\n{"action_name": "click"}', "raw events are no judgments"),
        ("action_name,query_id\nclick,x\n", "raw events are no judgments"),
    ],
)
def test_what_is_no_judgment(text, message, tmp_path):
    (tmp_path / "j").write_text(text)
    with pytest.raises(ValueError, match=message):
        list(read_judgments(tmp_path / "j"))


GRADES = np.array([0.0, 0, 0, 0.2, 0.4, 0.6, 0.8, 3.0])


@pytest.mark.parametrize(
    ("rule", "labels"),
    [
        ("scale=4", [0, 0, 0, 1, 2, 2, 3, 12]),
        ("scale=2.5", [0, 0, 0, 1, 1, 2, 2, 8]),
        ("bins=.4,.8", [0, 0, 0, 0, 1, 1, 2, 2]),
        ("quantiles=4", [0, 0, 0, 1, 2, 2, 3, 3]),
    ],
)
def test_rules_make_labels(rule, labels):
    label = labels_by(rule, lambda: GRADES)
    assert [label(grade) for grade in GRADES] == labels


def test_a_grade_that_is_no_label_is_refused(tmp_path):
    (tmp_path / "log").write_text(logs.plugin(GOLDEN))
    (tmp_path / "j.csv").write_text(logs.quepid(GOLDEN).replace("1.0", "-1.0"))
    with pytest.raises(
        ValueError, match=r"j.csv, line 3: the grade -1 is no label.*scale=K, bins=.*quantiles=N, or clip"
    ):
        ingest(tmp_path / "log", tmp_path / "t.parquet", judgments=tmp_path / "j.csv")
    done = ingest(tmp_path / "log", tmp_path / "t.parquet", judgments=tmp_path / "j.csv", grades="clip")
    assert pd.read_parquet(done.table)["label"].tolist() == [3, 0, 0, 2]
    for rule in ("scale=0", "scale=a", "bins=", "bins=2,1", "quantiles=1", "quantiles=2.5", "round"):
        with pytest.raises(ValueError, match=f"--grades {rule}: write scale=K"):
            labels_by(rule, lambda: GRADES)


@pytest.mark.parametrize(
    ("judgments", "options", "message"),
    [
        ("query,docid,rating\nTrail shoes,p7,1\n", {}, "has 'trail shoes', the judgments 'Trail shoes': .* case"),
        ("query,docid,rating\ntrail  shoes,p7,1\n", {}, "they differ in blanks"),
        ("query,docid,rating\nq1,p7,1\n", {}, "0 of 1 judgments joined by query text; .* ids of queries: --join id"),
        (logs.trec(GOLDEN).replace("q", "x"), {}, "joined by query id; the log has queries such as 'q1'"),
        ("query,docid,rating\ntrail shoes,7,1\n", {}, "documents such as 'p3', the judgments '7'"),
        ("query,docid,rating\ntrail shoes,p7,1\ntrail shoes,p7,2\n", {}, "line 2 and line 3: two grades of .*'p7'"),
        (logs.quepid(GOLDEN), {"join": "id"}, "joined by query id; the judgments have the log's texts"),
        ("query,docid,rating\n", {}, "there is no judgment in the file"),
    ],
)  # fmt: skip
def test_judgments_that_do_not_fit(judgments, options, message, tmp_path):
    (tmp_path / "log").write_text(logs.plugin(GOLDEN))
    (tmp_path / "j.csv").write_text(judgments)
    with pytest.raises(ValueError, match=message):
        ingest(tmp_path / "log", tmp_path / "t.parquet", judgments=tmp_path / "j.csv", **options)


def test_whole_ids_of_vespa_and_logs_without_labels(tmp_path):
    (tmp_path / "log").write_text(logs.vespa(GOLDEN))
    (tmp_path / "j").write_text("q1 0 id:shop:product::p7 3\n")
    done = ingest(tmp_path / "log", tmp_path / "t.parquet", judgments=tmp_path / "j", unjudged=0)
    frame = pd.read_parquet(done.table)
    assert frame["label"].tolist() == [3, 0, 0, 0, 0]
    assert frame["doc"][0] == "id:shop:product::p7"
    with pytest.raises(ValueError, match=r"log, line 1: the log has no labels; name judgments by --judgments"):
        ingest(tmp_path / "log", tmp_path / "u.parquet")
