"""Ask an engine what the golden files hold, and write them: python tests/engines/make_golden.py solr|vespa.

A golden file says which engine answered, and when. It has a part of the log, the models, and for each the files that
were uploaded and the scores that came back. `tests/engines/test_golden.py` compares them with moerank of today.
"""

import datetime
import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pyarrow.parquet as pq
import shop
import started

from moerank import export, ingest, load_table
from moerank.data import fit_scaling
from moerank.rankers import AdditiveRLS, LambdaMART, RankBoost, RankRLS
from moerank.rankers.model import Model

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
CASES = {
    "linear_raw": (RankRLS(), "none", 0),
    "linear_minmax": (RankRLS(), "minmax", 0),
    "linear_standard": (RankRLS(), "standard", 5),
    "lambdamart": (LambdaMART(12, n_leaves=5), "none", -1),
    "lambdamart_minmax": (LambdaMART(8, n_leaves=5), "minmax", 0),
    "rankboost": (RankBoost(30), "none", 0),
    "additive": (AdditiveRLS(n_bins=6), "none", 0),
}
"""Rankers, scalings and numbers for missing values, by the names of the models."""

JUDGED = "w50 w36,p303,1\nw5 w41,p112,1\n"
N_QUERIES, N_DOCUMENTS = 3, 25


def trained(table):
    """Yield the name and the model of each case."""
    for name, (ranker, scaling, missing) in CASES.items():
        data = load_table(table, missing=missing)
        data = fit_scaling(data, scaling).apply(data)
        yield name, Model.of(ranker.fit(data), [str(feature) for feature in data.feature_names])


def expected(model, table):
    """Return the scores of moerank by query and document."""
    frame = pq.read_table(table).to_pandas()
    scores = model.predict(frame[list(model.names)])
    return dict(zip(zip(frame["query"], frame["doc"], strict=True), scores.tolist(), strict=True))


def curl(*words, **options):
    """Return the answer of an engine, which must not be an error."""
    done = subprocess.run(
        ["curl", "-s", "--max-time", "60", *map(str, words)], check=True, capture_output=True, text=True, **options
    )
    answer = json.loads(done.stdout)
    if answer.get("error"):
        raise ValueError(f"{' '.join(map(str, words))}: {str(answer['error'])[:1000]}")
    return answer


# Solr

CLASS = "org.apache.solr.ltr.feature"
STORE = {
    "first_phase": ("OriginalScoreFeature", {}),
    "title": ("SolrFeature", {"q": "{!edismax qf=title}${text}"}),
    "body": ("SolrFeature", {"q": "{!edismax qf=body}${text}"}),
    "phrase": ("SolrFeature", {"q": "{!field f=title}${text}"}),
    "price": ("FieldValueFeature", {"field": "price"}),
    "trend": ("FieldValueFeature", {"field": "trend"}),
    "stock": ("FieldValueFeature", {"field": "stock", "defaultValue": "NaN"}),
}
DEFINITIONS = {
    "solr": {name: {"solr": {"class": kind, "params": params}} for name, (kind, params) in STORE.items()},
    "vespa": None,
}
"""What `export` is given for ``features``, by the format."""
PUT = ("-X", "PUT", "-H", "Content-type: application/json", "--data-binary")


class Solr:
    """The core `shop` of a Solr at an address, with the documents of `shop.py`."""

    def __init__(self, address, folder):
        self.url, self.address, self.folder = f"{address}/shop", address, folder
        shop.write(folder)
        update = (f"{self.url}/update?commit=true", "-H", "Content-type: application/json")
        curl(*update, "--data-binary", f"@{folder / 'products.json'}")

    def put(self, kind, content):
        """Upload features or models, in place of those of the same names."""
        for entry in content:
            name = entry["store" if kind == "feature" else "name"]
            curl("-X", "DELETE", f"{self.url}/schema/{kind}-store/{name}")
        curl(*PUT, json.dumps(content), f"{self.url}/schema/{kind}-store")

    def search(self, query, *parameters):
        """Return the answer to a query, with up to a hundred documents."""
        fields = ["defType=edismax", "qf=title body", "rows=100", "indent=off", "echoParams=explicit", f"q={query}"]
        data = urlencode(dict(field.split("=", 1) for field in [*fields, *parameters]))
        with urlopen(f"{self.url}/query", data.encode(), timeout=60) as answer:
            return json.load(answer)

    def log(self):
        """Upload the store `logged`, and return the file of the logs of all queries."""
        store = [
            {"store": "logged", "name": name, "class": f"{CLASS}.{kind}", "params": params}
            for name, (kind, params) in STORE.items()
        ]
        self.put("feature", store)
        answers = [self.search(q, f"fl=id,score,[features store=logged efi.text='{q}']") for q in shop.queries()]
        path = self.folder / "log.jsonl"
        path.write_text("".join(json.dumps(answer) + "\n" for answer in answers))
        return path

    def upload(self, name, model):
        """Export a model, do what the export says, and return the files and the parameter that ranks by the model."""
        done = export(model, "solr", self.folder / f"{name}.json", name=name, features=DEFINITIONS["solr"])
        step = done.next_step.replace("http://localhost:8983/solr/COLLECTION", self.url)
        *uploads, ranking = [shlex.split(line)[1:] for line in step.splitlines() if line.startswith("  curl ")]
        for words in uploads:
            curl(*words)
        (rerank,) = [word for word in ranking if word.startswith("rq=")]
        return {path.name: content.decode() for path, content in done.files.items()}, rerank

    def reload(self):
        """Let the core read the models that were uploaded."""
        curl(f"{self.address}/admin/cores?action=RELOAD&core=shop")

    def scores(self, rerank):
        """Return the scores by query and document of the model that a parameter ranks by."""
        answers = {query: self.search(query, rerank.replace("TEXT", query), "fl=id,score") for query in shop.queries()}
        return {(query, hit["id"]): hit["score"] for query in answers for hit in answers[query]["response"]["docs"]}


def solr(engine):
    """Return what the golden file of Solr holds, and the largest difference of each model from moerank's scores."""
    version = curl(f"{engine.address}/admin/info/system")["lucene"]["solr-spec-version"]
    log = engine.log()
    done = ingest(log, engine.folder / "table.parquet", judgments=engine.folder / "judgments.csv")
    lines = [json.loads(line) for line in log.read_text().splitlines()[:N_QUERIES]]
    for line in lines:
        del line["response"]["docs"][N_DOCUMENTS:]
    logged = [(line["responseHeader"]["params"]["q"], hit["id"]) for line in lines for hit in line["response"]["docs"]]
    models, differences = {}, {}
    uploaded = {name: (model, *engine.upload(name, model)) for name, model in trained(done.table)}
    engine.reload()
    for name, (model, files, rerank) in uploaded.items():
        scores = engine.scores(rerank)
        differences[name] = _difference(scores, expected(model, done.table))
        models[name] = {"model": json.loads(model.to_json()), "files": files, "scores": [scores[key] for key in logged]}
    return {"engine": f"Solr {version}", "log": lines, "models": models}, differences


def _difference(scores, own):
    """Return the largest difference in units of the largest score; the engine must have scored the same documents."""
    assert scores.keys() == own.keys()
    return max(abs(scores[key] - own[key]) for key in own) / max(map(abs, own.values()))


# Vespa

SCHEMA = "schema shop {{ document shop {{ {} }} }}"
FIELD = "field {} type float {{ indexing: attribute }}"


def scored_by_vespa(jars, files, rows):
    """Return the scores of rows of attributes by rank profile; files are put where `export` says they belong."""
    with tempfile.TemporaryDirectory() as folder:
        application = Path(folder, "application")
        schemas, models = application / "schemas", application / "models"
        (schemas / "shop").mkdir(parents=True)
        models.mkdir()
        (schemas / "shop.sd").write_text(SCHEMA.format("\n".join(map(FIELD.format, rows[0]))))
        for name, text in files.items():
            (schemas / "shop" if name.endswith(".profile") else models).joinpath(name).write_text(text)
        values = Path(folder, "rows.json")
        values.write_text(json.dumps([{f"attribute({name})": row[name] for name in row} for row in rows]))
        java = [*started.JAVA, "-cp", jars, HERE / "vespa" / "Score.java", application, values]
        done = subprocess.run(java, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise ValueError(done.stderr[-2000:])
    return json.loads(done.stdout)


def vespa(jars):
    """Return what the golden file of Vespa holds, for the models and documents of Solr's file, and the differences."""
    golden = json.loads((GOLDEN / "solr.json").read_text())
    exported = {name: Model.from_json(json.dumps(entry["model"])) for name, entry in golden["models"].items()}
    models = {}
    with tempfile.TemporaryDirectory() as folder:
        table = logged_table(golden["log"], Path(folder))
        frame = pq.read_table(table).to_pandas()
        for name, model in exported.items():
            done = export(model, "vespa", Path(folder, f"{name}.profile"), name=name)
            files = {path.name: text.decode() for path, text in done.files.items()}
            models[name] = {"model": golden["models"][name]["model"], "files": files}
        rows = json.loads(frame[list(STORE)].to_json(orient="records", double_precision=15))
        files = {file: text for entry in models.values() for file, text in entry["files"].items()}
        scores = scored_by_vespa(jars, files, rows)
        assert scores.keys() == models.keys()
        differences = {}
        for name, model in exported.items():
            models[name]["scores"] = scores[name]
            by_key = dict(zip(zip(frame["query"], frame["doc"], strict=True), scores[name], strict=True))
            differences[name] = _difference(by_key, expected(model, table))
    version = re.search(r"<version>(8[.\d]+)<", (HERE / "vespa" / "pom.xml").read_text())[1]
    return {"engine": f"Vespa {version}", "log": golden["log"], "models": models}, differences


def logged_table(lines, folder):
    """Return the table that is made of a log in which no document has a judgment but one."""
    (folder / "judgments.csv").write_text("query,document,grade\n" + JUDGED)
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return ingest(folder / "log.jsonl", folder / "t.parquet", judgments=folder / "judgments.csv", unjudged=0).table


def write(engine):
    with tempfile.TemporaryDirectory() as folder:
        if engine == "solr":
            with started.server("solr") as address:
                golden, differences = solr(Solr(address, Path(folder)))
        else:
            golden, differences = vespa(started.class_paths()["vespa"])
    origin = {"date": str(datetime.date.today()), "command": f"python tests/engines/make_golden.py {engine}"}
    (GOLDEN / f"{engine}.json").write_text(json.dumps(origin | golden, separators=(",", ":")) + "\n")
    for name, difference in differences.items():
        print(f"{golden['engine']}, {name}: largest difference {difference:.1e} of the largest score")


if __name__ == "__main__":
    write(*sys.argv[1:])
