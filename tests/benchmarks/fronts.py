"""Which search finds the best front of error and number of features: hypervolume against the best fronts known.

    python tests/benchmarks/fronts.py --out DIR [--sets digits,ohsumed] [--methods nsga2,staircase] [--seeds 0-10]
                                      [--evaluations 100000] [--update] [--exhaustive K] [--report]

Every set is fold 1 of a shipped problem without its constant features, as MOFSRank searches it, RankRLS tuned on its
validation data, and the problem's metric. A run of
100,000 evaluations is one of 1,000 and of 10,000 too, as no search here knows how long it will be. It is written to
DIR when it ends and not repeated, so the benchmark can be run in pieces. Never fails a build.

With N(k) the least error of at most k of the d features, hi the least error of one feature and lo the least known, the
hypervolume is  1/d Σ_{k=1}^{d−1} (1 − min(1, (N(k) − lo) / (hi − lo))), in per cent of that of the reference. On the
set with costs it is that of (features / d, (error − lo) / (hi − lo), cost / cost of all) below (1, 1, 1).

The references, fronts.json beside this file, are the union of the runs made with --update and of all subsets of up to
K features, which --exhaustive K enumerates: 4 on planted, mq2008 and ohsumed, 3 on digits and mslr, 2 on web. So far
they hold 11 runs of 10,000 evaluations of every method here, some of the variants, 11 of 100,000 of nsga2 and of
staircase, and some hundred of 10,000 to 100,000 of prototypes, whose strings were measured again. Better members
are merged by

    python tests/benchmarks/fronts.py --out DIR --methods all --evaluations 100000 --update
    python tests/benchmarks/fronts.py --out DIR --sets SET --exhaustive K --update
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import time
from itertools import combinations, islice
from pathlib import Path

import moocore
import numpy as np
from pymoo.core.problem import Problem

from moerank.evolution import ALGORITHMS, BIT_SEARCHES, Staircase, make_algorithm
from moerank.evolution import search as run_search
from moerank.metrics import NDCG
from moerank.mofsrank import FeatureSelection
from moerank.mofsrank.objectives import Objective, errors_of
from moerank.rankers import RankRLS
from moerank.rankers.arguments import varying_in_queries
from moerank.studies.problem import load_problem

REFERENCES = Path(__file__).with_suffix(".json")
SETS = ("digits", "planted", "mq2008", "ohsumed", "mslr", "web", "planted-cost")
BUDGETS = (1_000, 10_000, 100_000)
POPULATION = 100


class Cost(Objective):
    """What the features cost: from 1 to 9, no two neighbours the same."""

    name = "cost"
    title = "Cost"

    def values(self, candidates):
        return candidates.feature_mask @ self._prices(candidates.feature_mask.shape[1])

    def bounds(self, data, n_var):
        return 0.0, float(self._prices(n_var).sum())

    def _prices(self, n_features):
        return 1 + 5 * np.arange(n_features) % 9


class OfOneSize(Staircase):
    """The staircase search without growth."""

    def _size_now(self):
        return self.nominal_size


def _by_name(name):
    """What makes a listed algorithm for a stage."""

    def make(stage, adaptive=False):
        stage.adaptive = adaptive
        operators = stage.operators()
        if name in BIT_SEARCHES:
            del operators["sampling"]
        return make_algorithm(name, POPULATION, operators, stage.n_obj)

    return make


METHODS = {name: _by_name(name) for name in ("nsga2", *BIT_SEARCHES)}
METHODS |= {
    "nsga2-adaptive": lambda stage: _by_name("nsga2")(stage, adaptive=True),
    # The staircase search without one of its parts.
    "staircase-no-growth": lambda stage: OfOneSize(POPULATION),
    "staircase-random-start": lambda stage: Staircase(POPULATION),
}
assert set(BIT_SEARCHES) < set(ALGORITHMS)


class Recorded(Problem):
    """A stage that keeps when each member of the front was found, and the processor time of the evaluations."""

    def __init__(self, stage, offers_strings):
        super().__init__(n_var=stage.n_var, n_obj=stage.n_obj, vtype=bool)
        self.stage = stage
        if offers_strings:
            self.starting_strings = stage.starting_strings
        self.n, self.seconds = 0, 0.0
        self.front = np.empty((0, stage.n_obj))
        self.found_at, self.found_F, self.found_X = [], [], []
        self.begin = time.process_time()
        self.clock = []

    def _evaluate(self, X, out, *args, **kwargs):
        begin = time.process_time()
        empty = ~X.any(axis=1)
        F = np.tile(self.stage.worst, (len(X), 1))
        F[~empty] = self.stage.measure(X[~empty])
        now = time.process_time()
        self.seconds += now - begin
        self.clock += [(self.n + len(X), now - self.begin, self.seconds)]
        self._record(X, F, ~empty)
        self.begin += time.process_time() - now  # keeping the record is not the search's work
        out["F"] = F

    def _record(self, X, F, valid):
        both = np.concatenate((self.front, F))
        kept = moocore.is_nondominated(both)
        kept[len(self.front) :] &= valid
        for i in np.flatnonzero(kept[len(self.front) :]):
            self.found_at.append(self.n + i + 1)
            self.found_F.append(F[i])
            self.found_X.append(np.packbits(X[i]))
        self.front, self.n = both[kept], self.n + len(X)

    def __deepcopy__(self, memo):
        return self


def load(name, data):
    """Return the stage of a set and its three parts."""
    problem = load_problem(name.partition("-")[0])
    train, vali, test = problem.load_fold(1, data)
    objectives = ("features", "error", Cost()) if name.endswith("cost") else ("features", "error")
    backend, varying = RankRLS().tune(train, vali), varying_in_queries(train)
    train, vali, test = (part.with_features(varying) for part in (train, vali, test))
    return FeatureSelection(train, backend, problem.metric.make(), objectives=objectives), (train, vali, test)


def run(stage, method, seed, evaluations, path):
    problem = Recorded(stage, offers_strings=method != "staircase-random-start")
    stage.measure(np.eye(stage.n_var, dtype=bool))  # kernels are read or compiled, and matrices made
    algorithm = METHODS[method](stage)
    problem.begin = time.process_time()
    run_search(problem, algorithm, ("n_eval", evaluations), seed=seed)
    unfinished = path.with_suffix(".tmp.npz")
    np.savez_compressed(
        unfinished, found_at=problem.found_at, F=problem.found_F, X=problem.found_X, clock=problem.clock
    )
    unfinished.replace(path)


def enumerate_subsets(stage, most):
    """Yield the objectives and bits of all subsets of up to `most` features, thousands at a time."""
    for size in range(1, most + 1):
        subsets = combinations(range(stage.n_var), size)
        while chunk := list(islice(subsets, 4096)):
            X = np.zeros((len(chunk), stage.n_var), bool)
            X[np.arange(len(chunk))[:, None], chunk] = True
            F = stage.measure(X)
            best = moocore.is_nondominated(F)
            yield F[best], np.packbits(X[best], axis=1)


class Reference:
    """The best front known of a set: its strings, which are measured on the data as they are now."""

    def __init__(self, name, stage):
        self.name = name
        stored = json.loads(REFERENCES.read_text(encoding="utf-8")) if REFERENCES.exists() else {}
        self.F, self.X = np.empty((0, stage.n_obj)), []
        rows = [bytes.fromhex(string) for string in stored.get(name, [])]
        if rows:
            packed = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
            self.add(stage.measure(np.unpackbits(packed, axis=1, count=stage.n_var).view(bool)), rows)

    def add(self, F, X):
        if len(F):
            both = np.concatenate((self.F, F)) if len(self.F) else np.asarray(F)
            rows = self.X + [bytes(row) for row in X]
            kept = np.flatnonzero(moocore.is_nondominated(both))
            kept = kept[np.lexsort(both[kept].T[::-1])]
            self.F, self.X = both[kept], [rows[i] for i in kept]

    def store(self):
        stored = json.loads(REFERENCES.read_text(encoding="utf-8")) if REFERENCES.exists() else {}
        stored[self.name] = [row.hex() for row in self.X]
        REFERENCES.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def hypervolume(F, reference, n_features, most):
    """The hypervolume of a front as the docstring of this file has it, not yet as a share of the reference's."""
    lo, hi = reference[:, 1].min(), reference[reference[:, 0] == 1, 1].min()
    if F.shape[1] == 3:
        scaled = (F - [0, lo, 0]) / [n_features, hi - lo, most[2]]
        scaled = scaled[(scaled < 1).all(axis=1)]
        return moocore.hypervolume(scaled, ref=[1, 1, 1]) if len(scaled) else 0.0
    least = np.full(n_features + 1, np.inf)
    np.minimum.at(least, F[:, 0].astype(int), F[:, 1])
    steps = np.minimum.accumulate(least)[1:n_features]
    return float((1 - np.minimum(1, (steps - lo) / (hi - lo))).sum()) / n_features


def judged(stage, parts, F, X):
    """The test NDCG@10 of the members of at most 5 and 10 features, of validation's choice, and of the least error."""
    rankers = stage.rankers(X)
    vali, test = (1.0 - errors_of(part, NDCG(10, convention="letor"), rankers) for part in parts[1:])
    order = np.lexsort((F[:, 0], F[:, 1]))
    chosen = [next(iter(order[F[order, 0] <= k]), None) for k in (5, 10)]
    chosen += [np.lexsort((F[:, 0], -vali))[0], order[0]]
    return [np.nan if i is None else test[i] for i in chosen]


def report(name, stage, parts, out, methods, seeds, evaluations):
    reference, most = Reference(name, stage).F, stage.bounds_of_objectives[1]
    whole = hypervolume(reference, reference, stage.n_var, most)
    print(f"\n{name}: {stage.n_var} features, {stage.backend}; the reference has {len(reference)} members")
    print("hypervolume in % of the reference's, mean ± sd; seconds of the processor: all, of these the search")
    for budget in (budget for budget in BUDGETS if budget <= evaluations):
        print(f"{budget:,} evaluations: test NDCG@10 of <= 5, <= 10 features, by validation, of least error")
        for method in methods:
            shares, seconds, quality, reached = [], [], [], []
            for path in (result_path(out, name, method, seed, evaluations) for seed in seeds):
                if not path.exists():
                    continue
                with np.load(path) as file:
                    found_at, F, packed, clock = (file[key] for key in ("found_at", "F", "X", "clock"))
                share = _share_of(stage, reference, most, whole)
                early = found_at <= budget
                kept = np.flatnonzero(early)[moocore.is_nondominated(F[early])]
                shares.append(share(F[kept]))
                seconds.append(clock[min(np.searchsorted(clock[:, 0], budget), len(clock) - 1), 1:])
                bits = np.unpackbits(packed[kept], axis=1, count=stage.n_var).view(bool)
                quality.append(judged(stage, parts, F[kept], bits))
                if budget == BUDGETS[-1] or budget == evaluations:
                    reached.append(_first_at(95, found_at, F, share))
            if shares:
                total, fitness = np.mean(seconds, axis=0)
                line = f"  {method:24} {np.mean(shares):6.1f} ± {np.std(shares):4.1f} ({len(shares)})"
                line += f"  {total:6.2f} {total - fitness:6.2f}   "
                line += " ".join(f"{value:.4f}" for value in np.nanmean(quality, axis=0))
                if reached:
                    line += f"   95 % after {np.median(reached):,.0f} (median)"
                print(line, flush=True)


def _share_of(stage, reference, most, whole):
    return lambda F: 100 * hypervolume(F, reference, stage.n_var, most) / whole


def _first_at(percent, found_at, F, share):
    """After how many evaluations the hypervolume has that share; infinity if never."""
    low, high = 0, len(F)
    if share(F) < percent:
        return np.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if share(F[:middle]) >= percent else (middle, high)
    return found_at[high - 1]


def result_path(out, name, method, seed, evaluations):
    return out / f"{name}.{method}.{seed}.{evaluations}.npz"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("MOERANK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default, help="folder with MQ2008/, OHSUMED/ and MSLR/")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default="nsga2,staircase", help="names, or all: " + ", ".join(METHODS))
    parser.add_argument("--seeds", default="0-10", help="first and last")
    parser.add_argument("--evaluations", type=int, default=BUDGETS[-1])
    parser.add_argument("--exhaustive", type=int, default=0, metavar="K", help="enumerate subsets up to this size")
    parser.add_argument("--update", action="store_true", help="merge what is better into the references")
    parser.add_argument("--report", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    methods = list(METHODS) if arguments.methods == "all" else arguments.methods.split(",")
    first, _, last = arguments.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.sets.split(","):
        stage, parts = load(name, arguments.data)
        reference = Reference(name, stage)
        for F, X in enumerate_subsets(stage, arguments.exhaustive):
            reference.add(F, X)
        for method in [] if arguments.report or arguments.exhaustive else methods:
            if stage.n_obj != 2 and method == "mffs":
                continue  # it is made for two objectives
            for seed in seeds:
                path = result_path(arguments.out, name, method, seed, arguments.evaluations)
                if not path.exists():
                    run(stage, method, seed, arguments.evaluations, path)
        if arguments.update:
            for path in sorted(arguments.out.glob(f"{name}.*.npz")):
                with np.load(path) as file:
                    reference.add(file["F"], file["X"])
            reference.store()
        report(name, stage, parts, arguments.out, methods, seeds, arguments.evaluations)


if __name__ == "__main__":
    main()
