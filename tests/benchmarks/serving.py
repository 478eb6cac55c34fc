"""The ranker that serves, as `moerank init` writes it, beside rankers on all features and on orders of them.

    python tests/benchmarks/serving.py --out values.jsonl [--sets MQ2008 shop ...] [--deals 5] [--data DIR] [--show]

A set is a folder with folds, a compressed table DIR/NAME.csv.gz whose queries are dealt 60/20/20, or shop, with a table
for each deal. At k = 3, 5, 8, 10 and 15, moerank gives the member of at most k features that ranks unseen queries best.
Orders of LightGBM give their first k, and LambdaMART (300 trees of 15 leaves, stopped by validation) is trained on
them. Each row is appended to the file as soon as it is there, and a second run does only what is missing; --show prints
NDCG@10 on the test queries of all deals, with paired errors against LambdaMART on all features. Times are of the
processor, in one thread. Never fails a build.
"""

from __future__ import annotations

import json
import time
from itertools import chain
from pathlib import Path

import frame
import numpy as np
import pandas as pd
from additive import example
from rich.table import Table

import moerank as mr
from moerank.data.folds import split_queries
from moerank.solvers import SERVERS
from moerank.statistics import mean_and_error

NDCG = mr.NDCG(10)
SIZES = (3, 5, 8, 10, 15)
TREES = {"n_trees": 300, "n_leaves": 15, "min_leaf": 20}
ORDERS = {"gain": "gain", "SHAP": "shap", "permutation": "permutation", "elimination": "rfe"}
ALL, OWN = "all", "own choice"

Rankings = dict[str, tuple[int, np.ndarray]]  # number of features and test scores, by size


def fold_of(name: str, deal: int, data: Path) -> tuple[mr.RankingData, ...]:
    """Return the training, validation and test part of a deal of a set."""
    if name == "shop":
        return mr.load_shop_fold(1, seed=deal)
    if name == "LightGBM":
        return example(data / name)
    if (data / name).is_dir():
        return mr.load_fold(data / name / f"Fold{deal + 1}")
    table = pd.read_csv(data / f"{name}.csv.gz", dtype={"query": str}).sort_values("query", kind="stable")
    X = table.drop(columns=["query", "label"])
    return split_queries(mr.RankingData(X.to_numpy(float), table["label"], table["query"]), seed=deal)


def served(fold: tuple[mr.RankingData, ...], deal: int) -> Rankings:
    """Search and choose as the file that `moerank init` writes."""
    train, validation, test = fold
    solver = mr.MOFSRank(
        "additive",
        NDCG,
        algorithm="staircase",
        instance_selection=False,
        ensemble=False,
        refit=[*chain.from_iterable(SERVERS.values())],
        random_state=deal,
    ).fit(train, validation=validation)
    sizes, quality = solver.front_["n_features"].to_numpy(), solver.front_["unseen"].to_numpy()
    scores = solver.front_rankers_.scores(test.X)
    found = {OWN: (int(solver.support_.sum()), solver.predict(test.X))}
    for k in SIZES:
        fitting = np.flatnonzero(sizes <= k)
        best = fitting[quality[fitting].argmax()]
        found[str(k)] = int(sizes[best]), scores[:, best]
    return found


def trees(fold: tuple[mr.RankingData, ...], mask: np.ndarray) -> np.ndarray:
    """Return the test scores of LambdaMART on some features."""
    train, validation, test = (part.with_features(mask) for part in fold)
    return mr.LambdaMART(**TREES).stopped(train, validation, NDCG).predict(test.X)


def by_trees(fold: tuple[mr.RankingData, ...], deal: int, name: str) -> Rankings:
    """Take the first features of an order by LightGBM, or all."""
    train, validation, _ = fold
    everything = np.ones(train.n_features, bool)
    if name == ALL:
        return {ALL: (train.n_features, trees(fold, everything))}
    settings = {"n_features_to_select": 1, "tuning": NDCG} | TREES
    if name == "elimination":
        settings["n_trees"] = 80
    solver = mr.make_solver(f"lambdamart-{ORDERS[name]}", **settings)
    if "random_state" in solver.get_params():
        solver.set_params(random_state=deal, metric=NDCG)
    order = solver.fit(train, validation=validation).order_
    found = {}
    for k in SIZES:
        mask = np.isin(np.arange(train.n_features), order[:k])
        found[str(k)] = int(mask.sum()), trees(fold, mask)
    return found


def by_steps(fold: tuple[mr.RankingData, ...], _: int) -> Rankings:
    """Add step functions greedily, tuned on all features, and rank by them, or by all of them."""
    train, validation, test = fold
    ranker = mr.AdditiveRLS().tune(train, validation, metric=NDCG)
    order = ranker.forward_path(train)
    masks = np.array([np.isin(np.arange(train.n_features), order[:k]) for k in (*SIZES, len(order))])
    scores = ranker.fit_population(train, feature_mask=masks).scores(test.X)
    return {label: (int(m.sum()), s) for label, m, s in zip((*map(str, SIZES), ALL), masks, scores.T, strict=True)}


METHODS = ("served", "LambdaMART", "greedy-additive", *ORDERS)


def measured(method: str, fold: tuple[mr.RankingData, ...], deal: int) -> Rankings:
    """Return the rankings of a method."""
    if method == "served":
        return served(fold, deal)
    if method == "greedy-additive":
        return by_steps(fold, deal)
    return by_trees(fold, deal, ALL if method == "LambdaMART" else method)


def measure(out: Path, sets: list[str], deals: int, data: Path) -> None:
    """Append what is missing: a row for each method and deal of each set."""
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(row["set"], row["deal"], row["method"]) for row in rows}
    for name in sets:
        for deal in range(1 if name in ("MSLR", "LightGBM") else deals):
            missing = [method for method in METHODS if (name, deal, method) not in done]
            fold = fold_of(name, deal, data) if missing else ()
            for method in missing:
                begin = time.process_time()
                found = measured(method, fold, deal)
                row = {"set": name, "deal": deal, "method": method, "seconds": time.process_time() - begin}
                for label, (n_features, scores) in found.items():
                    row[label] = {"n": n_features, "values": NDCG.per_query(fold[2], scores).tolist()}
                with out.open("a") as file:
                    print(json.dumps(row), file=file)


def show(out: Path, sets: list[str]) -> None:
    """Print a table for each set."""
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    columns = (*map(str, SIZES), OWN, ALL)
    n_compared, n_ahead, n_behind = 0, 0, 0
    for name in sets:
        of_set = [row for row in rows if row["set"] == name]
        reference = {row["deal"]: row[ALL]["values"] for row in of_set if row["method"] == "LambdaMART"}
        deals = f"{len(reference)} deal" + "s" * (len(reference) > 1)
        table = Table("ranker", "s", *columns, "own choice, or all, against LambdaMART", title=f"{name}, {deals}")
        for method in METHODS:
            found = [row for row in of_set if row["method"] == method]
            if not found:
                continue
            cells = []
            for column in columns:
                values = [row[column]["values"] for row in found if column in row]
                cells.append(f"{np.concatenate(values).mean():.4f}" if values else "")
                if column == OWN and values:
                    cells[-1] += f" ({np.mean([row[OWN]['n'] for row in found]):.1f})"
            last = OWN if OWN in found[0] else ALL
            difference = ""
            if last in found[0] and method != "LambdaMART":
                d = [np.subtract(row[last]["values"], reference[row["deal"]]) for row in found]
                difference = "{:+.4f} ± {:.4f}".format(*mean_and_error(np.concatenate(d)))
            seconds = np.mean([row["seconds"] for row in found])
            table.add_row(method, f"{seconds:.1f}", *cells, difference)
            if method not in ("served", "LambdaMART"):
                served_on = {row["deal"]: row for row in of_set if row["method"] == "served"}
                for k in map(str, SIZES):
                    d = [np.subtract(served_on[row["deal"]][k]["values"], row[k]["values"]) for row in found]
                    mean, error = mean_and_error(np.concatenate(d))
                    n_compared, n_ahead, n_behind = n_compared + 1, n_ahead + (mean > error), n_behind + (mean < -error)
        frame.show(table, 150)
    print(f"{n_compared} comparisons at one size: ahead by more than an error {n_ahead}, behind {n_behind}")


def main():
    sets = ["MQ2008", "OHSUMED", "MSLR", "LightGBM", "agg", "cw09", "tables", "shop"]
    arguments = frame.arguments(__doc__, out="values.jsonl", sets=sets, deals=5, show=False)
    if not arguments.show:
        measure(Path(arguments.out), arguments.sets, arguments.deals, arguments.data)
    show(Path(arguments.out), arguments.sets)


if __name__ == "__main__":
    main()
