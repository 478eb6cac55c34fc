"""What Solr needs to rank again by all features, chosen ones and an additive ranker: python tests/engines/latency.py.

Each of 15 queries ranks its first 100 documents again, by each model in turn. The median over the rounds counts, after
those in which Java still compiles; time is Solr's on the processor, which other programs hardly change.
"""

import tempfile
from pathlib import Path
from statistics import median

import make_golden
import shop
import started

import moerank as mr

ROUNDS, DISCARDED = 40, 20


def features():
    """Return 30 features: scores of two fields by queries of several kinds, and functions of three fields."""
    queries = {}
    for field in ("title", "body"):
        queries |= {f"{field}_match_{share}": f"{{!edismax mm={share}% qf={field}}}${{text}}" for share in (1, 50, 100)}
        queries |= {f"{field}_{n}": f"{{!edismax qf={field} pf={field} ps={n}}}${{text}}" for n in range(1, 6)}
        queries[f"{field}_phrase"] = f"{{!field f={field}}}${{text}}"
    for field in ("price", "age", "stock"):
        functions = (f"log(sum({field},1))", f"sqrt({field})", f"recip({field},1,100,100)")
        queries |= {f"{field}_{number}": f"{{!func}}{function}" for number, function in enumerate(functions)}
    fields = {field: ("FieldValueFeature", {"field": field}) for field in ("price", "age", "stock")}
    return {name: ("SolrFeature", {"q": query}) for name, query in queries.items()} | fields


def milliseconds(engine, name):
    """Return Solr's time on the processor for a query, ranked again by a model unless `name` is None."""
    begin = processor_time(engine)
    for query in shop.queries():
        rerank = f"rq={{!ltr model={name} reRankDocs=100 efi.text='{query}'}}"
        engine.search(query, "fl=id", *([rerank] if name is not None else []))
    return (processor_time(engine) - begin) / 1e6 / shop.N_QUERIES


def processor_time(engine):
    """Return the nanoseconds that Solr has had."""
    answer = make_golden.curl(f"{engine.address}/admin/metrics?group=jvm&prefix=os.processCpuTime")
    return answer["metrics"]["solr.jvm"]["os.processCpuTime"]


def main():
    make_golden.STORE = features()
    make_golden.DEFINITIONS["solr"] = {
        name: {"solr": {"class": kind, "params": params}} for name, (kind, params) in make_golden.STORE.items()
    }
    with tempfile.TemporaryDirectory() as folder, started.server("solr") as address:
        engine = make_golden.Solr(address, Path(folder))
        table = mr.ingest(engine.log(), engine.folder / "t.parquet", judgments=engine.folder / "judgments.csv").table
        data = mr.load_table(table, missing=0)
        scaled = mr.fit_scaling(data, "standard").apply(data)
        names = [str(name) for name in data.feature_names]
        chosen = mr.MOFSRank(final="one-se", random_state=0).fit(scaled, validation=scaled)
        own = [name for name, used in zip(names, chosen.support_, strict=True) if used]
        few = mr.load_table(table, missing=0, features=own)
        rankers = {
            "all": (mr.RankRLS().fit(scaled), names),
            "chosen": (chosen, names),
            "additive": (mr.AdditiveRLS().fit(few), own),
        }
        models = {name: make_golden.Model.of(ranker, columns) for name, (ranker, columns) in rankers.items()}
        for name, model in models.items():
            engine.upload(name, model)
        engine.reload()
        times = {name: [] for name in (None, *models)}
        for _ in range(ROUNDS):
            for name, measured in times.items():
                measured.append(milliseconds(engine, name))
    ms = {name: median(measured[DISCARDED:]) for name, measured in times.items()}
    alone = {name: ms[name] - ms[None] for name in models}
    print(f"{'ranked again by':16} features  ms a query  without the first phase  share")
    print(f"{'nothing':16} {'':8}  {ms[None]:10.1f}")
    for name, model in models.items():
        n, share = len(model.names), alone[name] / alone["all"]
        print(f"{name:16} {n:8}  {ms[name]:10.1f}  {alone[name]:23.1f}  {share:5.2f}")


if __name__ == "__main__":
    main()
