"""The table of solvers: every ranker and every feature selection, under one name each, made the same way."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from moerank.suggestions import unknown

__all__ = ["SolverEntry", "make_backend", "make_solver", "solvers"]

Family = Literal["filter", "wrapper", "embedded", "evolutionary", "ranker"]


@dataclass(frozen=True)
class SolverEntry:
    """A row of the table.

    Attributes
    ----------
    name : str
        How the command line and `make_solver` call the solver.
    family : str
        "filter", "wrapper", "embedded", "evolutionary", or "ranker" without a selection of its own.
    paper : str
        Authors, and where the method was published.
    year : int
        Year of that publication.
    linear : bool
        Whether its rankers score by wᵀx, so that there is a weight for each feature.
    selects : bool
        Whether it leaves features out.
    needs : tuple of str
        What it cannot work without: "validation", "binary labels", "seed".
    make : callable
        Returns the estimator for its keyword arguments; imports what it needs only then.
    backend : bool
        Whether it can train a whole population (``fit_population``) and so serve a search as fitness backend.
    """

    name: str
    family: Family
    paper: str
    year: int
    linear: bool
    selects: bool
    needs: tuple[str, ...]
    make: Callable[..., Any]
    backend: bool = False


def make_solver(name: str, **parameters: Any) -> Any:
    """Return a solver by its name in the table.

    Parameters
    ----------
    name : str
        One of ``solvers()``.
    **parameters
        Arguments of the estimator.

    Returns
    -------
    estimator
        Not fitted yet; call ``fit(X, y, qid=…, validation=…)``.

    Raises
    ------
    ValueError
        For a name or a parameter that does not exist, where the message suggests the nearest one, and for a text in
        place of a number.

    Examples
    --------
    >>> make_solver("rankrls", alpha=0.1)
    RankRLS(alpha=0.1)
    """
    table = solvers()
    if name not in table:
        raise ValueError(unknown("solver", name, table))
    known = table[name].make().get_params(deep=False)
    for parameter, value in parameters.items():
        if parameter not in known:
            raise ValueError(unknown(f"parameter of {name}", parameter, known))
        if isinstance(value, str) and isinstance(known[parameter], int | float):
            raise ValueError(f"{parameter} of {name} is a number or a switch, not {value!r}")
    return table[name].make(**parameters)


def make_backend(name: str, **parameters: Any) -> Any:
    """Return a ranker that can serve as fitness backend; arguments and errors as in `make_solver`.

    Examples
    --------
    >>> make_backend("mofsrank")
    Traceback (most recent call last):
        ...
    ValueError: mofsrank cannot serve as fitness backend; choose one of fsmrank, ranksvm-primal, rankrls
    """
    ranker = make_solver(name, **parameters)
    if not solvers()[name].backend:
        able = ", ".join(entry.name for entry in solvers().values() if entry.backend)
        raise ValueError(f"{name} cannot serve as fitness backend; choose one of {able}")
    return ranker


@lru_cache(maxsize=1)
def solvers() -> dict[str, SolverEntry]:
    """Return the table by name: the package's own solvers, then those of other installed packages.

    Other packages add theirs as `SolverEntry` objects through the entry points ``moerank.solvers`` and, for rankers
    that can serve as fitness backend, ``moerank.rankers``. One that cannot be loaded, or takes a name that is taken,
    is left out with a warning.

    Examples
    --------
    >>> solvers()["fsmrank"].family, solvers()["rankrls"].backend
    ('embedded', True)
    """
    table = {entry.name: entry for entry in _OWN}
    for group in ("moerank.rankers", "moerank.solvers"):
        for point in entry_points(group=group):
            entry = _third_party_entry(point)
            if entry is None:
                continue
            if entry.name in table:
                _warn(point, f"the name {entry.name!r} is taken")
                continue
            table[entry.name] = replace(entry, backend=True) if group == "moerank.rankers" else entry
    return table


def _third_party_entry(point: EntryPoint) -> SolverEntry | None:
    try:
        entry = point.load()
    except Exception as error:  # whatever another package does wrong must not stop this one
        _warn(point, f"{type(error).__name__}: {error}")
        return None
    if not isinstance(entry, SolverEntry):
        _warn(point, f"it is a {type(entry).__name__}, not a SolverEntry")
        return None
    return entry


def _warn(point: EntryPoint, reason: str) -> None:
    warnings.warn(f"entry point {point.group}: {point.name} = {point.value} is left out: {reason}", stacklevel=3)


def _rank_svm(**parameters: Any) -> Any:
    from moerank.rankers import RankSVM

    return RankSVM(**parameters)


def _rank_rls(**parameters: Any) -> Any:
    from moerank.rankers import RankRLS

    return RankRLS(**parameters)


def _greedy_rank_rls(**parameters: Any) -> Any:
    from moerank.selectors.greedy_rank_rls import GreedyRankRLS

    return GreedyRankRLS(**parameters)


def _fsm_rank(**parameters: Any) -> Any:
    from moerank.rankers import FSMRank

    return FSMRank(**parameters)


def _mofs_rank(**parameters: Any) -> Any:
    from moerank.mofsrank import MOFSRank

    return MOFSRank(**parameters)


def _without(stage: str) -> Callable[..., Any]:
    """Return what makes MOFSRank with one of its parts left out."""
    return lambda **parameters: _mofs_rank(**{**parameters, stage: False})


_MOFS_RANK = SolverEntry(
    name="mofsrank",
    family="evolutionary",
    paper="Cheng, Guo, Zhang: MOFSRank. Complexity",
    year=2018,
    linear=True,
    selects=True,
    needs=("seed",),
    make=_mofs_rank,
)

_OWN = (
    _MOFS_RANK,
    replace(_MOFS_RANK, name="mofsrank-no-instance-selection", make=_without("instance_selection")),
    replace(_MOFS_RANK, name="mofsrank-no-adaptive-mutation", make=_without("adaptive_mutation")),
    replace(_MOFS_RANK, name="mofsrank-no-ensemble", make=_without("ensemble")),
    SolverEntry(
        name="greedy-rankrls",
        family="wrapper",
        paper="Pahikkala et al.: Greedy RankRLS. SIGIR workshop on feature generation and selection",
        year=2010,
        linear=True,
        selects=True,
        needs=(),
        make=_greedy_rank_rls,
    ),
    SolverEntry(
        name="fsmrank",
        family="embedded",
        paper="Lai, Pan, Tang, Yu: FSMRank. IEEE Trans. Neural Networks and Learning Systems",
        year=2013,
        linear=True,
        selects=True,
        needs=(),
        make=_fsm_rank,
        backend=True,
    ),
    SolverEntry(
        name="ranksvm-primal",
        family="ranker",
        paper="Chapelle, Keerthi: Efficient algorithms for ranking with SVMs. Information Retrieval",
        year=2010,
        linear=True,
        selects=False,
        needs=(),
        make=_rank_svm,
        backend=True,
    ),
    SolverEntry(
        name="rankrls",
        family="ranker",
        paper="Pahikkala et al.: An efficient algorithm for learning to rank from preference graphs. Machine Learning",
        year=2009,
        linear=True,
        selects=False,
        needs=(),
        make=_rank_rls,
        backend=True,
    ),
)
