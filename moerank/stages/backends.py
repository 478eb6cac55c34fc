"""What MOFSRank's backend is to be, and the regularisation that it searches with."""

from __future__ import annotations

from typing import Any, cast

from sklearn.base import clone

from moerank.data import RankingData
from moerank.rankers import AnyRanker, FitnessBackend, RankerAdapter, as_backend

__all__ = ["read_backend", "tuned_backend"]


def read_backend(backend: FitnessBackend | AnyRanker | None, *, selects_instances: bool) -> FitnessBackend:
    """Return what judges the individuals of a search; None stands for RankRLS.

    Raises
    ------
    ValueError
        For what is no ranker, and for one that is adapted where `selects_instances`; the message says what to do.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> read_backend(Ridge(), selects_instances=False)
    RankerAdapter(ranker=Ridge())
    """
    found = as_backend(backend)
    if selects_instances and isinstance(found, RankerAdapter):
        name = type(found.ranker).__name__
        raise ValueError(
            f"{name} is trained on documents, one individual after the other: it serves feature selection without "
            "instance selection, so give instance_selection=False, and ensemble=False unless it has weights (coef_). "
            f"Sooner done is to search with another backend and train it on the members of the front, refit={name}(…), "
            f'or let a small search go on with it from there, refit={{"ranker": {name}(…), "evaluations": 200}}'
        )
    return found


def tuned_backend(backend: FitnessBackend, train: RankingData, validation: RankingData | None) -> FitnessBackend:
    """Return a copy of the backend, its parameters chosen by validation MAP over its published grid if it has one."""
    copy: Any = clone(backend)
    if validation is not None and hasattr(copy, "tune"):
        copy = copy.tune(train, validation)
    return cast(FitnessBackend, copy)
