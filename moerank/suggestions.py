"""Sentences for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["unknown"]


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that `name` is no `kind`, with the nearest known name or else all of them.

    Examples
    --------
    >>> unknown("algorithm", "nsga", ["nsga2", "spea2"])
    "unknown algorithm 'nsga'; did you mean 'nsga2'?"
    """
    known = list(known)
    nearest = get_close_matches(name, known, n=1)
    advice = f"did you mean {nearest[0]!r}?" if nearest else f"choose one of {', '.join(known)}"
    return f"unknown {kind} {name!r}; {advice}"
