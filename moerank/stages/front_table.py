"""The table of a front, which shows all of its columns when it is printed."""

from __future__ import annotations

import shutil
from typing import Any

import pandas as pd

__all__ = ["FrontTable"]

PLAIN_WIDTH = 120
"""Columns where a table is printed to a file or a pipe."""


class FrontTable(pd.DataFrame):
    """A DataFrame whose text has every column: what a terminal has no room for goes below the rest, not into dots.

    Examples
    --------
    >>> table = FrontTable({"n_features": [1, 2], "error": [0.5, 0.25], "features": [(7,), (3, 7)]})
    >>> print(table)
       n_features  error features
    0           1   0.50     (7,)
    1           2   0.25   (3, 7)
    >>> type(table.head(1)).__name__
    'FrontTable'
    """

    @property
    def _constructor(self) -> Any:
        return FrontTable

    def __repr__(self) -> str:
        """Return the table as text, as wide as the terminal."""
        width = shutil.get_terminal_size((PLAIN_WIDTH, 0)).columns
        longest = max(width // 3, 20)  # of a list of features, which must leave room for the other columns
        text = self.to_string(line_width=width, max_rows=pd.get_option("display.max_rows"), max_colwidth=longest)
        return str(text)

    __str__ = __repr__
