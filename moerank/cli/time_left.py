"""How long the rest of a study will take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from statistics import fmean

from moerank.studies.cell import Cell

__all__ = ["TimeLeft", "in_words"]

Kind = tuple[str, str]
"""A problem and a solver: cells of one kind cost about the same, those of two a thousandfold."""


class TimeLeft:
    """Estimates the time that the cells which are not done will take.

    The cost of a cell is expected to be the mean of what was measured for its solver on its problem; where nothing
    was, the mean over the solvers that were measured on the problem, else over all. The speed is the cost of the
    cells that were done since the start, by whatever process, divided by the time since then.

    Parameters
    ----------
    left : iterable of Cell
        The cells that are not done at the start.
    """

    def __init__(self, left: Iterable[Cell]) -> None:
        self._left = Counter(_kind(cell) for cell in left)
        self._costs: defaultdict[Kind, list[float]] = defaultdict(list)
        self._done = 0.0

    def measured(self, cell: Cell, cost: float) -> None:
        """Learn what a cell cost that was done before the start, in seconds of the processor."""
        self._costs[_kind(cell)].append(cost)

    def done(self, cell: Cell, cost: float | None) -> None:
        """Count a cell that was done since the start; None if it failed, which tells nothing of its solver."""
        self._left[_kind(cell)] -= 1
        if cost is not None:
            self.measured(cell, cost)
            self._done += cost

    def seconds(self, elapsed: float) -> float | None:
        """Return the seconds that remain when `elapsed` have passed since the start; None if nothing is known yet."""
        if self._done == 0:
            return None
        means = {kind: fmean(costs) for kind, costs in self._costs.items()}
        cost = 0.0
        for kind, n_cells in self._left.items():
            like = [mean for known, mean in means.items() if known[0] == kind[0]]
            cost += n_cells * means.get(kind, fmean(like or means.values()))
        return cost * elapsed / self._done


def in_words(seconds: float) -> str:
    """Return a duration as people say it.

    Examples
    --------
    >>> in_words(38.2), in_words(240.0), in_words(9000.0), in_words(190_000.0)
    ('40 s', '4 min', '2.5 h', '2.2 days')
    """
    if seconds < 90:
        return f"{max(1, round(seconds)) if seconds < 10 else round(seconds, -1):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    value, unit = (seconds / 3600, "h") if seconds < 36 * 3600 else (seconds / 86400, "days")
    return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"


def _kind(cell: Cell) -> Kind:
    return cell.problem.name, cell.solver.label
