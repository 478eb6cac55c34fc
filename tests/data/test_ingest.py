"""Logs of search engines become the table that they stand for, and what is no such log is refused with its place."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from helpers import logs
from helpers.logs import GOLDEN, NAMES, VESPA_NAMES

from moerank.data import load_table
from moerank.data.ingest import ingest, read_judgments

RANKED = [["q1", 3, "p7"], ["q1", 1, "p3"], ["q1", 0, "p9"], ["q2", 2, "k1"]]
VALUES = {"p7": (6.25, 4.5, 12), "p3": (2.5, np.nan, 300), "p9": (np.nan, 3, 1e-4), "k1": (8, 5, 40)}
PLUGIN, VESPA, SOLR = logs.plugin(GOLDEN), logs.vespa(GOLDEN), logs.solr(GOLDEN)
QUEPID = logs.quepid(GOLDEN)


@pytest.fixture
def make(tmp_path):
    """Ingest texts of logs and judgments, and return what was done."""

    def make(text, judgments=QUEPID, *, name="log.jsonl", **options):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        (tmp_path / "judgments.csv").write_text(judgments)
        (tmp_path / "table.parquet").unlink(missing_ok=True)
        return ingest(tmp_path / name, tmp_path / "table.parquet", judgments=tmp_path / "judgments.csv", **options)

    return make


def answer(query, values, name="f", **more):
    """A line of the plug-in's log with one feature of each document."""
    hits = [{"_id": doc, "fields": {"_ltrlog": [{"main": [{"name": name, "value": v}]}]}} for doc, v in values]
    return json.dumps({"query": query, "response": {"hits": {"hits": hits}}} | more) + "\n"


def vespa(documents, **fields):
    """A response of Vespa with the feature f of each document."""
    children = [{"id": doc, "fields": {"documentid": doc, "matchfeatures": {"f": f}} | fields} for doc, f in documents]
    return json.dumps({"query": "shoes", "response": {"root": {"children": children}}})


def solr(*texts, field="[features]", query="shoes", **more):
    """A response of Solr with the features of the documents a, b, …"""
    docs = [{"id": doc} | more | {field: text} for doc, text in zip("abc", texts, strict=False)]
    return json.dumps({"query": query, "response": {"response": {"docs": docs}}})


def rows_of(done):
    frame = pd.read_parquet(done.table)
    return frame[["qid", "label", "doc"]].to_numpy().tolist()


@pytest.mark.parametrize(
    ("engine", "text", "names", "unmatched", "dtype"),
    [
        ("elasticsearch", PLUGIN, NAMES, np.nan, np.float32),
        ("solr", SOLR, NAMES, 0, np.float32),
        ("vespa", VESPA, VESPA_NAMES, 0, np.float64),
    ],
)
def test_a_golden_log_gives_its_table(engine, text, names, unmatched, dtype, make):
    done = make(text)
    assert (done.engine, done.features, done.n_queries, done.n_documents) == (engine, names, 2, 4)
    frame = pd.read_parquet(done.table)
    texts = {qid: query for qid, query, _ in GOLDEN}
    assert frame[["query", "label", "doc"]].to_numpy().tolist() == [[texts[q], *others] for q, *others in RANKED]
    assert frame["position"].tolist() == [1, 2, 3, 1]
    assert frame["qid"].tolist() == (frame["query"].tolist() if engine == "solr" else ["q1", "q1", "q1", "q2"])
    for place, name in enumerate(names):
        column = np.array([VALUES[doc][place] for *_, doc in RANKED], dtype)
        assert frame[name].dtype == dtype
        np.testing.assert_array_equal(frame[name], np.where(np.isnan(column) & (place == 0), unmatched, column))
    data = load_table(done.table, missing=0)
    assert (data.feature_names, data.y.tolist()) == (names, [3, 1, 0, 2])
    assert data.documents.tolist() == ["p7", "p3", "p9", "k1"]


def test_the_same_log_in_other_clothes(make, tmp_path):
    expected = pd.read_parquet(make(PLUGIN).table)
    lines = PLUGIN.splitlines()
    turned = "\n\n".join(json.dumps(dict(reversed(json.loads(line).items()))) for line in lines)
    marked = b"\xef\xbb\xbf" + PLUGIN.replace("\n", "\r\n").encode()
    for text, name in [(marked, "log.jsonl"), (gzip.compress(PLUGIN.encode()), "log.jsonl.gz"), (turned, "log.jsonl")]:
        pd.testing.assert_frame_equal(pd.read_parquet(make(text, name=name).table), expected)
    parts = [tmp_path / "one", tmp_path / "two"]
    for part, line in zip(parts, lines, strict=True):
        part.write_text(line)
    done = ingest(parts, tmp_path / "parts.parquet", judgments=tmp_path / "judgments.csv")
    pd.testing.assert_frame_equal(pd.read_parquet(done.table), expected)


def test_null_and_bare_nan_of_vespa_are_missing(make):
    text = VESPA.replace("null", "NaN").replace('"age_days"', '"rankingExpression(age_days)"')
    text = text.replace('"matchfeatures": {', '"matchfeatures": {"vespa.summaryFeatures.cached": 0.0, ')
    done = make(text)
    assert done.features == VESPA_NAMES
    np.testing.assert_array_equal(pd.read_parquet(done.table)["attribute(stars)"], [4.5, np.nan, 3, 5])
    assert "missing values: 1" in done.lines
    assert "a 0 may stand for a missing value: this log does not tell them apart" in done.lines


def test_the_document_of_vespa_is_what_follows_the_fourth_colon(make):
    text = vespa([("id:n:t::shop::a", 1), ("id:n:t:g=7:b:c", 2), ("id:n:t::a", 3)])
    judged = "query,docid,rating\nshoes,a,3\nshoes,shop::a,1\nshoes,b:c,0\n"
    assert rows_of(make(text, judged)) == [["shoes", 1, "shop::a"], ["shoes", 0, "b:c"], ["shoes", 3, "a"]]
    both = vespa([("id:n:product::a", 1), ("id:n:article::a", 1)])
    with pytest.raises(ValueError, match=r"line 1: 'id:n:article::a' and 'id:n:product::a' end alike; .* whole ids"):
        make(both, judged)
    whole = "query,docid,rating\nshoes,id:n:article::a,2\n"
    assert rows_of(make(both, whole)) == [["shoes", 2, "id:n:article::a"]]


def test_vespas_hits_in_groups_and_those_of_two_schemas(make):
    judged, plain = "query,docid,rating\nshoes,a,1\nshoes,b,0\n", vespa([("id:n:t::a", 1), ("id:n:t::b", 2)])
    answer = json.loads(plain)
    first, second = answer["response"]["root"]["children"]
    groups = [
        {"id": f"group:string:{n}", "fields": {"count()": 1}, "children": [{"id": "hitlist:hits", "children": [hit]}]}
        for n, hit in enumerate((first, second))
    ]
    empty = {"id": "group:string:none", "fields": {"count()": 0}}
    root = {"id": "group:root:0", "children": [{"id": "grouplist:brand", "children": [*groups, empty]}]}
    for children in ([root], [root, first, second]):  # the hits themselves may be there, too
        answer["response"]["root"]["children"] = children
        grouped = pd.read_parquet(make(json.dumps(answer), judged).table)
        pd.testing.assert_frame_equal(grouped, pd.read_parquet(make(plain, judged).table))
    for hit, name in ((first, "g"), (second, "h")):
        hit["fields"]["matchfeatures"][name] = 0.5
    with pytest.raises(ValueError, match=r"'id:n:t::b' has no feature 'g', .* leave it out by --exclude 'g'"):
        make(json.dumps(answer), judged)
    assert make(json.dumps(answer), judged, exclude=["g", "h"]).features == ("f",)


def test_solr_logs_of_other_forms(make):
    judged = "query,docid,rating\nshoes,a,1\nshoes,b,0\n"
    for text, options in [
        (solr("f=1,g h=2", "f=3,g h=NaN"), {}),
        (solr("f=1,g h=2,", "f=3,g h=NaN", **{"[docid]": 7, "[explain]": "x=1"}), {}),
        (solr("f=1,g h=2", "f=3,g h=NaN", field="[fv]"), {"log": "[fv]"}),
        (solr("f=1,g h=2", "f=3,g h=NaN", field="fv", **{"[shard]": "s"}), {"log": "fv"}),
        (solr("f=1,g h=2", "f=3,g h=NaN").replace('"id"', '"sku"'), {"document": "sku"}),
    ]:
        done = make(text, judged, **options)
        frame = pd.read_parquet(done.table)
        assert done.features == ("f", "g h")
        np.testing.assert_array_equal(frame[["f", "g h"]], [[1, 2], [3, np.nan]])
    assert make(solr("f:1e-2 g:.5", "f:-3 g:4."), judged).features == ("f", "g")
    assert make(solr("f=Infinity,g=1", "f=2,g=-1"), judged, exclude=["f"]).features == ("g",)


def test_several_logs_and_features_that_are_left_out(make):
    lines = [json.loads(line) for line in PLUGIN.splitlines()]
    for line in lines:
        for hit in line["response"]["hits"]["hits"]:
            hit["fields"]["_ltrlog"][0]["other"] = [{"name": "clicks", "value": "NaN"}]
            hit["fields"]["_ltrlog"][0]["main"].append({"name": "extra_logging", "value": {"a": 1}})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = make(text, exclude=["extra_logging"])
    assert done.features == (*NAMES, "clicks")
    assert "missing values: 6" in done.lines
    assert make(text, log="main", exclude=["extra_logging", "stars"]).features == ("title_bm25", "age_days")
    with pytest.raises(ValueError, match=r"'extra_logging' holds .*, not a number; leave it out"):
        make(text)


def test_a_document_that_is_logged_again(make):
    again = PLUGIN + logs.plugin(GOLDEN[:1])
    done = make(again)
    assert done.n_documents == 4
    other = again + logs.plugin([("q1", "trail shoes", [("p7", 3, 1.0, 1.0, 1.0)])])
    with pytest.raises(ValueError, match=r"line 4: document 'p7' of query 'q1' has other values than in .*, line 1"):
        make(other)
    negative = answer("shoes", [("a", 0.0), ("b", 1.0), ("a", -0.0)])
    assert make(negative, "query,docid,rating\nshoes,a,1\n", unjudged=0).n_documents == 2


def test_names_of_queries(make):
    judged = "query,docid,rating\n7,a,1\nboots,a,3\n"
    text = answer("7", [("a", 1.0)]) + answer("boots", [("a", 2.0)], query_id="7")
    assert rows_of(make(text, judged)) == [["7", 1, "a"], ["boots", 3, "a"]]  # the text of one is the id of another
    sessions = answer("boots", [("a", 2.0)], query_id=1) + answer("boots", [("a", 5.0)], query_id=2)
    assert rows_of(make(sessions, judged)) == [["1", 3, "a"], ["2", 3, "a"]]
    for text, message in [
        (answer("shoes", [("a", 1.0)], query_id=7) + answer("boots", [("b", 1.0)], query_id="7"),
         "line 2: the query id '7' has the text 'boots', and 'shoes' before"),
        (answer("shoes", [("a", 1.0)]) + answer(None, [("b", 1.0)], query_id=7), "line 2: no query with"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            make(text)


def test_documents_without_a_judgment_and_judgments_without_a_document(make):
    judgments = QUEPID + "\nred lamp,z,1\nblue kettle,zz,1"
    assert make(PLUGIN, judgments).lines[1:4] == (
        "joined 4 of 6 judgments by query text",
        "documents without a judgment: 1, left out (--unjudged 0 keeps them)",
        "judged queries that are not in the log: 1, such as 'red lamp'",
    )
    done = make(PLUGIN, judgments, unjudged=0)
    assert pd.read_parquet(done.table)["label"].tolist() == [3, 1, 0, 2, 0]
    assert done.lines[2] == "documents without a judgment: 1, with the label 0"


def changed(**changes):
    """The plug-in's log with another second response."""
    lines = [json.loads(line) for line in PLUGIN.splitlines()]
    lines[1]["response"] |= changes
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (PLUGIN.replace('"query_id": "q2", "query": "blue kettle", ', ""), {}, "line 2: no response says which query"),
        ("\n", {}, "log.jsonl: no response has a hit with features"),
        ("[5]", {}, "line 1: not a response of a search engine"),
        (PLUGIN + "{", {}, "line 3: not JSON .*write one response per line"),
        ('{"query": "a", "response": {"hits": {"hits": 5}}}', {}, "line 1: not a response of a search engine"),
        ('{"query": "a", "response": {"took": 5}}', {}, "line 1: not a response of Elasticsearch, OpenSearch, Solr or"),
        ('{"query": 1.5, "response": {}}', {}, "line 1: '1.5' is neither an id nor a query; write it as a text"),
        ('{"query": "a", "query": "b", "response": {}}', {}, "line 1: the key 'query' is given twice"),
        (b'{"query": "caf\xe9"}', {}, "line 1: not UTF-8 text"),
        (PLUGIN.replace("age_days", "\\ud800"), {}, "line 1: .*surrogates not allowed"),
        (changed(timed_out=True), {}, "line 2: the search timed out; log it again"),
        (changed(error={"type": "x"}), {}, "line 2: an error instead of hits"),
        (PLUGIN.replace("_ltrlog", "log", 1), {}, "line 1: the hit 'p7' has no _ltrlog; ask for it by ext"),
        (PLUGIN, {"log": "mian"}, "line 1: --log: unknown log 'mian'; did you mean 'main'"),
        (PLUGIN, {"document": "sku"}, "line 1: --id is not for logs of Elasticsearch"),
        (PLUGIN, {"exclude": ["starz"]}, "--exclude: unknown feature 'starz'; did you mean 'stars'"),
        (PLUGIN, {"exclude": NAMES}, "no response has a hit with features that --exclude keeps"),
        (solr("f=-Infinity,g=1"), {}, "line 1: the value of 'f' is infinite or too large; --exclude 'f'"),
        (vespa([("id:n:t::a", {"type": "tensor(x[1])", "values": [1]})]), {}, "'f' holds .*, not a number"),
        (PLUGIN + VESPA, {}, "line 3: the hit 'id:shop:.*' has a further feature .*, unlike the hits before"),
        (PLUGIN.replace("12.0", "9" * 400), {}, "line 1: int too large"),
        (PLUGIN.replace("12.0", '"12"'), {}, "'age_days' holds '12', not a number; leave it out by --exclude"),
        (PLUGIN.replace("age_days", "days", 1), {}, "line 1: the hit 'p3' has a further feature 'age_days', unlike"),
        (PLUGIN.replace("age_days", "stars"), {}, "line 1: the hit 'p7' has the feature 'stars' twice"),
        (PLUGIN.replace("age_days", "label"), {}, "the feature 'label' has the name of another column"),
        (VESPA.replace('"id:shop:product::p7"', '"index:shop/0/81"'), {}, "is an internal id, which may"),
        (VESPA.replace("matchfeatures", "fields"), {}, "has no matchfeatures; list match-features in the rank profile"),
        (vespa([("id:n:t::a", 1)], summaryfeatures={}), {}, "has matchfeatures and summaryfeatures; choose"),
        (solr("f=1").replace('"response": {"docs', '"grouped": {"docs'), {}, "not a response of .*, or a grouped one"),
        (solr("f=1,f=9"), {}, "line 1: the hit 'a' has the feature 'f' twice"),
        (solr("f=1;g=2"), {}, "line 1: the features 'f=1;g=2' are not separated as in"),
        (solr("f=1_0,g=inf"), {}, "line 1: the features 'f=1_0,g=inf' are not separated as in 'a=1,b=2'"),
        (solr("f=1", field="fv"), {}, r"line 1: the document 'a' has no \[features\]; add it to fl"),
        (solr("f=1"), {"document": "sku"}, "line 1: a document has no field 'sku'; add it to fl"),
    ],
)  # fmt: skip
def test_what_is_refused(text, options, message, make, tmp_path):
    with pytest.raises(ValueError, match=message):
        make(text, **options)
    assert not (tmp_path / "table.parquet").exists()


def test_largest_numbers(make):
    judged = "query,docid,rating\nshoes,a,1\n"
    frame = pd.read_parquet(make(answer("shoes", [("a", 3.4028235e38)]), judged).table)
    assert frame["f"][0] == np.finfo(np.float32).max  # as Lucene prints it, which is above it in double precision
    assert pd.read_parquet(make(vespa([("id:n:t::a", 1e300)]), judged).table)["f"].tolist() == [1e300]
    with pytest.raises(ValueError, match="infinite or too large"):
        make(answer("shoes", [("a", 1.0), ("b", 3.4028236e38)]), judged)


def test_files_that_are_there(make, tmp_path):
    done = make(PLUGIN)
    log, judged = tmp_path / "log.jsonl", tmp_path / "judgments.csv"
    with pytest.raises(FileExistsError, match="exists; remove it, or choose another file"):
        ingest(log, done.table, judgments=judged)
    with pytest.raises(ValueError, match="the table is a Parquet file; write --out"):
        ingest(log, tmp_path / "table.csv", judgments=judged)
    with pytest.raises(OSError, match="choose another folder with --out"):
        ingest(log, tmp_path / "nowhere" / "table.parquet", judgments=judged)
    (tmp_path / "own.parquet").write_text(PLUGIN)
    (tmp_path / "link.parquet").symlink_to(tmp_path / "own.parquet")
    for out in ("own.parquet", "link.parquet"):  # no input is written to
        with pytest.raises(FileExistsError):
            ingest(tmp_path / "own.parquet", tmp_path / out, judgments=judged)


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
    assert read_judgments(tmp_path / "j", ["query", "docid", "rating"])["location"].str[-6:].tolist() == [
        "line 2",
        "line 6",
    ]
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
            (f"query,docid,rating\na,b,{grade}\n", None, "line 2: the label .* 'rating' is not an? (number|integer)")
            for grade in ("high", "-1", "0.5", "1_0", "٣", "1e300", "2147483648")
        ),
        ("query,docid,rating\na,b,nan\n", None, "line 2: the label in the column 'rating' is missing"),
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
        ("Trail  shoes,p7,1", "0 of 1 judgments by query text: the log has document 'p7' of query 'trail shoes'"),
        ("q1,p7,1", "the judgments 'p7' of 'q1'; write both alike, and ids of queries in a column query_id"),
        ("trail shoes,71.0,1", "the log has document 'p7' .*, the judgments '71.0'"),
        ("trail shoes,p7,1\na,b,1\ntrail shoes,p7,2", "line 2 and .*j.csv, line 4: several grades of document 'p7'"),
        ("query_id,docid,rating\ntrail shoes,p7,1", "id: .* of query 'q1', the judgments 'p7' of 'trail shoes'"),
        (logs.trec(GOLDEN).replace("q", "x"), "by query id: the log has document 'p7' of query 'q1', .* of 'x1'"),
    ],
)
def test_judgments_that_do_not_fit(judgments, message, tmp_path):
    (tmp_path / "log").write_text(logs.plugin(GOLDEN))
    named = judgments.startswith(("query", "x"))
    (tmp_path / "j.csv").write_text(judgments if named else f"query,docid,rating\n{judgments}")
    with pytest.raises(ValueError, match=message):
        ingest(tmp_path / "log", tmp_path / "t.parquet", judgments=tmp_path / "j.csv")
