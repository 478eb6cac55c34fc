"""Logs of search engines become the table that they stand for, and what is no such log is refused with its place."""

import gzip
import io
import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from helpers import logs
from helpers.logs import GOLDEN, NAMES, VESPA_NAMES

from moerank.data import load_table
from moerank.data.logs.ingest import ingest
from moerank.data.logs.responses import LogOptions
from moerank.data.read.files import reading_progress
from moerank.data.read.table import table_shard
from moerank.exports.deployable import read_features

RANKED = [["q1", 3, "p7"], ["q1", 1, "p3"], ["q1", 0, "p9"], ["q2", 2, "k1"]]
BY_DOCUMENT = [RANKED[1], RANKED[0], RANKED[2], RANKED[3]]
VALUES = {"p7": (6.25, 4.5, 12), "p3": (2.5, np.nan, 300), "p9": (np.nan, 3, 1e-4), "k1": (8, 5, 40)}

LOGS = {
    # writer, names of features, order, number for the missing bm25, type, options
    "elasticsearch": (logs.plugin, NAMES, RANKED, np.nan, np.float32, {}),
    "elastic": (logs.elastic, ("stars", "age_days", "title_bm25"), BY_DOCUMENT, np.nan, np.float32, {}),
    "solr": (logs.solr, NAMES, RANKED, 0, np.float32, {"query_param": "q"}),
    "vespa": (logs.vespa, VESPA_NAMES, RANKED, 0, np.float64, {}),
}


@pytest.fixture
def make(tmp_path):
    """Ingest texts of logs and judgments, and return what was done."""

    def make(text, *, judgments=None, name="log.jsonl", table="table.parquet", options=None, **others):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        if judgments is not None:
            (tmp_path / "judgments.csv").write_text(judgments)
            others["judgments"] = tmp_path / "judgments.csv"
        return ingest(tmp_path / name, tmp_path / table, options=LogOptions(**(options or {})), force=True, **others)

    return make


@pytest.mark.parametrize("engine", LOGS)
def test_a_golden_log_gives_its_table(engine, make):
    writer, names, order, unmatched, dtype, options = LOGS[engine]
    done = make(writer(GOLDEN), judgments=logs.quepid(GOLDEN), options=options)
    assert (done.engine, done.features, done.n_queries, done.n_documents) == (engine, names, 2, 4)
    frame = pd.read_parquet(done.table)
    ids = {query: qid for qid, query, _ in GOLDEN}
    assert [
        [ids[q], label, doc.rpartition(":")[2]]
        for q, label, doc in zip(frame["query"], frame["label"], frame["doc"], strict=True)
    ] == order
    assert frame["position"].isna().all() if engine == "elastic" else frame["position"].tolist() == [1, 2, 3, 1]
    for name in names:
        place = NAMES.index(name) if name in NAMES else VESPA_NAMES.index(name)
        column = np.array([VALUES[doc][place] for *_, doc in order], dtype)
        assert frame[name].dtype == dtype
        np.testing.assert_array_equal(frame[name], np.where(np.isnan(column) & (place == 0), unmatched, column))
    data = load_table(done.table, missing=0)
    assert data.feature_names == names
    assert data.y.tolist() == [label for _, label, _ in order]


def test_tables_of_pyvespa_and_ranklib_bring_their_labels(make, tmp_path):
    done = make(logs.pyvespa(GOLDEN), name="features.csv")
    frame = pd.read_parquet(done.table)
    assert done.features == ("age_days", "attribute(stars)", "bm25(title)")
    assert frame["doc"].tolist() == ["p3", "p7", "p9", "k1", "p3"]
    assert frame["label"].tolist() == [1, 3, 0, 2, 0]
    np.testing.assert_array_equal(frame["attribute(stars)"], [np.nan, 4.5, 3, 5, np.nan])
    assert read_features(done.table.with_name("features.toml"))["bm25(title)"].vespa == "bm25(title)"
    (tmp_path / "names.txt").write_text("0 dummy q\n" + "".join(f"{k} {n} q\n" for k, n in enumerate(NAMES, start=1)))
    done = make(logs.ranklib(GOLDEN), name="rank.txt", options={"names": tmp_path / "names.txt"})
    frame = pd.read_parquet(done.table)
    assert done.features == NAMES
    assert frame["query"].tolist() == ["trail shoes"] * 3 + ["blue kettle"] * 2
    np.testing.assert_array_equal(frame["stars"], [0, 4.5, 3, 5, 0])
    np.testing.assert_array_equal(frame["title_bm25"], [2.5, 6.25, 0, 8, 0.75])
    text = "# qid:1: trail shoes*1\n2 qid:1 3:0.5 #\tGX1 inc = 1 prob = 0.2\r\n\n0 qid:1 1:NaN # docid = GX2\n"
    frame = pd.read_parquet(make(text, name="rank.txt").table)
    assert frame[["qid", "query", "doc"]].to_numpy().tolist() == [["1", "trail shoes", f"GX{k}"] for k in (1, 2)]
    np.testing.assert_array_equal(frame[["1", "2", "3"]], [[0, 0, 0.5], [np.nan, 0, 0]])


def test_the_same_log_in_other_clothes(make, tmp_path, monkeypatch):
    golden = logs.plugin(GOLDEN)
    expected = make(golden, judgments=logs.quepid(GOLDEN))
    frame = pd.read_parquet(expected.table)
    envelopes = [json.loads(line) for line in golden.splitlines()]
    turned = [dict(reversed(envelope.items())) for envelope in envelopes]
    (tmp_path / "requests").write_text(
        "".join("{}\n" + json.dumps({"query": {"params": {"keywords": query}}}) + "\n" for _, query, _ in GOLDEN)
    )
    responses = json.dumps({"took": 1, "responses": [envelope["response"] for envelope in envelopes]}, indent=1)
    clothes = [
        (b"\xef\xbb\xbf" + golden.replace("\n", "\r\n").encode(), "log.jsonl", {}),
        (gzip.compress(golden.encode()), "log.jsonl.gz", {}),
        (json.dumps(turned, indent=2), "log.json", {}),
        (responses, "multi.json", {"requests": tmp_path / "requests"}),
    ]
    for text, name, options in clothes:
        there = pd.read_parquet(make(text, judgments=logs.quepid(GOLDEN), name=name, options=options).table)
        pd.testing.assert_frame_equal(there.drop(columns="qid"), frame.drop(columns="qid"))
    folder = tmp_path / "responses"
    folder.mkdir()
    for envelope in envelopes:
        (folder / f"{envelope['query']}.json").write_text(json.dumps(envelope["response"]))
    done = ingest(folder, tmp_path / "t.parquet", judgments=tmp_path / "judgments.csv")
    assert "queries that only the name of a file tells: 2" in done.lines
    assert sorted(pd.read_parquet(done.table)["doc"]) == sorted(frame["doc"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(golden.encode())))
    assert ingest("-", tmp_path / "stdin.parquet", judgments=tmp_path / "judgments.csv").n_documents == 4


def test_bare_nan_of_old_vespa_null_and_dropped_features(make):
    text = logs.vespa(GOLDEN).replace("null", "NaN").replace('"age_days"', '"rankingExpression(age_days)"')
    text = text.replace('"matchfeatures": {', '"matchfeatures": {"vespa.summaryFeatures.cached": 0.0, ')
    done = make(text, judgments=logs.quepid(GOLDEN))
    assert done.features == VESPA_NAMES
    np.testing.assert_array_equal(pd.read_parquet(done.table)["attribute(stars)"], [4.5, np.nan, 3, 5])
    assert "names without the rankingExpression(…) around them: 5" in done.lines
    assert "a 0 may stand for a missing value: this log does not tell them apart" in done.lines


def test_solr_logs_of_other_forms(make):
    response = logs.solr_response("trail shoes", GOLDEN[0][2])
    docs = response["response"]["docs"]
    grouped = {"grouped": {"brand": {"groups": [{"doclist": {"docs": docs}}]}}}
    colons = json.loads(json.dumps(docs).replace("=", ":").replace(",stars", " stars").replace(",age", " age"))
    signs = json.loads(json.dumps(docs).replace("=", "~").replace(",stars", ";stars").replace(",age", ";age"))
    for entry in colons:
        entry["fv"], entry["sku"] = entry.pop("[features]"), entry.pop("id")
    for body, options in [
        (grouped, {}),
        ({"response": {"docs": colons}}, {"field": "fv", "id": "sku"}),
        ({"response": {"docs": [{"id": "x"}, *signs]}}, {"separators": "~;"}),
    ]:
        text = json.dumps({"query": "trail shoes", "response": body})
        done = make(text, judgments=logs.quepid(GOLDEN), options=options)
        assert pd.read_parquet(done.table)["title_bm25"].tolist() == [6.25, 2.5, 0]
    assert "documents without the field [features], left out: 1" in done.lines
    docs[1]["[features]"] = "age_days=300.0"
    text = json.dumps({"query": "trail shoes", "response": response})
    for sparse, value in ((0.0, 0.0), (np.nan, np.nan)):
        frame = pd.read_parquet(make(text, judgments=logs.quepid(GOLDEN), options={"sparse_default": sparse}).table)
        np.testing.assert_array_equal(frame["title_bm25"], [6.25, value, 0])


def test_a_feature_that_appears_late_is_missing_before(make, tmp_path):
    world = [("q1", "a", [("x", 1, None, None, 2.0), ("y", 0, None, 1.0, None), ("z", 0, None, None, None)])]
    (tmp_path / "names").write_text('{"feature_extractors": [{"query_extractor": {"feature_name": "title_bm25"}}]}')
    done = make(logs.elastic(world), judgments=logs.quepid(world), options={"names": tmp_path / "names"})
    assert done.features == ("title_bm25", "stars", "age_days")
    frame = pd.read_parquet(done.table)
    np.testing.assert_array_equal(frame["stars"], [np.nan, 1, np.nan])
    np.testing.assert_array_equal(frame["age_days"], [2, np.nan, np.nan])
    assert "features that are missing in every row: title_bm25" in done.lines
    done = make(logs.elastic(world), judgments=logs.quepid(world), options={"missing_as_zero": True})
    np.testing.assert_array_equal(pd.read_parquet(done.table)["stars"], [0, 1, 0])


def test_several_logs_and_what_is_no_feature(make):
    response = logs.plugin_response(GOLDEN[0][2])
    for hit in response["hits"]["hits"]:
        features = hit["fields"]["_ltrlog"][0]["main"]
        features.append({"name": "extra_logging", "value": {"a": 1}})
        hit["fields"]["_ltrlog"][0]["other"] = [{"name": "clicks", "value": "NaN"}]
        hit["inner_hits"] = {"x": {"hits": {"hits": [{"_id": "inner"}]}}}
    line = {"query": "trail shoes", "response": response}
    both = make(json.dumps(line), judgments=logs.quepid(GOLDEN))
    assert both.features == (*NAMES, "clicks")
    assert "entries of extra_logging, left out: 3" in both.lines
    assert make(json.dumps(line), judgments=logs.quepid(GOLDEN), options={"log": "main"}).features == NAMES
    chosen = make(json.dumps(line), judgments=logs.quepid(GOLDEN), options={"exclude": ("clicks", "stars")})
    assert chosen.features == ("title_bm25", "age_days")
    assert make(json.dumps(line), judgments=logs.quepid(GOLDEN), options={"features": ("stars",)}).features == (
        "stars",
    )
    response["hits"]["hits"][0]["fields"]["_ltrlog"][0]["other"] = [{"name": "stars", "value": 1}]
    with pytest.raises(ValueError, match=r"main, other all hold 'stars'; choose one with --log"):
        make(json.dumps(line), judgments=logs.quepid(GOLDEN))


def test_repeats_of_a_document(make):
    text = logs.plugin([*GOLDEN, GOLDEN[0]])
    done = make(text, judgments=logs.quepid(GOLDEN))
    assert done.n_documents == 4
    assert "hits that were logged before: 3" in done.lines
    text += logs.plugin([("q1", "trail shoes", [("p7", 3, 1.0, 1.0, 1.0)])])
    with pytest.raises(ValueError, match=r"line 4: document 'p7' has other values .*log.jsonl, line 1; --repeats"):
        make(text, judgments=logs.quepid(GOLDEN))
    for repeats, value in (("first", 6.25), ("last", 1.0)):
        frame = pd.read_parquet(make(text, judgments=logs.quepid(GOLDEN), repeats=repeats).table)
        assert frame.set_index("doc").loc["p7", "title_bm25"] == value


def test_documents_without_a_judgment_and_judgments_without_a_document(make):
    judgments = logs.quepid(GOLDEN) + "\nred lamp,z,1\nblue kettle,zz,1"
    done = make(logs.plugin(GOLDEN), judgments=judgments)
    left = "joined 4 of 6 judgments by query text; 1 document without a judgment was left out (--unjudged 0 keeps it)"
    assert done.lines[1:3] == (left, "judged queries that are not in the log: 1 ('red lamp')")
    done = make(logs.plugin(GOLDEN), judgments=judgments, unjudged=0)
    assert pd.read_parquet(done.table)["label"].tolist() == [3, 1, 0, 2, 0]
    assert "1 document without a judgment got the label 0" in done.lines[1]


def test_responses_that_are_not_whole(make):
    for broken, message in [
        (lambda r: r.update(timed_out=True), "timed out"),
        (lambda r: r["_shards"].update(failed=1), "some shards failed"),
        (lambda r: (r.clear(), r.update(error={"type": "x"})), "an error instead of hits"),
    ]:
        lines = [json.loads(line) for line in logs.plugin(GOLDEN).splitlines()]
        broken(lines[1]["response"])
        text = "".join(json.dumps(line) + "\n" for line in lines)
        with pytest.raises(ValueError, match=rf"line 2: .*{message}.*--partial"):
            make(text, judgments=logs.quepid(GOLDEN))
        done = make(text, judgments=logs.quepid(GOLDEN), options={"partial": True})
        assert "responses that were not whole: 1" in done.lines
        assert done.n_queries == (1 if "error" in message else 2)
    lines = logs.plugin(GOLDEN).replace('"value": 3, "relation"', '"value": 30, "relation"')
    done = make(lines, judgments=logs.quepid(GOLDEN))
    assert "responses with fewer hits than were found (ask for larger pages): 1" in done.lines


PLUGIN, VESPA, SOLR = logs.plugin(GOLDEN), logs.vespa(GOLDEN), logs.solr(GOLDEN)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (PLUGIN.replace('"query_id": "q2", "query": "blue kettle", ', ""), {}, "line 2: no response says which query"),
        (SOLR, {}, "line 1: no response says which query"),
        ("[]", {}, "no response has a hit with features; --from"),
        ("", {}, "no response has a hit with features; --from"),
        ("[5]", {}, "a response is an object of JSON, not '5'"),
        ("{", {}, "not JSON"),
        (PLUGIN + "{", {}, "line 3: not JSON"),
        ("hello", {}, "neither JSON, nor LETOR lines, nor a table of pyvespa"),
        ("[" * 100_000, {}, "nested too deeply"),
        ('{"responses": []}', {}, "name the requests by --requests"),
        ('{"query": "a", "response": {"hits": {"hits": 5}}}', {}, "line 1: not a response of a search engine"),
        ('{"query": 1.5, "response": {}}', {}, "'1.5' is no id or query; write it as a text"),
        (PLUGIN.replace("_ltrlog", "log"), {}, "neither _ltrlog, nor matched_queries with"),
        (PLUGIN.replace("_ltrlog", "log", 1), {}, "line 1: the hit 'p7' has no _ltrlog; ask for it by ext"),
        (PLUGIN.replace("_ltrlog", "log"), {"engine": "elastic"}, "include_named_queries_score=true"),
        (PLUGIN, {"log": "mian"}, "line 1: there is no log 'mian'; there are main"),
        (PLUGIN, {"field": "fv"}, "--field is not for logs of elasticsearch"),
        (PLUGIN, {"engine": "vespa"}, "a log of elasticsearch .*, not of vespa"),
        (PLUGIN, {"engine": "elasticsaerch"}, "did you mean 'elasticsearch'"),
        (PLUGIN + VESPA, {}, "line 3: a log of vespa, not of elasticsearch .*one kind at a time"),
        (PLUGIN.replace("12.0", "Infinity"), {}, "line 1: the value of 'age_days' is infinite"),
        (PLUGIN.replace("12.0", '"12"'), {}, "holds the value '12', not a number; leave it out with --exclude"),
        (PLUGIN.replace("age_days", "days", 1), {}, "line 1: this hit (lacks|has) the feature '(age_)?days'"),
        (PLUGIN.replace("age_days", "label"), {}, "the feature 'label' has the name of another column"),
        (PLUGIN, {"exclude": ("stras",)}, "--exclude: unknown feature 'stras'; did you mean 'stars'"),
        (PLUGIN, {"exclude": NAMES}, "the log holds no feature"),
        (VESPA.replace("12.0", '{"cells": {"a": 0.5}}'), {}, "the feature 'age_days' holds a tensor"),
        (VESPA.replace("id:shop:product::", "index:shop/0/"), {}, "is an internal id"),
        (VESPA.replace("matchfeatures", "other"), {}, "has no matchfeatures or summaryfeatures"),
        (
            VESPA.replace('{"matchfeatures"', '{"summaryfeatures": {}, "matchfeatures"'),
            {},
            "matchfeatures and summaryfeatures; choose one with --log matchfeatures",
        ),
        (SOLR.replace("age_days=", "age_days"), {"query_param": "q"}, "are not separated as in 'a=1,b=2'"),
        (SOLR, {"query_param": "q", "separators": "=, "}, "are not separated as in"),
        (SOLR.replace('"id"', '"sku"'), {"query_param": "q"}, "a document has no field 'id'; add it to fl"),
        (b'{"query": "caf\xe9"}', {}, "log.jsonl: not a text in UTF-8"),
        (b"3 qid:1 1:2 # a caf\xe9\n", {}, "log.jsonl: not a text in UTF-8"),
        ("3 qid:1 1:2\n", {}, "line 1: no document behind #"),
        ("3 qid:1 x:2 # a\n", {}, "line 1: '3 qid:1 x:2 # a.*' is not like"),
        ("3 qid:1 1:two # a\n", {}, "line 1: the value 'two' of feature 1 is no number"),
        ("query_id,doc_id,relevance_label,match_a\nq,d,1,two\n", {}, "line 2: a value is no number"),
        ("query_id,doc_id,relevance_label,match_a\nq,d,1\n", {}, "line 2: another number of fields"),
        ("query_id,doc_id,relevance_label,match_a,rank_a\n", {}, "match and rank; choose one with --log match"),
    ],
)  # fmt: skip
def test_what_is_refused(text, options, message, make, tmp_path):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        make(text, judgments=logs.quepid(GOLDEN), options=options)
    assert not (tmp_path / "table.parquet").exists()


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_the_progress_of_reading_is_told(name, make, monkeypatch):
    monkeypatch.setattr("moerank.data.logs.ingest.EVERY", 10)
    world, told = logs.shop(100), []
    text = logs.plugin(world).encode()
    with reading_progress(lambda path, share: told.append((path.name, share))):
        make(gzip.compress(text) if name.endswith("gz") else text, judgments=logs.quepid(world), name=name)
    assert [name for name, _ in told] == [name] * 11
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert 0 < shares[0] < (1 if name.endswith("gz") else 0.5)
    assert shares[-1] == 1


def test_more_or_fewer_requests_than_responses(make, tmp_path):
    text = json.dumps({"responses": [logs.plugin_response(GOLDEN[0][2])] * 2})
    request = '{}\n{"params": {"keywords": "x"}}\n'
    for requests, message in [
        (request, "more responses than requests"),
        (request * 3, "more requests than responses"),
        ('{}\n{"params": {"q": "x"}}\n', "request 1 has no text called 'keywords'"),
    ]:
        (tmp_path / "requests").write_text(requests)
        with pytest.raises(ValueError, match=message):
            make(text, judgments=logs.quepid(GOLDEN), options={"requests": tmp_path / "requests"})


def test_files_that_are_there(make, tmp_path):
    log, table = tmp_path / "rank.txt", tmp_path / "table.csv"
    log.write_text(logs.ranklib(GOLDEN))
    (tmp_path / "features.toml").write_text("mine")
    done = ingest(log, table)
    assert f"kept {tmp_path / 'features.toml'}" in done.lines
    assert (tmp_path / "features.toml").read_text() == "mine"
    with pytest.raises(FileExistsError, match="replace it with --force"):
        ingest(log, table)
    with pytest.raises(ValueError, match=r"ends in .parquet, .csv or .csv.gz"):
        ingest(log, tmp_path / "table.txt")
    with pytest.raises(OSError, match="choose another folder with --out"):
        ingest(log, tmp_path / "nowhere" / "table.csv")
    with pytest.raises(ValueError, match="--grades cubes: write scale=K"):
        ingest(log, table, grades="cubes", force=True)


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_a_table_of_text_holds_the_same_numbers(name, make):
    done = make(PLUGIN, judgments=logs.quepid(GOLDEN), table=name)
    assert 'features = ["title_bm25", "stars", "age_days"]' in done.lines
    data = load_table(done.table, label="label", query="qid", features=done.features, missing=0)
    again = load_table(make(PLUGIN, judgments=logs.quepid(GOLDEN)).table, missing=0)
    np.testing.assert_array_equal(data.X, again.X)


def test_shards_know_the_columns_too(make):
    done = make(PLUGIN, judgments=logs.quepid(GOLDEN))
    assert [table_shard(done.table, number, 2, missing=0).n_documents for number in range(2)] == [3, 1]
    with pytest.raises(ValueError, match="does not tell its column of the label; give label="):
        load_table(make(PLUGIN, judgments=logs.quepid(GOLDEN), table="a.csv").table)


def test_names_that_engines_take_for_the_same(make):
    done = make(PLUGIN.replace("stars", "age-days"), judgments=logs.quepid(GOLDEN))
    assert "got numbers, as engines take them for the same: features called age_days" in done.lines
    features = read_features(done.table.with_name("features.toml"))
    assert (features["age-days"].name, features["age_days"].name) == ("age_days", "age_days_2")


def test_memory_does_not_grow_with_the_log(tmp_path, monkeypatch):
    monkeypatch.setattr("moerank.data.logs.ingest.ROWS", 500)
    peaks = []
    for n_queries in (500, 5000):
        world = [
            (f"q{query}", f"t {query}", [(f"d{row}", row % 2, 1.0 * query, 2.0, 0.5 * row) for row in range(4)])
            for query in range(n_queries)
        ]
        log, judgments = logs.plugin(world), logs.trec(world)
        (tmp_path / "log").write_text(log)
        (tmp_path / "qrels").write_text(judgments)
        del world, log, judgments
        tracemalloc.start()
        done = ingest(tmp_path / "log", tmp_path / f"{n_queries}.parquet", judgments=tmp_path / "qrels")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert done.n_documents == 4 * n_queries
    assert peaks[1] < peaks[0] + 2**20  # the larger log has 8 MiB of text


def test_queries_weigh_as_often_as_they_were_asked(make):
    text = logs.plugin(GOLDEN)
    often = text + "\n" + "\n".join([text.splitlines()[1]] * 2)
    done = make(often, judgments=logs.quepid(GOLDEN), weigh_queries=True)
    frame = pd.read_parquet(done.table)
    assert frame["query_weight"].tolist() == [1, 1, 1, 3]
    data = load_table(done.table, missing=0.0)
    assert data.query_weights.tolist() == [0.5, 1.5]
    assert data.documents.tolist() == ["p7", "p3", "p9", "k1"]
    assert data.feature_names == NAMES
    propensity = load_table(done.table, missing=0.0, document_weight="age_days")
    assert propensity.feature_names == NAMES[:2]
    np.testing.assert_allclose(propensity.document_weights * frame["age_days"].mean(), frame["age_days"])
    with pytest.raises(ValueError, match="--weigh-queries counts responses, and letor has lines of documents"):
        make("1 qid:7 1:0.5 # a\n0 qid:7 1:2 # b\n", weigh_queries=True)
