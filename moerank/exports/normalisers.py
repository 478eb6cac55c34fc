"""Fitted scaling as search engines apply it, which compute in single precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moerank.data.scales import FittedScaling
from moerank.exports.rounding import single, single_positive

__all__ = ["Normaliser", "normaliser"]

CLOSE = 1e-6
"""The share of its extent that a feature may lose where minimum and maximum are rounded to single precision."""


class Normaliser(NamedTuple):
    """A feature is scaled to (x − offset) / scale, and, where `maximum` is given, by (maximum − offset), too."""

    offset: float
    scale: float
    maximum: float | None


def normaliser(scaling: FittedScaling, place: int, name: str) -> Normaliser:
    """Return what scales a feature in single precision.

    Parameters
    ----------
    scaling : FittedScaling
    place : int
        The feature.
    name : str
        Its name, for messages.

    Returns
    -------
    Normaliser
        With a maximum if minimum and maximum were fitted and rounding them keeps their difference.

    Raises
    ------
    ValueError
        If one of them is too large, or the scale too small.

    Examples
    --------
    >>> normaliser(FittedScaling("minmax", (1.0,), (4.0,)), 0, "price")
    Normaliser(offset=1.0, scale=4.0, maximum=5.0)
    >>> normaliser(FittedScaling("minmax", (1e9,), (4.0,)), 0, "time").maximum is None
    True
    """
    offset = single(scaling.offset[place], f"the offset of {name!r}")
    scale = single_positive(scaling.scale[place], f"the scale of {name!r}")
    if scaling.kind == "standard":
        return Normaliser(offset, scale, None)
    maximum = single(scaling.offset[place] + scaling.scale[place], f"the maximum of {name!r}")
    divided_by = float(np.float32(maximum) - np.float32(offset))
    return Normaliser(offset, scale, maximum if abs(divided_by - scale) < CLOSE * scale else None)
