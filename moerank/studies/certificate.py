"""Certificates: what is proved about the front of a run, by best subsets and by enumeration."""

from __future__ import annotations

import warnings
from contextlib import suppress
from itertools import combinations, islice
from math import comb
from pathlib import Path

import moocore
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from moerank.data import RankingData
from moerank.metrics import Metric
from moerank.mofsrank.limits import FeatureStrings
from moerank.mofsrank.objectives import errors_of
from moerank.mofsrank.settings import Limits
from moerank.rankers import LinearPopulation, RankRLS
from moerank.selectors.best_subset import BestSubset
from moerank.solvers import make_backend
from moerank.studies.measure import Progress, tuned
from moerank.studies.problem import Problem
from moerank.studies.result import Certificate, Result
from moerank.training.moments import PairMoments

BATCH = 2000
"""Subsets that are trained at once."""

SAME = 1e-9
"""Difference of errors or metrics that counts as rounding."""


def certify(
    result: Result,
    data: str | Path | None = None,
    *,
    enumerate_to: int = 3,
    time_limit: float | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Certificate:
    """Prove what can be proved about the front of a run, for RankRLS on all preference pairs of the training part.

    All subsets of up to `enumerate_to` features are ranked by; Ctrl-C keeps the sizes that are done. After `time_limit`
    seconds the search for best subsets ends with bounds in place of proofs. The certificate is the same for any number
    of `workers`. A backend other than RankRLS with the loss of pairs, and data other than those of the run, are
    refused.
    """
    report = progress or (lambda stage, fraction, text: None)
    problem, backend, by_group = _settings(result)
    (train, vali, _), limits = problem.load_limited_fold(result.fold, data)
    metric = problem.metric.make()
    _check_data(result, train, metric)
    alpha = (tuned(backend, {"train": train, "validation": vali}) if problem.backend.tune else backend).alpha
    feature_mask = np.array([np.isin(np.arange(train.n_features), member.features) for member in result.front])
    moments = PairMoments.of(train)
    losses = 1.0 - RankRLS(alpha).fit_population(train, feature_mask=feature_mask) @ moments.unit

    strings = FeatureStrings(train, Limits(**limits), by_group=by_group)
    solver = BestSubset(
        train.n_features,
        alpha,
        **limits,
        by_group=by_group,
        time_limit=time_limit,
        progress=lambda _, fraction, size, n: report("best_subset", fraction, f"up to {size} features, {n:,} nodes"),
    )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # the bounds say it
        solver.fit(train)
    ones, found = strings.bits(feature_mask).sum(axis=1), strings.bits(solver.masks_).sum(axis=1)
    least = np.array([solver.bounds_[found <= max(n, found[0])].min() for n in ones])
    errors, n_subsets = _enumerated(metric, strings, alpha, enumerate_to, workers, report)
    return Certificate(
        alpha=alpha,
        sizes=solver.masks_.sum(axis=1).tolist(),
        best=solver.losses_.tolist(),
        bounds=solver.bounds_.tolist(),
        losses=losses.tolist(),
        least=np.minimum(least, losses).tolist(),
        errors=errors,
        n_subsets=n_subsets,
        hypervolume=_share_proved(result, errors),
    )


def _settings(result: Result) -> tuple[Problem, RankRLS, bool]:
    """Return the problem of a run, its backend, not tuned, and whether bits stand for groups.

    A backend whose loss no best subset is known of is refused.
    """
    settings = result.configuration
    if settings["data"]["source"] == "memory":
        raise ValueError(f"{result.problem}: its data were in memory; a problem file that names files can be certified")
    known = {name: settings[name] for name in ("features", "metric", "backend") if settings.get(name) is not None}
    problem = Problem.model_validate({"name": result.problem, "data": settings["data"], **known})
    backend = make_backend(problem.backend.name, **problem.backend.parameters)
    if not isinstance(backend, RankRLS) or (backend.loss, backend.target) != ("pair", "unit"):
        raise ValueError(
            f"{problem.name}: best subsets are known for RankRLS with the loss of pairs, and the backend is "
            f"{backend!r}; run the problem with --backend rankrls"
        )
    return problem, backend, bool((settings.get("feature_selection") or {}).get("by_group"))


def _check_data(result: Result, train: RankingData, metric: Metric) -> None:
    """Refuse data on which the members do not rank as they did in the run."""
    same = len(result.feature_names) == train.n_features
    for member in (*result.front, *result.baselines):
        if same and member.weights is not None:
            value = metric.mean_of_linear(train, result.model(member).coef(train.n_features)[None])[0]
            same = abs(value - member.scores["train"][metric.name]) <= SAME
    if not same:
        raise ValueError(f"{train.name} is not the data of this run; name their folder with --data")


def _enumerated(
    metric: Metric, strings: FeatureStrings, alpha: float, enumerate_to: int, workers: int, report: Progress
) -> tuple[list[float], int]:
    """Return the least error of all subsets of up to 1, 2, … features within the limits, and their number.

    A subset has up to `enumerate_to` bits beside those of the features that are included.
    """
    train = strings.data
    bits = np.flatnonzero(strings.bits((np.diag(PairMoments.of(train).gram) > 0)[None])[0] & ~strings.included_bits)
    least, n_subsets, whole = np.ones(train.n_features + 1), 0, 0
    total = sum(comb(len(bits), n_free) for n_free in range(enumerate_to + 1))
    with suppress(KeyboardInterrupt):  # the sizes that are done are known
        for n_free in range(0 if strings.included.any() else 1, enumerate_to + 1):
            free = combinations(bits.tolist(), n_free)
            while chosen := list(islice(free, BATCH)):
                X = np.tile(strings.included_bits, (len(chosen), 1))
                np.put_along_axis(X, np.array(chosen, np.int64).reshape(len(chosen), n_free), True, axis=1)
                masks = strings.columns(X[strings.keeps_limits(X)])
                n_subsets += len(masks)
                if len(masks):
                    rankers = LinearPopulation(RankRLS(alpha).fit_population(train, feature_mask=masks))
                    np.minimum.at(least, masks.sum(axis=1), errors_of(train, metric, rankers, workers=workers))
                report("enumeration", n_subsets / total, f"{n_subsets:,} subsets of up to {n_free} features")
            whole = int(strings.included.sum()) + n_free
    report("enumeration", 1.0, f"{n_subsets:,} subsets")
    return np.minimum.accumulate(least)[1 : whole + 1].tolist(), n_subsets


def _share_proved(result: Result, errors: list[float]) -> float:
    """Return the share of the front's hypervolume that the members have on which no subset improves."""
    metric = result.metrics[0]
    points = np.array([(len(member.features), 1.0 - member.scores["train"][metric]) for member in result.front])
    limits = np.append(errors, -np.inf)[points[:, 0].clip(max=len(errors) + 1).astype(int) - 1]
    corner = [len(result.feature_names), 1.0]
    proved = points[points[:, 1] <= limits + SAME]
    whole, part = (moocore.hypervolume(some, ref=corner) if len(some) else 0.0 for some in (points, proved))
    return float(min(part / whole, 1.0)) if whole else 0.0
