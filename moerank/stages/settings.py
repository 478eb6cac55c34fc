"""What each stage of MOFSRank can be told, and reading it from a mapping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from moerank.checks import unknown

__all__ = [
    "EnsembleSettings",
    "FeatureSelectionSettings",
    "InstanceSelectionSettings",
    "StageSettings",
    "read_settings",
]


@dataclass(frozen=True)
class StageSettings:
    """What every stage can be told.

    Attributes
    ----------
    population : int
        Individuals a generation.
    generations : int
        Generations, the initial population counted.
    termination : pymoo termination or tuple, optional
        Instead of `generations`, as pymoo users know it: ``("time", "00:01:00")``, ``("n_eval", 5000)``, …
    initial : ndarray or pymoo Sampling, optional
        Initial population instead of the stage's own sampling.
    """

    population: int = 100
    generations: int = 100
    termination: Any = None
    initial: Any = None


@dataclass(frozen=True)
class InstanceSelectionSettings(StageSettings):
    """Settings of the first stage: initial densities, and the pair subsets it hands on.

    Attributes
    ----------
    density : (float, float)
        Range of the shares of pairs in the initial population.
    max_subsets : int
        Most pair subsets that go to the second stage, spread along the front.
    include_all : bool
        Whether the subset of all pairs is among them.
    """

    generations: int = 50
    density: tuple[float, float] = (0.05, 0.5)
    max_subsets: int = 10
    include_all: bool = True


@dataclass(frozen=True)
class FeatureSelectionSettings(StageSettings):
    """Settings of the second stage: the reading of equations (3) and (4); see `AdaptiveBitFlip`."""

    form: str = "additive"
    decay: str = "inverse"


@dataclass(frozen=True)
class EnsembleSettings(StageSettings):
    """Settings of the third stage: whether the members of the front are in its initial population."""

    inject: bool = False


Settings = TypeVar("Settings", bound=StageSettings)


def read_settings(kind: type[Settings], name: str, value: bool | Mapping[str, Any]) -> Settings:
    """Read the settings of a stage from its argument."""
    if isinstance(value, Mapping):
        known = [field.name for field in fields(kind)]
        for key in value:
            if key not in known:
                raise ValueError(unknown(f"setting of {name}", key, known))
        return kind(**value)
    return kind()
