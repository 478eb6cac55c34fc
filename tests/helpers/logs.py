"""Feature logs of search engines and relevance judgments for a small shop, written as their systems write them."""

import json

import numpy as np

NAMES = ("title_bm25", "stars", "age_days")
VESPA_NAMES = ("bm25(title)", "attribute(stars)", "age_days")
GOLDEN = [
    ("q1", "trail shoes", [("p7", 3, 6.25, 4.5, 12.0), ("p3", 1, 2.5, None, 300.0), ("p9", 0, None, 3.0, 1.0e-4)]),
    ("q2", "blue kettle", [("k1", 2, 8.0, 5.0, 40.0), ("p3", None, 0.75, None, 300.0)]),
]
"""Queries with their documents: id, grade, and the values of the features; None is missing, or not judged."""

FEATURES = {
    "name": "shop",
    "features": [
        {"name": name, "params": ["q"], "template_language": "mustache", "template": {"match": {"field": name}}}
        for name in NAMES
    ],
}
FEATURE_SET = {"_source": {"name": "shop", "featureset": FEATURES}}
"""The definitions of the features, as the plug-ins answer them."""


def shop(n_queries):
    """Return the golden queries and further ones of eight documents, whose grades depend on the first two features."""
    draw = np.random.default_rng(3)
    world = list(GOLDEN)
    for query in range(3, n_queries + 1):
        bm25, stars, age = draw.integers(0, 40, 8) / 4, draw.integers(2, 11, 8) / 2, draw.integers(1, 400, 8)
        grades = np.clip((bm25 + stars - 4) // 3, 0, 3).astype(int)
        names, stars = [f"d{query}x{row}" for row in range(8)], [*stars[:5].tolist(), None, *stars[6:].tolist()]
        documents = list(zip(names, grades.tolist(), bm25.tolist(), stars, age.astype(float).tolist(), strict=True))
        world.append((f"q{query}", f"query number {query}", documents))
    return world


def _lines(world, response):
    return "".join(
        json.dumps({"query_id": qid, "query": query, "response": response(documents)}) + "\n"
        for qid, query, documents in world
    )


def plugin_response(documents):
    hits = []
    for doc, _, *values in documents:
        logged = [{"name": n} | ({} if v is None else {"value": v}) for n, v in zip(NAMES, values, strict=True)]
        hits.append({"_index": "shop", "_id": doc, "fields": {"_ltrlog": [{"main": logged}]}, "matched_queries": ["x"]})
    frame = {"took": 4, "timed_out": False, "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0}}
    return frame | {"hits": {"total": {"value": len(hits), "relation": "eq"}, "hits": hits}}


def plugin(world):
    """A log of the LTR plug-ins of Elasticsearch and OpenSearch."""
    return _lines(world, plugin_response)


def solr_response(query, documents):
    docs = []
    for doc, _, bm25, stars, age in documents:
        stars = "NaN" if stars is None else stars
        docs.append({"id": doc, "score": 1.0, "[features]": f"title_bm25={bm25 or 0.0},stars={stars},age_days={age}"})
    header = {"status": 0, "QTime": 3, "params": {"q": query, "fl": "id,score,[features store=shop]"}}
    return {"responseHeader": header, "response": {"numFound": len(docs), "start": 0, "docs": docs}}


def solr(world):
    """Responses of Solr, which tell their query themselves; a missing value of title_bm25 is 0."""
    return "".join(json.dumps(solr_response(query, documents)) + "\n" for _, query, documents in world)


def vespa_response(documents):
    children = []
    for doc, _, *values in documents:
        long = f"id:shop:product::{doc}"
        features = dict(zip(VESPA_NAMES, [values[0] or 0.0, *values[1:]], strict=True))
        children.append(
            {"id": long, "relevance": 1.0, "source": "shop", "fields": {"matchfeatures": features, "documentid": long}}
        )
    return {"root": {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": len(children)}, "children": children}}


def vespa(world):
    """A log of Vespa; a missing value of bm25(title) is 0."""
    return _lines(world, vespa_response)


def judged(world):
    """Yield id and text of the query, document and grade of each judgment."""
    for qid, query, documents in world:
        for doc, grade, *_ in documents:
            if grade is not None:
                yield qid, query, doc, grade


def quepid(world):
    """The basic CSV of Quepid, without a last line feed; one query has no rating."""
    rows = [f"{query},{doc},{grade:.1f}" for _, query, doc, grade in judged(world)]
    return "\n".join(["query,docid,rating", *rows, "unrated,,"])


def trec(world):
    return "".join(f"{qid} 0 {doc} {grade}\n" for qid, _, doc, grade in judged(world))
