"""Feature selection by moerank beside the usual tools: the same data, ranker, rule of choice and, for Optuna, time.

    pip install optuna
    python tests/benchmarks/alternatives.py [--data DIR] [--seeds 3]

Rows with RankRLS, tuned by validation data: the staircase search; Optuna with its default sampler for two objectives,
given the same processor time; pymoo's NSGA-II with its own operators on our problem, for 10,000 evaluations; and
scikit-learn's RFE and SequentialFeatureSelector, which adds ten features by validation in five parts. The row with
RankSVM is LinearSVC on the differences of all pairs. Rows with LightGBM's lambdarank, 100 trees of 15 leaves: RFE,
the k features of the largest gain, a sweep of LightGBM's penalty of features, and moerank's front with its members
trained anew (refit). Each method offers rankers of several sizes; the best NDCG@10 of the validation queries chooses,
ties go to fewer features. Test queries choose nothing. Differences from all features are paired by query, over the five
folds, after the mean over seeds. The verdict compares the staircase search with both linear rankers on all features, by
the queries that can differ. Seconds are of the processor, on one thread, for a fold. Never fails a build.
"""

from __future__ import annotations

from time import process_time

import frame
import numpy as np
import sklearn
from lightgbm import LGBMRanker
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.operators.crossover.pntx import TwoPointCrossover
from pymoo.operators.mutation.bitflip import BitflipMutation
from pymoo.operators.sampling.rnd import BinaryRandomSampling
from pymoo.optimize import minimize
from rich.table import Table
from sklearn.feature_selection import RFE, SequentialFeatureSelector
from sklearn.model_selection import GroupKFold
from sklearn.svm import LinearSVC

import moerank as mr
from moerank.statistics import mean_and_error
from moerank.verdict import judge

METRIC = mr.NDCG(10, convention="letor")
ALL = "all features"
OURS_LINEAR = "moerank, staircase"
PENALTIES = np.geomspace(0.01, 100, 20)
FOREST = dict(n_estimators=100, num_leaves=15, min_child_samples=25, learning_rate=0.1, n_jobs=1, verbosity=-1)
OURS = mr.LambdaMART(n_trees=100, n_leaves=15, min_leaf=25, learning_rate=0.1)


def trees(train, mask, **settings):
    """Return lambdarank of LightGBM on some features, which predicts from all."""
    ranker = LGBMRanker(**FOREST, **settings)
    ranker.fit(train.X64[:, mask], train.y, group=np.diff(train.offsets))
    return ranker, lambda data: ranker.predict(data.X64[:, mask])


def linear(backend, train, mask):
    ranker = mr.RankRLS(alpha=backend.alpha).fit(mr.RankingData(train.X64[:, mask], train.y, train.qid))
    return lambda data: data.X64[:, mask] @ ranker.coef_


def rfe(estimator, train, **query):
    """Return the sets of features of scikit-learn's elimination, one for each size."""
    ranking = RFE(estimator, n_features_to_select=1).fit(train.X64, train.y, **query).ranking_
    return [ranking <= size for size in range(1, train.n_features + 1)]


def optuna_front(backend, train, seconds, seed):
    """Return the front that Optuna's default sampler finds for the number of features and the training error."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    problem = mr.FeatureSelection(train, backend=backend, metric=METRIC)

    def objective(trial):
        bits = [trial.suggest_categorical(str(j), [False, True]) for j in range(train.n_features)]
        return tuple(problem.evaluate(np.array([bits])).ravel().tolist())

    def stop(study, trial):
        if process_time() - began > seconds:
            study.stop()

    two = {"directions": ["minimize", "minimize"]}
    kind = type(optuna.create_study(**two).sampler)
    study = optuna.create_study(**two, sampler=kind(seed=seed))
    began = process_time()
    study.optimize(objective, callbacks=[stop])
    masks = [np.array([trial.params[str(j)] for j in range(train.n_features)]) for trial in study.best_trials]
    return masks, len(study.trials)


def sequential(backend, train):
    """Return the ten features that scikit-learn adds one after another; it can try none that never varies."""
    ranker, varies = mr.RankRLS(alpha=backend.alpha), np.ptp(train.X64, axis=0) > 0
    with sklearn.config_context(enable_metadata_routing=True):
        ranker.set_fit_request(qid=True)
        search = SequentialFeatureSelector(ranker, n_features_to_select=10, scoring=METRIC.scorer(), cv=GroupKFold(5))
        search.fit(train.X64[:, varies], train.y, qid=train.qid, groups=train.qid)
    mask = np.zeros(train.n_features, bool)
    mask[np.flatnonzero(varies)[search.get_support()]] = True
    return [mask]


def plain_pymoo(backend, train, seed):
    """Return the front of pymoo's NSGA-II with its own operators."""
    problem = mr.FeatureSelection(train, backend=backend, metric=METRIC)
    operators = {"crossover": TwoPointCrossover(), "mutation": BitflipMutation(), "sampling": BinaryRandomSampling()}
    return list(minimize(problem, NSGA2(100, **operators), ("n_eval", 10_000), seed=seed).X)


def linear_svc(train, vali):
    """Return the weights of LinearSVC on the differences of all pairs, with the C that tunes RankSVM."""
    better, worse = train.X64[train.pairs.better], train.X64[train.pairs.worse]
    C = mr.RankSVM().tune(train, vali).C / (2 * len(better))
    svm = LinearSVC(C=C, fit_intercept=False, dual=False).fit(
        np.concatenate((better - worse, worse - better)), np.repeat([1, 0], len(better))
    )
    return lambda data: data.X64 @ svm.coef_[0]


def methods(train, vali, seeds):
    """Yield the name, the kind of ranker, and a function that returns sets of features with their scores."""
    backend = mr.RankRLS().tune(train, vali)
    everything = np.ones(train.n_features, bool)
    took = []

    def weights(masks):
        return [(mask, linear(backend, train, mask)) for mask in masks if mask.any()]

    def forests(masks):
        return [(mask, trees(train, mask)[1]) for mask in masks]

    def staircase(seed=0, **refit):
        began = process_time()
        own = dict(backend=backend, metric=METRIC, tune=False, tuning="MAP", random_state=seed)
        solver = mr.make_solver("mofsrank-staircase", **own, **refit).fit(train, validation=vali)
        took.append(process_time() - began)
        scores = solver.front_rankers_.scores
        return [(mask, lambda data, j=j: scores(data.X)[:, j]) for j, mask in enumerate(solver.front_support_)]

    def refitted():
        return staircase(refit=OURS.tune(train, vali).set_params(n_trees=OURS.n_trees))

    def optuna(seed):
        masks, n_trials = optuna_front(backend, train, took[seed], seed)
        print(f"Optuna: {n_trials} trials", flush=True)
        return weights(masks)

    def by_gain():
        gain = trees(train, everything)[0].booster_.feature_importance("gain")
        order = np.argsort(-gain, kind="stable")
        return forests(np.isin(np.arange(train.n_features), order[:size]) for size in range(1, train.n_features + 1))

    def penalties():
        for penalty in PENALTIES:
            costs = [penalty] * train.n_features
            ranker, scores = trees(train, everything, cegb_tradeoff=1.0, cegb_penalty_feature_coupled=costs)
            yield ranker.booster_.feature_importance("split") > 0, scores

    yield ALL, "RankRLS", lambda: weights([everything])
    yield ALL, "RankSVM", lambda: [(everything, mr.RankSVM().tune(train, vali).fit(train).predict)]
    yield "LinearSVC", "RankSVM", lambda: [(everything, linear_svc(train, vali))]
    for seed in range(seeds):
        yield OURS_LINEAR, "RankRLS", lambda seed=seed: staircase(seed)
        yield "Optuna, equal time", "RankRLS", lambda seed=seed: optuna(seed)
        yield "pymoo's NSGA-II", "RankRLS", lambda seed=seed: weights(plain_pymoo(backend, train, seed))
    eliminated = mr.RankRLS(alpha=backend.alpha)
    yield "scikit-learn's RFE", "RankRLS", lambda: weights(rfe(eliminated, train, qid=train.qid))
    yield "scikit-learn's sequential selection", "RankRLS", lambda: weights(sequential(backend, train))
    yield ALL, "LambdaMART", lambda: forests([everything])
    yield "moerank, staircase, refit", "LambdaMART", refitted
    group = np.diff(train.offsets)
    yield "scikit-learn's RFE", "LambdaMART", lambda: forests(rfe(LGBMRanker(**FOREST), train, group=group))
    yield "importance pruning", "LambdaMART", by_gain
    yield "LightGBM's penalties", "LambdaMART", lambda: list(penalties())


def measured(offered, vali, test):
    """Return the values of the test queries and the number of features of the choice."""
    sizes = np.array([mask.sum() for mask, _ in offered])
    quality = np.array([METRIC.score(vali, scores(vali)) for _, scores in offered])
    best = np.lexsort((sizes, -quality))[0]
    return METRIC.per_query(test, offered[best][1](test)), sizes[best]


def main():
    arguments = frame.arguments(__doc__, seeds=3, problems=["MQ2008", "OHSUMED"], folds=5)
    for name in arguments.problems:
        differs = {}  # fold -> the queries that can differ
        rows = {}  # (method, ranker) -> fold -> list over seeds of (values, features, seconds)
        for fold in range(1, arguments.folds + 1):
            train, vali, test = mr.load_fold(arguments.data / name / f"Fold{fold}")
            for method, ranker, work in methods(train, vali, arguments.seeds):
                began = process_time()
                offered = work()
                seconds = process_time() - began
                found = (*measured(offered, vali, test), seconds)
                rows.setdefault((method, ranker), {}).setdefault(fold, []).append(found)
                differs.setdefault(fold, METRIC.can_differ(test))
        frame.show(table_of(name, rows), width=120)
        for ranker in ("RankRLS", "RankSVM"):
            print(verdict_of(rows, ranker, np.concatenate(list(differs.values())), train.n_features))


def values_of(folds):
    """Return the values of the queries of all folds, means over the seeds."""
    return np.concatenate([np.mean([run[0] for run in runs], axis=0) for runs in folds.values()])


def verdict_of(rows, ranker, differs, n_allowed):
    """Return the verdict on the staircase search against a ranker on all features."""
    folds = rows[OURS_LINEAR, "RankRLS"]
    size = np.mean([run[1] for runs in folds.values() for run in runs])
    values = values_of(folds), values_of(rows[ALL, ranker])
    return judge(*values, "test", METRIC.name, round(size), n_allowed, can_differ=differs, against=ranker)


def table_of(name, rows):
    table = Table("method", "ranker", "features", "NDCG@10", "loss against all features", "s a fold", title=name)
    queries = {row: values_of(folds) for row, folds in rows.items()}
    for (method, ranker), folds in rows.items():
        runs = [run for runs in folds.values() for run in runs]
        loss, error = mean_and_error(queries[ALL, ranker] - queries[method, ranker])
        told = "" if method == ALL else f"{loss:.4f} ± {error:.4f}"
        size, seconds = (np.mean([run[column] for run in runs]) for column in (1, 2))
        table.add_row(method, ranker, f"{size:.1f}", f"{queries[method, ranker].mean():.4f}", told, f"{seconds:.1f}")
    return table


if __name__ == "__main__":
    main()
