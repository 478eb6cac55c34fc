"""Folds: the training, validation and test part of a data set.

LETOR deals the queries into five parts S1 … S5. Fold 1 trains on S1, S2, S3, validates on S4 and tests on S5; each
further fold moves all three by one part, so that every part is tested on once.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moerank.data.letor import load_letor
from moerank.data.part_names import part_paths
from moerank.data.ranking_data import RankingData

__all__ = ["load_fold", "split_fold"]

N_FOLDS = 5


def load_fold(
    directory: str | os.PathLike[str],
    *,
    missing: float | str | None = None,
    dtype: DTypeLike = np.float64,
    cache: bool = True,
) -> tuple[RankingData, RankingData, RankingData]:
    r"""Read the training, validation and test file of a LETOR fold.

    Parameters
    ----------
    directory : path-like
        The folder with ``train.txt``, ``vali.txt`` and ``test.txt`` (or ``trainingset.txt``, ``validationset.txt``
        and ``testset.txt``), each plain or with ``.gz`` or ``.xz`` appended, in letters of any size. The first found
        in this order is read; else the only file ``*.train``, ``*.vali`` (or ``*.valid``) and ``*.test``.
    missing, dtype, cache
        As in `load_letor`.

    Returns
    -------
    train, vali, test : RankingData
        All with the same features, as many as the part with the most has.

    Raises
    ------
    FileNotFoundError
        If the folder or a part is missing; the message says what was looked for and what is there.
    ValueError
        As `load_letor`, for what a file holds.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for part in ("train.txt", "vali.txt", "test.txt"):
    ...         _ = Path(folder, part).write_text("1 qid:1 1:0.5\n0 qid:1 2:0.5\n")
    ...     train, vali, test = load_fold(folder, cache=False)
    >>> train.n_documents, test.n_features
    (2, 2)
    """
    paths = part_paths(Path(directory))
    train, vali, test = (load_letor(path, missing=missing, dtype=dtype, cache=cache) for path in paths)
    n_features = max(train.n_features, vali.n_features, test.n_features)

    def widened(data: RankingData, path: Path) -> RankingData:
        if data.n_features == n_features:
            return data
        return load_letor(path, n_features=n_features, missing=missing, dtype=dtype, cache=cache)

    return widened(train, paths[0]), widened(vali, paths[1]), widened(test, paths[2])


def split_fold(data: RankingData, fold: int = 1) -> tuple[RankingData, RankingData, RankingData]:
    """Split a data set into training, validation and test queries as LETOR does.

    Parameters
    ----------
    data : RankingData
        At least five queries; the first fifth of them, in order, is the part S1, and so on. If five does not divide
        their number, the first parts hold one more.
    fold : int, default 1
        From 1 to 5.

    Returns
    -------
    train, vali, test : RankingData
        Three parts, one part and one part, each with its queries in order of the parts.

    Raises
    ------
    ValueError
        For a fold that does not exist and for fewer than five queries.

    Examples
    --------
    >>> data = RankingData([[0.5]] * 10, y=[0, 1] * 5, qid=[1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    >>> [part.qid[::2].tolist() for part in split_fold(data, 2)]
    [[2, 3, 4], [5], [1]]
    """
    if fold not in range(1, N_FOLDS + 1):
        raise ValueError(f"fold is {fold}; there are folds 1 to {N_FOLDS}")
    if data.n_queries < N_FOLDS:
        raise ValueError(f"{data.name}: {data.n_queries} queries cannot be dealt into {N_FOLDS} parts; give more")
    parts = np.array_split(np.arange(data.n_queries), N_FOLDS)
    turned = parts[fold - 1 :] + parts[: fold - 1]

    def subset(queries: list[NDArray[np.int64]], part: str) -> RankingData:
        rows = np.concatenate([np.arange(*data.offsets[q : q + 2]) for q in np.concatenate(queries)])
        name = f"{data.name}, fold {fold}, {part}"
        return RankingData(data.X[rows], data.y[rows], data.qid[rows], data.given_names, name=name)

    return subset(turned[:3], "training"), subset(turned[3:4], "validation"), subset(turned[4:], "test")
