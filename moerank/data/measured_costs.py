"""Costs of features by measurement: runs with some features switched on, and the profiles of search engines.

Examples
--------
>>> groups = ["title"] * 3 + [None] * 3
>>> runs = switch_design(groups, 24)
>>> costs = FeatureCosts.of([0.5, 1.5, 0.25, 1.0, 2.0, 0.75], groups, {"title": 4.0})
>>> measured = Measurements(tuple("abcdef"), tuple(groups), runs, 10.0 + costs.sums(runs), np.zeros(24, np.int64))
>>> found = estimate_costs(measured).costs
>>> found.own.round(6).tolist(), found.shared.round(6).tolist()
([0.5, 1.5, 0.25, 1.0, 2.0, 0.75], [4.0])
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.data.costs import COLUMNS, FeatureCosts, not_negative, numbered
from moerank.files import Json, replace_file

FEW = 10
"""Degrees of freedom below which standard errors are rough."""

MOST_BYTES = 2**24
"""Of a table of measurements or costs."""


def fewest_runs(groups: Sequence[str | None]) -> int:
    """Return the least number of runs of a design: twice the number of costs, the constant counted."""
    return 2 * (1 + len(groups) + len(numbered(groups)[0]))


def switch_design(groups: Sequence[str | None], n_runs: int, seed: int = 0) -> Mask:
    """Return which features are on in which run, shape (n_runs, n_features), so that costs are estimated well.

    Random runs, in which each group is off with probability ½, are improved by exchanges that enlarge det AᵀA, with A
    as in `estimate_costs`: one switch, a group off, one feature of a group alone. With n runs the standard error of a
    feature's cost is about 2.2 σ/√n, that of a group's cost 3.6 σ/√n. O(n_runs · n_features³) for each of 20 passes.
    Fewer runs than `fewest_runs` and groups of one feature, whose cost is not to be told from that of the feature, are
    refused.

    References
    ----------
    T. J. Mitchell: An algorithm for the construction of D-optimal experimental designs. Technometrics 16, 1974.
    """
    names, number = numbered(groups)
    for group, size in Counter(group for group in groups if group is not None).items():
        if size == 1:
            raise ValueError(
                f"group {group!r} has one feature: its own cost and that of the group are one; leave the group out"
            )
    if n_runs < fewest_runs(groups):
        raise ValueError(
            f"the costs of {len(groups)} features, {len(names)} groups and a constant need at least "
            f"{fewest_runs(groups)} runs, not {n_runs}"
        )
    rng = np.random.default_rng(seed)
    n = len(groups)
    members = number == np.arange(len(names))[:, None]
    is_on = np.column_stack([rng.random((n_runs, len(names))) < 0.5, np.ones(n_runs, np.bool_)])
    runs = (rng.random((n_runs, n)) < 0.5) & is_on[:, number]
    grouped = number >= 0
    single, company = np.eye(n, dtype=np.bool_)[grouped], members[number[grouped]]
    A = _terms(runs, members)
    inverse = np.linalg.inv(A.T @ A + 1e-6 * np.eye(A.shape[1]))
    for _ in range(20):  # at most 20 passes over all runs
        gains = 0.0
        for row, switches in enumerate(runs):
            others = np.vstack(
                [switches ^ np.eye(n, dtype=np.bool_), switches & ~members, switches & ~company | single]
            )
            old, new = A[row].copy(), _terms(others, members)
            # The factors by which det AᵀA grows.
            moved = new @ inverse
            growth = (1 + np.sum(moved * new, axis=1)) * (1 - old @ inverse @ old) + (moved @ old) ** 2
            best = int(growth.argmax())
            if growth[best] > 1 + 1e-6:
                gains += np.log(growth[best])
                runs[row], A[row] = others[best], new[best]
                for sign, term in ((1, new[best]), (-1, old)):
                    inverse -= sign * np.outer(inverse @ term, term @ inverse) / (1 + sign * term @ inverse @ term)
        if gains < 1e-3 * A.shape[1]:  # the standard errors shrink by less than a thousandth
            break
    return runs[rng.permutation(n_runs)]


def _terms(runs: Mask, members: Mask) -> Matrix:
    """Return the terms of each run: 1, the features that are on, and the groups with any feature on."""
    switches = runs.astype(np.float64)
    return np.column_stack([np.ones(len(runs)), switches, switches @ members.T > 0])


@dataclass(frozen=True, eq=False)
class Measurements:
    """The times of runs with some features switched on."""

    names: tuple[str, ...]
    groups: tuple[str | None, ...]
    runs: Mask  # shape (n_runs, n_features): the features that were on
    times: Vector  # in any unit, each for the same queries
    rounds: Integers  # of measurement, from 0, whose times may differ by a constant
    n_open: int = 0  # runs of the table that were not measured

    @classmethod
    def read(cls, text: str, name: str) -> Measurements:
        """Read a table as `design_table` makes it, whose column time was filled in; `name` is for messages."""
        reader = csv.reader(io.StringIO(text), strict=True, skipinitialspace=True)
        try:
            head, lines = next(reader, []), [(f"{name}: line {reader.line_num}", line) for line in reader]
        except csv.Error as error:
            raise ValueError(f"{name}: line {reader.line_num}: {error}") from None
        if head[:3] != ["run", "round", "time"] or len(set(head)) < len(head) or len(head) < 4:
            raise ValueError(f"{name}: line 1: the columns must be run, round, time, and one for each feature")
        rows, n_open = [], 0
        groups: list[str | None] = [None] * (len(head) - 3)
        for place, line in lines:
            if len(line) != len(head):
                raise ValueError(f"{place}: {len(head)} values are needed, as many as there are columns")
            if line[0] == "group":
                groups = [group.strip() or None for group in line[3:]]
            elif not line[2].strip():
                n_open += 1
            elif odd := [cell for cell in line[3:] if cell.strip() not in ("0", "1")]:
                raise ValueError(f"{place}: a feature is off, 0, or on, 1, not {odd[0]!r}")
            else:
                time = not_negative(line[2], f"{place}: time")
                rows.append(([cell.strip() == "1" for cell in line[3:]], time, line[1].strip()))
        if not rows:
            raise ValueError(f"{name}: no run has a time; write into the column time how long each run took")
        rounds = np.unique([number for *_, number in rows], return_inverse=True)[1]
        runs, times = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
        return cls(tuple(head[3:]), tuple(groups), runs, times, rounds, n_open)


def design_table(names: Sequence[str], groups: Sequence[str | None], runs: Mask, rounds: int, seed: int = 0) -> str:
    """Return the table of a design as CSV: the runs of each round in random order, with an empty column time."""
    rng = np.random.default_rng([seed, 1])
    rows: list[list[object]] = [["run", "round", "time", *names], ["group", "", "", *(group or "" for group in groups)]]
    for number in range(1, rounds + 1):
        rows += [[run + 1, number, "", *runs[run].astype(int)] for run in rng.permutation(len(runs))]
    return str(pd.DataFrame(rows, dtype=object).to_csv(header=False, index=False, lineterminator="\n"))


@dataclass(frozen=True, eq=False)
class MeasuredCosts:
    """Costs with standard errors and 95 % intervals, each an array (n_features + n_groups,)."""

    names: tuple[str, ...]
    costs: FeatureCosts
    errors: Vector  # of the costs of features, then of groups
    low: Vector  # ends of the intervals, each by itself
    high: Vector
    n_measured: int  # runs, or queries of profiles
    freedom: int  # degrees of freedom of the standard errors
    constant: float = np.nan  # the time without any feature; NaN for profiles

    @property
    def labels(self) -> list[str]:
        """The names of features, then of groups, which begin with "group"."""
        return [*self.names, *(f"group {name}" for name in self.costs.names)]

    @property
    def values(self) -> Vector:
        """The costs of features, then of groups, shape (n_features + n_groups,)."""
        return np.concatenate((self.costs.own, self.costs.shared))

    @property
    def resolved(self) -> Mask:
        """Whether each cost is at least two standard errors, shape (n_features + n_groups,)."""
        return (self.values >= 2 * self.errors) & (self.values > 0)

    def remarks(self) -> Iterator[str]:
        """Yield sentences about costs that are not resolved, with the number of runs that would resolve them."""
        if self.freedom < FEW:
            yield f"{self.freedom} degrees of freedom are few: the standard errors are rough below {FEW}"
        table = zip(self.labels, self.values, self.errors, self.high, self.resolved, strict=True)
        for label, value, error, high, resolved in table:
            if resolved:
                continue
            what = "queries" if np.isnan(self.constant) else "runs"
            more = f"; about {self.n_measured * (2 * error / value) ** 2:,.0f} {what} resolve it" if value > 0 else ""
            yield f"the cost of {label} is not resolved: at most {high:.4g}, standard error {error:.2g}{more}"

    def write(self, path: Path) -> Path:
        """Write the table of costs, and the standard errors beside it to NAME-errors.csv, whose path is returned."""
        group, beside = self.costs.group, path.with_name(f"{path.stem}-errors.csv")
        names = [self.costs.names[number] if number >= 0 else "" for number in group]
        shared = np.append(self.costs.shared, np.nan)[group]
        shared[pd.Series(group).duplicated()] = np.nan  # the first feature of a group tells its cost
        resolved = np.where(self.resolved, "yes", "no")
        table = (self.names, self.costs.own, names, shared)
        errors = (self.labels, self.values, self.errors, self.low, self.high, resolved)
        head = ("name", "cost", "standard_error", "low", "high", "resolved")
        files = (path, COLUMNS, table, "%.12g", ""), (beside, head, errors, "%.6g", "nan")
        for file, columns, known, digits, nan in files:
            frame = pd.DataFrame(dict(zip(columns, known, strict=True)))
            text = frame.to_csv(index=False, float_format=digits, na_rep=nan, lineterminator="\n")
            replace_file(file, text.encode())
        return beside


def estimate_costs(measured: Measurements, own: Vector | None = None) -> MeasuredCosts:
    """Estimate costs by regression of the times of runs: y = b + Σ c x + Σ γ max over the group of x + a round's part.

    Costs are ≥ 0, by bounded least squares; standard errors and intervals are those of the free fit, with the quantile
    of Student's t. Where the costs `own` of the features are known, as of profiles, those of the groups alone are
    estimated. O(n_runs · n_costs²). Costs that the runs do not tell apart are a ValueError.
    """
    from scipy.optimize import lsq_linear
    from scipy.stats import t

    names, number = numbered(measured.groups)
    members = number == np.arange(len(names))[:, None]
    terms, times = _terms(measured.runs, members), measured.times
    labels = [f"feature {name}" for name in measured.names] + [f"group {name}" for name in names]
    if own is not None:
        times, terms = times - measured.runs @ own, np.delete(terms, range(1, 1 + len(own)), axis=1)
        labels = labels[len(own) :]
    rounds = np.unique(measured.rounds)[1:]
    # A constant for each round, then the costs.
    A = np.column_stack([terms[:, :1], measured.rounds[:, None] == rounds, terms[:, 1:]])
    n_free = 1 + len(rounds)
    _, singular, rows = np.linalg.svd(A)
    rank = int((singular > singular[0] * len(A) * np.finfo(float).eps).sum())
    if rank < A.shape[1]:
        unclear = np.abs(rows[rank:]).max(axis=0)[n_free:] > 1e-8
        listed = ", ".join(label for label, one in zip(labels, unclear, strict=True) if one)
        raise ValueError(f"these runs do not tell the costs of {listed} apart; make runs by moerank data design")
    freedom = len(A) - rank
    if freedom < 1:
        raise ValueError(f"{len(A)} runs are too few for the standard errors of {rank - n_free} costs; measure more")
    free, residual, *_ = np.linalg.lstsq(A, times)
    errors = np.sqrt(residual.sum() / freedom * np.diag(np.linalg.inv(A.T @ A)))[n_free:]
    least = np.append(np.full(n_free, -np.inf), np.zeros(len(labels)))
    fitted = lsq_linear(A, times, (least, np.inf), method="bvls").x
    values, known = np.maximum(fitted[n_free:], 0.0), np.zeros(0) if own is None else own
    ends = free[n_free:] + np.array([[-1], [1]]) * t.ppf(0.975, freedom) * errors
    low, high = np.concatenate((np.tile(known, (2, 1)), np.maximum(ends, 0.0)), axis=1)
    values, errors = np.append(known, values), np.append(np.zeros(len(known)), errors)
    n = len(measured.names)
    costs = FeatureCosts.of(values[:n], measured.groups, dict(zip(names, values[n:], strict=True)))
    return MeasuredCosts(measured.names, costs, errors, low, high, len(A), freedom, float(fitted[0]))


@dataclass
class Profiles:
    """The profiles in the responses of Elasticsearch, OpenSearch or Vespa, added one after the other.

    Costs are in µs a query, summed over shards or threads: the median of the passes of each query, without the first of
    several, and the mean over queries. Outputs of one executor of Vespa share its time as the cost of a group. The
    names are the features in the order of the feature set; by default those that the first response logs.
    """

    names: tuple[str, ...] = ()
    _times: dict[str, list[dict[str, float]]] = field(default_factory=dict, repr=False)

    def add(self, query: str, response: Json) -> bool:
        """Add the profile of a response, and return whether it has one."""
        traces = list(_found(response, "tag", re.compile(r"\w+_phase_profiling")))
        rankers = list(_found(response.get("profile"), "type", re.compile("RankerQuery")))
        if not (traces or rankers):
            return False
        self.names = self.names or tuple(_logged_names(response))
        if traces:
            times = defaultdict[str, float](float)
            for trace in traces:
                for name, milliseconds in _self_times(trace["roots"]):
                    times[re.sub("^(rank feature|function) ", "", name)] += milliseconds * 1000
        else:
            times = _ranker_times(rankers, self.names)
        self._times.setdefault(query, []).append(times)
        return True

    def costs(self) -> MeasuredCosts:
        """Return the mean costs over two or more queries."""
        from scipy.stats import t

        n = len(self._times)
        if n < 2:
            raise ValueError(f"costs need the profiles of at least 2 queries, better 200, and there are {n}")
        later = [passes[1:] or passes for passes in self._times.values()]
        known = dict.fromkeys(name for passes in later for times in passes for name in times)
        table = np.array([[median(times.get(name, 0.0) for times in passes) for name in known] for passes in later])
        place = {name: column for column, name in enumerate(known)}
        source = [name if name in place else name[: name.rfind(")") + 1] for name in self.names]
        if not self.names:
            raise ValueError("no response with a profile logs its features; give their names")
        for name, executor in zip(self.names, source, strict=True):
            if executor not in place:
                raise ValueError(f"no profile has the feature {name!r}; profile a model that uses it")
        n_outputs = Counter(source)
        groups = [executor if n_outputs[executor] > 1 else None for executor in source]
        shared, _ = numbered(groups)
        chosen = [place[executor] for executor in (*source, *shared)]
        scale = np.append([group is None for group in groups], np.ones(len(shared)))
        means = table.mean(axis=0)[chosen] * scale
        errors = table.std(axis=0, ddof=1)[chosen] / np.sqrt(n) * scale
        away = t.ppf(0.975, n - 1) * errors
        costs = FeatureCosts.of(means[: len(source)], groups, dict(zip(shared, means[len(source) :], strict=True)))
        return MeasuredCosts(self.names, costs, errors, np.maximum(means - away, 0.0), means + away, n, n - 1)


def _found(value: object, key: str, pattern: re.Pattern[str]) -> Iterator[Json]:
    """Yield the outermost objects of JSON at any depth whose `key` is a text that the pattern matches."""
    if isinstance(value, dict) and pattern.fullmatch(str(value.get(key))):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _found(inner, key, pattern)


def _self_times(nodes: Sequence[Json]) -> Iterator[tuple[str, float]]:
    """Yield the names of nodes of Vespa's profile and their own milliseconds; leaves of a tree give a total alone."""
    for node in nodes:
        yield str(node["name"]), float(node["self_time_ms" if "self_time_ms" in node else "total_time_ms"])
        yield from _self_times(node.get("children", []))


def _ranker_times(rankers: Sequence[Json], names: Sequence[str]) -> defaultdict[str, float]:
    """Return the µs of each feature, the children of the rankers in the order of the feature set."""
    times = defaultdict[str, float](float)
    with_children = [ranker for ranker in rankers if ranker.get("children")]
    if not with_children:
        raise ValueError(
            "the ranker in the profile has no children: an sltr in a filter computes features in the fetch phase; "
            "profile it as a rescore query"
        )
    for ranker in with_children:
        children: Any = ranker["children"]
        if len(children) != len(names):
            raise ValueError(
                f"the ranker in the profile has {len(children)} children, and there are {len(names)} features; give "
                "the names of the feature set in its order"
            )
        for name, child in zip(names, children, strict=True):
            if "max_slice_time_in_nanos" in child:
                raise ValueError("the profile is of a concurrent segment search; switch that off for measuring")
            if "deactivated" not in str(child.get("description")):
                times[name] += float(child["time_in_nanos"]) / 1000
    return times


def _logged_names(response: Json) -> Iterator[str]:
    """Yield the features that the first hit of a response logs, in their order."""
    hits = (response.get("hits") or {}).get("hits") or (response.get("root") or {}).get("children") or [{}]
    fields = hits[0].get("fields") or {}
    for log in fields.get("_ltrlog") or []:
        for entries in log.values():
            yield from (str(entry["name"]) for entry in entries if entry["name"] != "extra_logging")
    yield from fields.get("matchfeatures") or {}
