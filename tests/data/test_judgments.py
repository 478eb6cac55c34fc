"""Files of judgments are read in all their forms, and joined with a log."""

import pytest
from helpers import logs
from helpers.logs import GOLDEN

from moerank.data.ingest import ingest, read_judgments

TEXTS = [(query, doc, grade) for _, query, doc, grade in logs.judged(GOLDEN)]
IDS = [(qid, doc, grade) for qid, _, doc, grade in logs.judged(GOLDEN)]


def table(header, row, separator=","):
    return "\n".join([header, *(separator.join(row(*judgment)) for judgment in logs.judged(GOLDEN))])


def plugin_demo(world):
    """The form of the demo of Elasticsearch's plug-in, with remarks first and a weight behind one of the texts."""
    texts = "".join(f"# qid:{qid}: {query}{'*2' * (qid == 'q1')}\n" for qid, query, _ in world)
    rows = "".join(f"{grade}\tqid:{qid} #\t{doc}\tA title\n" for qid, _, doc, grade in logs.judged(world))
    return f"# grade (0-4)\tqueryid\tdocId\ttitle\n# \n{texts}#\n{rows}"


def triples(path, kind, columns=None):
    return list(read_judgments(path, columns)[[kind, "doc", "grade"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (logs.trec(GOLDEN), ["id"]),
        ("# qrels of 2024\n\n" + logs.trec(GOLDEN).replace(" ", "\t"), ["id"]),
        (logs.quepid(GOLDEN), ["query"]),
        ("\ufeff# a remark\n#\n" + logs.quepid(GOLDEN).replace("\n", "\r\n"), ["query"]),
        (plugin_demo(GOLDEN), ["id", "query"]),
        (table("query_id\tquery\tdoc_id\tgrade", lambda q, t, d, g: [q, t, d, str(g)], "\t"), ["id", "query"]),
        (table("query-id\tcorpus-id\tscore", lambda q, t, d, g: [q, d, str(g)], "\t"), ["id"]),  # BEIR
        (table("grade;keywords;docId", lambda q, t, d, g: [str(g), t, d], ";"), ["query"]),
        (table("Team Name,Query Text,Doc ID,Title,Rating", lambda q, t, d, g: ["x", t, d, "", f"{g}.0"]), ["query"]),
    ],
)
def test_every_form_gives_the_same_judgments(text, kinds, tmp_path):
    (tmp_path / "j").write_text(text)
    for kind in kinds:
        assert triples(tmp_path / "j", kind) == (TEXTS if kind == "query" else IDS)


def test_columns_by_name_and_what_spreadsheets_do_to_a_text(tmp_path):
    (tmp_path / "j").write_text('query,docid,rating,label\n" -20 degrees",x,1,9\n"a, b\nc",y,,9\n"a\n#b",y,2.0,9\n')
    assert triples(tmp_path / "j", "query", ["query", "docid", "rating"]) == [
        ("-20 degrees", "x", 1),
        ("a\n#b", "y", 2),
    ]
    assert read_judgments(tmp_path / "j", ["query", "docid", "rating"])["line"].tolist() == [2, 6]
    (tmp_path / "j").write_text("qid,query,sku,ctr\n7,a,x,5\n")
    assert triples(tmp_path / "j", "id", ["qid", "sku", "ctr"]) == [("7", "x", 5)]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("# no row\n\n", None, "j: no columns of query, document and grade"),
        ("query,docid,rating\nx,,\n", None, "j: there is no judgment in the file"),
        ("query,docid,label,rating\n", None, "several columns may hold the grade, 'label' and 'rating'; choose one by"),
        ("query,docid,rating,rating\n", None, "several columns may hold the grade, 'rating' and 'rating'"),
        ("query,docid,rating\n", ["query", "docid", "stars"], "unknown column 'stars'"),
        ("query,docid,rating\n", ["query", "docid"], "--columns names three columns"),
        ("query,docid,rating\na,b,1\na,c,1,2\n", None, "line 3: 4 fields, but the header names 3"),
        ('query,docid,rating\na,b,1\na,"c', None, "line 3: not a CSV file"),
        *(
            (f"query,docid,rating\na,b,{grade}\n", None, "line 2: the label .* 'grade' is not an? (number|integer)")
            for grade in ("high", "-1", "0.5", "nan", "1_0", "٣", "1e300", "2147483648")
        ),
        ("query_id,query,docid,rating\n7,a,b,1\n7,c,b,1\n", None, "line 3: the query id '7' has the text 'c', and 'a'"),
        ("# qid:1: a\n3 qid:1 # p\n3 qid:2 # p\n", None, "line 3: no remark '# qid:2: text' names the query"),
        ("3 qid:1 # p\n3 qid:1 1:5\n", None, "line 2: '3 qid:1 1:5.n' is not like '3 qid:1 # p7'"),
        ("q1 0 p7 3\nq1 p8 1\n", None, "line 2: 'q1 p8 1.*' is not like 'q1 0 p7 3'"),
    ],
)  # fmt: skip
def test_what_is_no_judgment(text, columns, message, tmp_path):
    (tmp_path / "j").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_judgments(tmp_path / "j", columns)


@pytest.mark.parametrize(
    ("judgments", "message"),
    [
        (
            "Trail  shoes,p7,1",
            "0 of 1 judgments by query text: the log has document 'p7' of query 'trail shoes'",
        ),
        ("q1,p7,1", "the judgments 'p7' of 'q1'; write both alike, and ids of queries in a column query_id"),
        ("trail shoes,71.0,1", "the log has document 'p7' .*, the judgments '71.0'"),
        (
            "trail shoes,x,1\ntrail shoes,P3.0,1",
            "the log has document 'p3' of .*, the judgments 'P3.0' of 'trail shoes'",
        ),
        ("trail shoes,p7,1\na,b,1\ntrail shoes,p7,2", "line 2 and line 4: several grades of document 'p7'"),
        (
            "query_id,docid,rating\ntrail shoes,p7,1",
            "id: .* of query 'q1', the judgments 'p7' of 'trail shoes'",
        ),
        (logs.trec(GOLDEN).replace("q", "x"), "by query id: the log has document 'p7' of query 'q1', .* of 'x1'"),
    ],
)
def test_judgments_that_do_not_fit(judgments, message, tmp_path):
    (tmp_path / "log").write_text(logs.plugin(GOLDEN))
    named = judgments.startswith(("query", "x"))
    (tmp_path / "j.csv").write_text(judgments if named else f"query,docid,rating\n{judgments}")
    with pytest.raises(ValueError, match=message):
        ingest(tmp_path / "log", tmp_path / "t.parquet", judgments=tmp_path / "j.csv")
