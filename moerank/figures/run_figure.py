"""What a figure of one run says of itself: how it is drawn, and when it has something to show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from moerank.runs.result import RunResult

__all__ = ["RunFigure"]


@dataclass(frozen=True)
class RunFigure:
    """A figure of one run.

    Attributes
    ----------
    draw : callable
        ``draw(result)`` returns the matplotlib figure.
    shows : callable
        ``shows(result)`` tells whether the result has something of the kind.
    """

    draw: Callable[[RunResult], Figure]
    shows: Callable[[RunResult], bool] = lambda result: True
