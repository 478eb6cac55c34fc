"""Problems whose data are in memory: what a user has loaded, made or changed, under a name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PrivateAttr

from moerank.data import RankingData
from moerank.data.folds import MOST_FOLDS
from moerank.runs.data_section import DataSection, Fold
from moerank.runs.file_sources import Split
from moerank.runs.identity import data_digest
from moerank.runs.places import Places
from moerank.stages.settings import at_least

__all__ = ["InMemory", "MemoryData", "read_memory"]

InMemory: TypeAlias = RankingData | Fold | Sequence[Fold]
"""Training, validation and test part, several folds of them, or a table that is cut into them."""

WANTED = "a RankingData or (train, validation, test), each a RankingData"


class MemoryData(DataSection):
    """Data that were given as objects. A digest of their bytes stands for them: a study knows its data again.

    Attributes
    ----------
    digest : str
        Of all folds.
    folds : int
    split : Split, optional
        How one table was cut by query.
    """

    source: Literal["memory"]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    folds: Annotated[int, at_least(1, MOST_FOLDS)] = 1
    split: Split | None = None

    _held: tuple[Fold, ...] = PrivateAttr(default=())

    @property
    def is_held(self) -> bool:
        """Whether the data are here; files keep their digest alone."""
        return bool(self._held)

    def n_folds(self, places: Places) -> int:
        """Return how many folds there are."""
        return self.folds

    def read(self, fold: int, places: Places) -> Fold:
        """Return the parts of a fold.

        Raises
        ------
        ValueError
            If the data are known by their digest alone: files hold no more of them.
        """
        if not self.is_held:
            raise ValueError("the data of this problem were in memory; give them to Study again")
        return self._held[fold - 1]


def read_memory(data: Any, settings: Mapping[str, Any]) -> MemoryData:
    """Return data in memory as the table [data] of a problem.

    Parameters
    ----------
    data : RankingData, (RankingData, RankingData, RankingData) or a sequence of such
        Training, validation and test part of each fold; or one table, which is cut by query as `Split` says.
    settings : mapping
        Further keys of the table, as ``{"normalize": "query", "split": {"folds": 5}}``.

    Raises
    ------
    ValueError
        If the data are something else, or parts have different features.

    Examples
    --------
    >>> part = RankingData([[0.1], [0.9]], y=[0, 1])
    >>> read_memory((part, part, part), {}).folds
    1
    """
    split = settings.get("split")
    if isinstance(data, RankingData):
        cut = Split.model_validate(split or {})
        held = tuple(cut.parts(data, fold) for fold in range(1, (cut.folds or 1) + 1))
    elif split is not None:
        raise ValueError("split is for one RankingData; here the parts are given")
    elif isinstance(data, tuple | list) and any(isinstance(part, RankingData) for part in data):
        held = (_fold(data),)
    elif isinstance(data, tuple | list) and data:
        held = tuple(_fold(parts) for parts in data)
    else:
        raise ValueError(f"data in memory are {WANTED}, or a list of such folds, not {type(data).__name__}")
    digest = hashlib.blake2b("".join(data_digest(part) for fold in held for part in fold).encode(), digest_size=16)
    section = MemoryData.model_validate(
        {**settings, "source": "memory", "digest": digest.hexdigest(), "folds": len(held)}
    )
    section._held = held
    return section


def _fold(parts: Any) -> Fold:
    if not isinstance(parts, tuple | list) or len(parts) != 3 or not all(isinstance(p, RankingData) for p in parts):
        raise ValueError(f"a fold in memory is {WANTED}")
    train, validation, test = parts
    for part in (validation, test):
        if part.feature_names != train.feature_names:
            raise ValueError(f"{part.name} and {train.name} have different features")
    return train, validation, test
