"""A solver that was given as a Python object: an estimator as it is, or a function that makes one."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from moerank.data import RankingData
from moerank.rankers import AnyRanker, RankerAdapter, RankingEstimator
from moerank.runs.identity import describe, digest_of
from moerank.runs.solver_spec import SolverSpec, written
from moerank.solvers import solvers

__all__ = ["AnySolver", "ForeignRanker", "GivenSolver", "read_given"]

OF_THE_RUN = ("journal", "progress", "resume", "workers")
"""Parameters of an estimator that a run sets, whatever was given; results do not depend on them."""

SILENT = (*OF_THE_RUN, "verbose")
"""Parameters that do not count where two estimators are compared."""

LONGEST_LABEL = 80
"""Characters of a label that is made from parameters; tables have no room for longer ones."""


@dataclass(frozen=True)
class GivenSolver:
    """An estimator, or a function that makes one, as a solver of a study.

    It is run as it is given: a problem's budgets, backend and parameters of solvers are not for it, and nothing is
    chosen among a published grid unless the estimator does so itself.

    Attributes
    ----------
    label : str
        How tables and figures call it.
    description : dict
        What it is, in plain values; see `describe`. Part of what names a cell.
    seeded : bool
        Whether its seeds differ: a function is given the seed, and an estimator whose ``random_state`` is None, too.
    source : object, optional
        The estimator or the function; None where a study was read from its folder.
    """

    label: str
    description: dict[str, Any]
    seeded: bool
    source: Any = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """What stands in place of a name in the table of solvers."""
        return self.label

    @property
    def parameters(self) -> dict[str, Any]:
        """What is known of it, in plain values."""
        return self.description

    @property
    def given(self) -> dict[str, Any]:
        """The same: a problem adds nothing to it."""
        return self.description

    @property
    def is_held(self) -> bool:
        """Whether the object is here; the folder of a study keeps its description alone."""
        return self.source is not None

    @property
    def tune(self) -> bool:
        """Whether validation MAP chooses parameters before it is fitted: never."""
        return False

    @property
    def selects(self) -> bool:
        """Whether a verdict on it depends on the problem's margin, as far as anybody can know."""
        return True

    def takes(self) -> dict[str, Any]:
        """Return the parameters that a problem may set: none."""
        return {}

    def beneath(self, defaults: Mapping[str, Any], *, tune: bool) -> Self:
        """Return the solver itself: it is run as it is given."""
        return self

    def plain(self) -> Any:
        """Return the estimator or the function as it is."""
        return self.source

    def make(self, problem: object, offered: Mapping[str, Any]) -> Any:
        """Return the estimator of a run, not fitted.

        Parameters
        ----------
        problem : Problem
            What a function is called with.
        offered : mapping
            What a run has for solvers, by the names of parameters.

        Raises
        ------
        ValueError
            If the solver is known from the folder of a study alone, or a function returns nothing that can be fitted.
        """
        if not self.is_held:
            raise ValueError(f"{self.label} was given as a Python object; give it to Study again to run it")
        of_run = {name: offered[name] for name in OF_THE_RUN if name in offered}
        seed = int(offered["random_state"]) % 2**31  # other libraries have no larger ones
        if _is_estimator(self.source):
            made = clone(self.source)
            if self.seeded:
                of_run["random_state"] = seed
        else:
            made = self.source(problem, seed)
            if not _is_estimator(made):
                raise ValueError(
                    f"{self.label} must return an estimator with fit, predict and get_params, not {made!r:.80}"
                )
        known = made.get_params(deep=False)
        made.set_params(**{name: value for name, value in of_run.items() if name in known})
        return made if isinstance(made, RankingEstimator) or hasattr(made, "get_support") else ForeignRanker(made)


class ForeignRanker(RankingEstimator):
    """A ranker of another library, on all features: what a run measures of it is what it predicts.

    Parameters
    ----------
    ranker : estimator
        As for `RankerAdapter`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> data = RankingData([[0.1], [0.9], [0.5]], y=[0, 2, 1])
    >>> ForeignRanker(Ridge()).fit(data).predict([[0.0], [1.0]]).argmax()
    np.int64(1)
    """

    _additive = False

    def __init__(self, ranker: AnyRanker) -> None:
        self.ranker = ranker

    def _check_parameters(self) -> None:
        pass

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self.support_ = np.ones(train.n_features, np.bool_)
        self.ranker_ = RankerAdapter(self.ranker).train_on(train, self.support_)

    def _scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.ranker_.predict(X), np.float64).reshape(-1)


AnySolver: TypeAlias = SolverSpec | GivenSolver


def read_given(source: Any, name: str | None = None) -> GivenSolver:
    """Return an estimator, or a function ``make(problem, seed)`` that returns one, as a solver.

    Parameters
    ----------
    source : estimator or callable
    name : str, optional
        How tables call it; by default the class of an estimator with the parameters that are not its defaults. A
        function needs one.

    Raises
    ------
    ValueError
        For a name that the table of solvers has, something that is neither of both, or that cannot be described.

    Examples
    --------
    >>> from moerank.rankers import RankSVM
    >>> read_given(RankSVM(C=0.5)).label
    'RankSVM[C=0.5]'
    """
    if isinstance(source, type) or not (_is_estimator(source) or callable(source)):
        raise ValueError(
            "a solver is a name, an estimator such as RankSVM(C=1) with fit, predict and get_params, or a function "
            f"make(problem, seed), not {source!r:.80}"
        )
    label = _label(source) if name is None else name
    if not isinstance(label, str) or not label.strip() or label.partition("[")[0] in solvers():
        taken = f"{label!r} is in the table of solvers" if label else "it must not be empty"
        raise ValueError(f"give the solver another name: {taken}")
    described = describe(source, f"the solver {label}", without=SILENT)
    description = described if isinstance(described, dict) else {"function": described}
    seeded = not _is_estimator(source) or source.get_params(deep=False).get("random_state", 0) is None
    # A copy, without what the user may change in it later, or has fitted.
    return GivenSolver(label, _shallow(description), seeded, clone(source) if _is_estimator(source) else source)


def _is_estimator(source: Any) -> bool:
    return all(callable(getattr(source, method, None)) for method in ("fit", "predict", "get_params"))


def _label(estimator: Any) -> str:
    """Return the class and the parameters that are not its defaults."""
    kind = type(estimator).__name__
    if not _is_estimator(estimator):
        raise ValueError(f"a {kind} needs a name for tables: solvers={{'name': make}} gives it one")
    defaults = inspect.signature(type(estimator).__init__).parameters
    changed = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in SILENT and (name not in defaults or repr(value) != repr(defaults[name].default))
    }
    given = ",".join(f"{name}={_shown(value)}" for name, value in changed.items())
    label = f"{kind}[{given}]" if given else kind
    if len(label) > LONGEST_LABEL or "\n" in label:
        raise ValueError(f"{label[:60]}… is too long for tables; give it a name: solvers={{'name': {kind}(…)}}")
    return label


def _shown(value: Any) -> str:
    try:
        return written(value)
    except TypeError:  # no JSON
        return getattr(value, "__name__", None) or " ".join(repr(value).split())


def _shallow(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description as files keep it: without deep tables, whose digest says as much."""
    plain: dict[str, Any] = json.loads(json.dumps(description))
    parameters = plain.get("parameters")
    if isinstance(parameters, dict):
        plain["parameters"] = {
            name: value if len(json.dumps(value)) <= 4 * LONGEST_LABEL else {"digest": digest_of(value)}
            for name, value in parameters.items()
        }
    return plain
