"""Five-fold test results of MOFSRank beside RankSVM and FSMRank, with paired standard errors.

    python tests/benchmarks/five_folds.py [--data DIR] [--seeds 3] [--workers 2]

Regularisation and final member are chosen on validation data (the rows "by train" choose the member by the paper's
rule); test data choose nothing. Differences are per query, MOFSRank minus RankSVM, averaged over the seeds first.
"""

from __future__ import annotations

import frame
import numpy as np
from rich.table import Table

from moerank.data import load_fold
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import FSMRank, RankRLS, RankSVM

METRICS = (NDCG(10, convention="letor"), MAP())


def measured(test, coef):
    """Per-query values of both metrics, and the number of features."""
    scores = linear_scores(test.X, coef[None])[:, 0]
    return [metric.per_query(test, scores) for metric in METRICS], np.count_nonzero(coef)


def rankers(train, vali):
    for ranker in (RankSVM(), FSMRank()):
        fitted = ranker.tune(train, vali).fit(train.X, train.y, qid=train.qid)
        yield type(ranker).__name__, fitted.coef_


def searches(train, vali, seed, workers):
    for name, switches in (
        ("all three stages", {}),
        ("feature selection alone", {"instance_selection": False, "ensemble": False}),
    ):
        chosen = dict(tuning="MAP", final="validation", random_state=seed, workers=workers)
        solver = MOFSRank(RankRLS(), METRICS[0], **chosen, **switches)
        solver.fit(train.X, train.y, qid=train.qid, validation=vali)
        yield f"{name}, by validation", solver.coef_
        yield f"{name}, by train", solver.front_coefs_[int(solver.front_["error"].argmin())]


def main():
    arguments = frame.arguments(__doc__, seeds=3, workers=2)
    for name in ("MQ2008", "OHSUMED"):
        results = {}  # method -> fold -> list over seeds of (per-query values, features)
        for fold in range(1, 6):
            train, vali, test = load_fold(arguments.data / name / f"Fold{fold}")
            for method, coef in rankers(train, vali):
                results.setdefault(method, {}).setdefault(fold, []).append(measured(test, coef))
            for seed in range(arguments.seeds):
                for method, coef in searches(train, vali, seed, arguments.workers):
                    results.setdefault(method, {}).setdefault(fold, []).append(measured(test, coef))
        print_table(name, results)


def print_table(name, results):
    columns = ("method", "N@10", "± folds", "MAP", "± folds", "features", "N@10 − RankSVM", "MAP − RankSVM")
    table = Table(*columns, title=f"{name}: mean of the five test folds")
    queries = {
        method: [np.mean([values for values, _ in runs], axis=0) for runs in folds.values()]
        for method, folds in results.items()
    }  # per fold (2, n_queries)
    for method, folds in results.items():
        means = np.array([values.mean(axis=1) for values in queries[method]])
        error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
        features = np.mean([[count for _, count in runs] for runs in folds.values()])
        row = [method, f"{means[:, 0].mean():.4f}", f"{error[0]:.3f}", f"{means[:, 1].mean():.4f}", f"{error[1]:.3f}"]
        difference = np.hstack([a - b for a, b in zip(queries[method], queries["RankSVM"], strict=True)])
        paired = difference.std(axis=1, ddof=1) / np.sqrt(difference.shape[1])
        row += [f"{features:.1f}"]
        row += [f"{d:+.4f} ± {e:.4f}" for d, e in zip(difference.mean(axis=1), paired, strict=True)]
        table.add_row(*row)
    frame.show(table, 140)


if __name__ == "__main__":
    main()
