"""Features that solvers select, by their own rankers and by LightGBM trained on them, on four kinds of data.

    python tests/benchmarks/selected.py --out values.jsonl [--shops DIR] [--seeds 5] [--methods gain RFE ...] [--show]

MQ2008 and OHSUMED have five folds, the shop has each table DIR/*/shop.parquet, as in `additive.py`. At k = 3, 5, 8, 10,
15 and 20 each solver gives at most k features, and LightGBM (100 trees of 10 leaves) is trained on them. Solvers that
draw random numbers run once for each seed. Each row is appended to the file as soon as it is there, and a second run
does only what is missing; --show prints the tables. Times are of the processor, in one thread. Never fails a build.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import frame
import lightgbm
import numpy as np
import pandas as pd
from additive import NDCG, Fold, example, shop
from rich.table import Table

import moerank as mr

TREES = {"objective": "lambdarank", "num_threads": 1, "verbosity": -1, "num_leaves": 10, "seed": 0}
SIZES = (3, 5, 8, 10, 15, 20)
MOST_FORWARD = 5
"""Features of forward selection, each step of which trains LightGBM on every feature that is left."""

MOST_RANKED = 10
OWN = ", own ranker"

Selected = tuple[dict[int, np.ndarray], dict[int, np.ndarray]]  # masks by size, and own test scores
STAGES = {"instance_selection": False, "ensemble": False, "adaptive_mutation": False}
RANDOM = ("mofsrank-additive", "linear judge", "permutation")


def leaves(train: mr.RankingData) -> int:
    """Return the least number of documents in a leaf."""
    return max(1, round(0.0025 * train.n_documents))


def trees(train: mr.RankingData, mask: np.ndarray) -> lightgbm.Booster:
    """Train LightGBM on some features."""
    data = lightgbm.Dataset(train.X[:, mask], train.y, group=np.diff(train.offsets))
    return lightgbm.train({**TREES, "min_data_in_leaf": leaves(train)}, data, 100)


def by_search(fold: Fold, seed: int, name: str, generations: int) -> Selected:
    """Search on the training part, with the backend tuned on the validation part."""
    train, validation, test = fold
    solver = mr.make_solver(name, random_state=seed, feature_selection={"generations": generations}, **STAGES)
    solver.fit(train, validation=validation)
    scores, sizes = solver.front_rankers_.scores(test.X), solver.front_support_.sum(axis=1)
    errors = solver.front_["error"].to_numpy()
    best = {k: min(np.flatnonzero(sizes <= k), key=lambda i: errors[i]) for k in SIZES}
    return {k: solver.front_support_[i] for k, i in best.items()}, {k: scores[:, i] for k, i in best.items()}


def by_order(fold: Fold, seed: int, name: str) -> Selected:
    """Take the first features of an order by LightGBM with 100 trees of 10 leaves."""
    train, validation, _ = fold
    solver = mr.make_solver(name, n_trees=100, n_leaves=10, min_leaf=leaves(train))
    if "random_state" in solver.get_params():
        solver.set_params(random_state=seed, metric=NDCG)
    order = solver.fit(train, validation=validation if name == "lambdamart-permutation" else None).order_
    return {k: np.isin(np.arange(train.n_features), order[:k]) for k in SIZES}, {}


def by_cost(fold: Fold, _: int) -> Selected:
    """Take the members of a sweep of the tradeoff."""
    path = mr.make_solver("cegb", n_trees=100, n_leaves=10, min_leaf=leaves(fold[0])).fit(fold[0]).path(fold[0])
    return {k: path.feature_mask[k - 1] for k in SIZES}, {}


def by_steps(fold: Fold, _: int) -> Selected:
    """Add step functions greedily, tuned on all features, and rank by them."""
    train, validation, test = fold
    ranker = mr.AdditiveRLS().tune(train, validation)
    order = ranker.forward_path(train)
    masks = np.array([np.isin(np.arange(train.n_features), order[:k]) for k in SIZES])
    scores = ranker.fit_population(train, feature_mask=masks).scores(test.X)
    return dict(zip(SIZES, masks, strict=True)), dict(zip(SIZES, scores.T, strict=True))


def forward(fold: Fold, _: int) -> Selected:
    """Add the feature with which LightGBM is best on the validation part."""
    train, validation, _ = fold
    mask, masks = np.zeros(train.n_features, bool), {}
    varying = np.flatnonzero(np.ptp(train.X, axis=0) > 0)
    for k in range(1, MOST_FORWARD + 1):
        others = [mask | (np.arange(len(mask)) == f) for f in varying if not mask[f]]
        values = [NDCG.score(validation, trees(train, m).predict(validation.X[:, m])) for m in others]
        mask = masks[k] = others[int(np.argmax(values))]
    return {k: masks[k] for k in SIZES if k in masks}, {}


ORDERS = {"RFE": "rfe", "gain": "gain", "SHAP": "shap", "permutation": "permutation"}
METHODS: dict[str, Callable[[Fold, int], Selected]] = {
    "mofsrank-additive": partial(by_search, name="mofsrank-additive", generations=30),
    "linear judge": partial(by_search, name="mofsrank-staircase", generations=100),
    "greedy-additive": by_steps,
    **{name: partial(by_order, name=f"lambdamart-{solver}") for name, solver in ORDERS.items()},
    "ilmart": partial(by_order, name="ilmart"),
    "cegb": by_cost,
    "forward": forward,
}


def folds(data: Path, shops: str) -> Iterator[tuple[str, str, Callable[[], Fold]]]:
    """Yield set, fold, and a function that reads it, the sets in turn."""
    tables = sorted(Path(shops).glob("*/shop.parquet")) if shops else []
    for f in range(5):
        for name in ("MQ2008", "OHSUMED"):
            yield name, f"{f + 1}", lambda name=name, f=f: mr.load_fold(data / name / f"Fold{f + 1}")
        for table in tables[f : f + 1]:
            yield "shop", table.parent.name, lambda table=table: shop(table)
    yield "LightGBM", "1", lambda: example(data / "LightGBM")


def measure(out: Path, methods: list[str], seeds: int, data: Path, shops: str) -> None:
    """Append what is missing: a row for each method, fold and seed."""
    rows = map(json.loads, out.read_text().splitlines()) if out.exists() else ()
    done = {(row["method"], row["set"], row["fold"], row["seed"]) for row in rows}
    compiled = set()
    for seed in range(seeds):
        for name, number, read in folds(data, shops):
            missing = [m for m in methods if (m, name, number, seed) not in done and (m in RANDOM or not seed)]
            fold = read() if missing else ()
            for method in missing:
                if method not in compiled:
                    compiled.add(method)
                    METHODS[method](tuple(part.with_rows(np.arange(part.offsets[20])) for part in fold), 0)
                begin = time.process_time()
                masks, scores = METHODS[method](fold, seed)
                seconds, (train, _, test) = time.process_time() - begin, fold
                refitted = {k: trees(train, mask).predict(test.X[:, mask]) for k, mask in masks.items() if mask.any()}
                row = {"method": method, "set": name, "fold": number, "seed": seed, "seconds": seconds}
                for kind, of_size in (("own", scores), ("trees", refitted)):
                    row[kind] = {k: np.round(NDCG.per_query(test, s), 5).tolist() for k, s in of_size.items()}
                with out.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def show(out: Path) -> None:
    """Print means over test queries, differences from mofsrank-additive at k ≤ 10, and mean ranks."""
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    seconds = pd.DataFrame(rows).groupby(["set", "method"])["seconds"].mean()
    keys = ["set", "k", "ranker", "fold", "query"]
    values = pd.DataFrame(
        (row["set"], int(k), row["method"] + OWN * (kind == "own"), row["fold"], query, value)
        for row in rows
        for kind in ("own", "trees")
        for k, of_queries in row[kind].items()
        for query, value in enumerate(of_queries)
    )
    by_query = values.set_axis([*keys, "value"], axis=1).groupby(keys)["value"].mean()  # over seeds
    means = by_query.groupby(keys[:3]).mean().unstack("k").reindex(columns=list(SIZES))
    small = (
        by_query[by_query.index.get_level_values("k") <= MOST_RANKED].groupby(["set", "ranker", "fold", "query"]).mean()
    )
    for name, of_set in means.groupby("set"):
        table = Table(name, "seconds", *map(str, SIZES), f"difference at k ≤ {MOST_RANKED}")
        for ranker, of_sizes in of_set.droplevel("set").iterrows():
            gap = (small[name, ranker] - small[name, f"mofsrank-additive{OWN * ranker.endswith(OWN)}"]).dropna()
            shown = [f"{value:.4f}" for value in of_sizes]
            spread = f"{gap.mean():+.4f} ± {gap.std() / np.sqrt(len(gap)):.4f}"
            table.add_row(ranker, f"{seconds[name, ranker.removesuffix(OWN)]:.1f}", *shown, spread)
        frame.show(table)
    ranked = means.loc[:, :MOST_RANKED].stack().unstack("ranker").dropna(axis=1)
    table = Table("ranker", f"mean rank over sets and k ≤ {MOST_RANKED}")
    for ranker, rank in ranked.rank(axis=1, ascending=False).mean().sort_values().items():
        table.add_row(ranker, f"{rank:.2f}")
    frame.show(table)


def main() -> None:
    """Measure, or show what was measured."""
    arguments = frame.arguments(__doc__, out="selected.jsonl", shops="", seeds=5, methods=[*METHODS], show=False)
    if not arguments.show:
        measure(Path(arguments.out), arguments.methods, arguments.seeds, arguments.data, arguments.shops)
    show(Path(arguments.out))


if __name__ == "__main__":
    main()
