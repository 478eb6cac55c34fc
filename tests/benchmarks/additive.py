"""The additive ranker: time of a search, of tuning and of scores, and its test values beside the linear ranker's.

    python tests/benchmarks/additive.py [--data DIR] [--shop shop.parquet] [--parts search tuning serving]

The searches are Staircase with 10,000 evaluations on fold 1. `--shop` is a table of products with the columns relevance
and query_id, 50 documents of each of 800 queries; without it that data set is left out. Times are of the processor, in
one thread. Never fails a build.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import frame
import numpy as np
import pandas as pd
from rich.table import Table
from sklearn.datasets import load_svmlight_file

import moerank as mr
from moerank.rankers import AdditiveRLS

NDCG = mr.NDCG(10)
GOALS = {"MQ2008": 4, "OHSUMED": 6, "shop": 8}
Fold = tuple[mr.RankingData, ...]


def shop(path: Path) -> Fold:
    """Read a table of products: switches as numbers, categories as columns, means of the query for missing values."""
    table = pd.read_parquet(path)
    y, qid = table.pop("relevance"), table.pop("query_id")
    table = table.drop(columns=["query", "position", "clicks", "purchases"], errors="ignore")
    table["listed_at"] = pd.to_datetime(table["listed_at"]).astype("int64") / 8.64e13
    table = pd.get_dummies(table, columns=["category_name"])
    texts = table.select_dtypes(exclude=["number", "bool"]).columns
    table[texts] = table[texts] == "true"
    table = table.astype(float)
    table = table.fillna(table.groupby(qid).transform("mean")).fillna(0.0)
    parts = [(qid > begin) & (qid <= end) for begin, end in ((0, 480), (480, 640), (640, 800))]
    return tuple(mr.RankingData(table[part], y[part], qid[part]) for part in parts)


def example(folder: Path) -> Fold:
    """Read LightGBM's example; its training queries are divided for validation."""
    data = []
    for name in ("rank.train", "rank.test"):
        X, y = load_svmlight_file(str(folder / name), n_features=301)
        sizes = np.loadtxt(folder / f"{name}.query", dtype=int)
        data.append(mr.RankingData(X.toarray(), y.astype(int), np.repeat(np.arange(len(sizes)), sizes)))
    train, test = data
    rows = np.arange(train.n_documents)
    cut = train.offsets[int(0.8 * train.n_queries)]
    return train.with_rows(rows[:cut]), train.with_rows(rows[cut:]), test


def data_sets(folder: Path, shop_table: str) -> Iterator[tuple[str, Fold]]:
    """Yield the first fold of each data set that is there."""
    for name in ("MQ2008", "OHSUMED", "MSLR"):
        yield name, mr.load_fold(folder / name / "Fold1")
    yield "LightGBM", example(folder / "LightGBM")
    if shop_table:
        yield "shop", shop(Path(shop_table))


def searches(folder: Path, shop_table: str) -> None:
    """Search by the linear and the additive ranker."""
    table = Table("data", "backend", "seconds", "goal", "ratio")
    settings = {"tune": False, "instance_selection": False, "ensemble": False, "adaptive_mutation": False}
    for name, (train, _, _) in data_sets(folder, shop_table):
        if name in GOALS:
            of_backend = {}
            for backend in (mr.RankRLS(alpha=0.01), AdditiveRLS()):
                for budget in (500, 10_000):  # the first compiles
                    stage = {"termination": ("n_eval", budget)}
                    solver = mr.MOFSRank(
                        backend, algorithm="staircase", random_state=0, feature_selection=stage, **settings
                    )
                    seconds, _ = frame.least_seconds(lambda _, solver=solver, train=train: solver.fit(train), 1)
                of_backend[backend] = seconds
                goal = f"{GOALS[name]}" if isinstance(backend, AdditiveRLS) else ""
                ratio = seconds / next(iter(of_backend.values()))
                table.add_row(name, type(backend).__name__, f"{seconds:.2f}", goal, f"{ratio:.1f}")
    frame.show(table)


def tuning(folder: Path, shop_table: str) -> None:
    """Tune by validation, and compare test values on all features with those of RankRLS: five folds of LETOR's sets."""
    metrics = (NDCG, mr.NDCG(10, convention="letor"), mr.MAP())
    table = Table(
        "data", "seconds", *(f"{kind} {m.name}" for kind in ("linear", "additive", "gain in") for m in metrics)
    )
    for name, first in data_sets(folder, shop_table):
        folded = name in ("MQ2008", "OHSUMED")
        folds = [mr.load_fold(folder / name / f"Fold{f}") for f in range(1, 6)] if folded else [first]
        seconds, values = 0.0, {"linear": [], "additive": []}
        for train, validation, test in folds:
            for kind, ranker in (("linear", mr.RankRLS()), ("additive", AdditiveRLS())):
                took, tuned = frame.least_seconds(lambda _, r=ranker, t=train, v=validation: r.tune(t, v), 1)
                seconds += took * (kind == "additive")
                scores = tuned.fit(train).predict(test)
                values[kind].append([metric.per_query(test, scores) for metric in metrics])
        by_query = {kind: np.concatenate(each, axis=1) for kind, each in values.items()}
        gain = by_query["additive"] - by_query["linear"]
        means = [f"{value:.4f}" for kind in ("linear", "additive") for value in by_query[kind].mean(axis=1)]
        errors = gain.std(axis=1) / np.sqrt(gain.shape[1])
        gains = [f"{value:+.4f} ± {error:.4f}" for value, error in zip(gain.mean(axis=1), errors, strict=True)]
        table.add_row(name, f"{seconds / len(folds):.2f}", *means, *gains)
    frame.show(table)


def serving(folder: Path, shop_table: str) -> None:
    """Score the test part by the ten features that greedy steps take first."""
    table = Table("data", "documents", "ranker", "µs a document", "trees", "NDCG@10")
    for name, (train, validation, test) in data_sets(folder, shop_table):
        chosen = np.isin(np.arange(train.n_features), AdditiveRLS().forward_path(train, 10))
        parts = [part.with_features(chosen) for part in (train, validation, test)]
        trees = mr.LambdaMART(100, n_leaves=10, min_leaf=max(1, round(0.0025 * train.n_documents)))
        for ranker in (mr.RankRLS().tune(*parts[:2]), AdditiveRLS().tune(*parts[:2]), trees):
            scored = ranker.fit(parts[0])
            seconds, scores = frame.least_seconds(lambda _, r=scored, x=parts[2].X: r.predict(x), 5)
            micro, forest = 1e6 * seconds / test.n_documents, getattr(scored, "forest_", None)
            cells = (f"{micro:.2f}", f"{len(forest.roots)}" if forest else "", f"{NDCG.score(test, scores):.4f}")
            table.add_row(name, f"{test.n_documents:,}", type(ranker).__name__, *cells)
    frame.show(table)


def main() -> None:
    """Measure what was asked for."""
    measures = {"search": searches, "tuning": tuning, "serving": serving}
    arguments = frame.arguments(__doc__, shop="", parts=list(measures))
    for part in arguments.parts:
        measures[part](arguments.data, arguments.shop)


if __name__ == "__main__":
    main()
