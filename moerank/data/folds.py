"""Folds and splits: the training, validation and test part of a data set.

LETOR deals the queries into five parts S1 … S5. Fold 1 trains on S1, S2, S3, validates on S4 and tests on S5; each
further fold moves all three by one part, so that every part is tested on once.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count
from math import floor
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from moerank.arrays import Array, Integers
from moerank.checks import check_at_least, check_room, check_share
from moerank.data.ranking_data import RankingData
from moerank.data.read import check_folder, names_in
from moerank.data.read.letor import read_letor
from moerank.data.scaling import MissingRule, check_missing_rule


class Draws:
    """Draws made of the 64-bit words of PCG64 with a seed, or of another generator."""

    def __init__(self, seed: int | np.random.BitGenerator) -> None:
        self._words = seed if isinstance(seed, np.random.BitGenerator) else np.random.PCG64(seed)

    def order(self, n: int) -> Integers:
        """Return the numbers 0 to n − 1 in a random order."""
        return np.argsort(self._words.random_raw(n), kind="stable")

    def uniform(self, shape: tuple[int, ...]) -> Array:
        """Return multiples of 2⁻⁵³ in [0, 1)."""
        words = self._words.random_raw(int(np.prod(shape))).reshape(shape)
        return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


N_FOLDS = 5
"""That LETOR's data sets have, and the embedded problems."""

MOST_FOLDS = 1000


def load_fold(
    directory: str | os.PathLike[str],
    *,
    missing: MissingRule | None = None,
    dtype: DTypeLike = np.float64,
    validation: float | None = None,
    seed: int = 0,
) -> tuple[RankingData, RankingData, RankingData]:
    r"""Read the training, validation and test file of a LETOR fold.

    Parameters
    ----------
    directory : path-like
        The folder with ``train.txt``, ``vali.txt`` and ``test.txt`` (or ``trainingset.txt``, ``validationset.txt``
        and ``testset.txt``), each plain or with ``.gz`` appended, in letters of any size. The first found
        in this order is read; else the only file ``*.train``, ``*.vali`` (or ``*.valid``) and ``*.test``.
    missing, dtype
        As in `load_letor`.
    validation : float, optional
        Where the folder has no validation file, as LightGBM's examples ``rank.train`` and ``rank.test``: the share of
        the training queries that are drawn for it.
    seed : int, default 0
        Of that draw, as in `split_queries`.

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
    ...     train, vali, test = load_fold(folder)
    >>> print(f"{train.n_documents} documents, {train.n_features} features")
    2 documents, 2 features
    """
    paths = part_paths(Path(directory), drawn=validation is not None)
    if missing is not None:
        check_missing_rule(missing)
    documents = [read_letor(path, nulls=missing is not None, dtype=dtype) for path in paths]
    width = max(part.X.shape[1] for part in documents)
    parts = [
        replace(part, X=_widened(part.X, width, path)).as_data(str(path), missing)
        for path, part in zip(paths, documents, strict=True)
    ]
    if validation is not None and len(parts) == 2:
        check_share(one=False, validation=validation)
        parts[:1] = _drawn(parts[0], {"validation": validation}, seed)
    train, vali, test = parts
    return train, vali, test


_NAMES = {  # of the files, else how the only file ends, also as in Yahoo's set1.train.txt
    "training": (("train.txt", "trainingset.txt"), (".train", ".train.txt")),
    "validation": (("vali.txt", "validationset.txt"), (".vali", ".valid", ".vali.txt", ".valid.txt")),
    "test": (("test.txt", "testset.txt"), (".test", ".test.txt")),
}
_DRAWN = ". load_fold(…, validation=0.2), or split = {validation = 0.2} in a problem file, draws it from training"


def part_paths(folder: Path, *, drawn: bool = False) -> list[Path]:
    """Return training, validation and test file of a fold, see `load_fold`; the second may lack if it is `drawn`."""
    check_folder(folder, "load_fold reads the folder of one fold, such as MQ2008/Fold1")
    files = sorted((entry for entry in folder.iterdir() if entry.is_file()), key=lambda entry: entry.name)
    paths = []
    for part, (names, ends) in _NAMES.items():
        spelt = [name + end for name in names for end in ("", ".gz")]
        named = [file for name in spelt for file in files if file.name.lower() == name]
        named.sort(key=lambda file: (spelt.index(file.name.lower()), file.name not in spelt))
        ended = [file for file in files if file.name.lower().removesuffix(".gz").endswith(ends)]
        if not named and len(ended) > 1:
            listed = ", ".join(file.name for file in ended)
            raise FileNotFoundError(f"{folder}: {listed} may each be the {part} part; name the one that is {spelt[0]}")
        if not named and not ended and not (drawn and part == "validation"):
            raise FileNotFoundError(
                f"{folder}: no {part} part; looked for {' and '.join(names)} (also .gz, and in capital "
                f"letters) and for one file *{ends[0]}, and found {names_in(folder)}"
                f"{_DRAWN if part == 'validation' else ''}"
            )
        paths += (named or ended)[:1]
    return paths


def _widened(X: Array, n_features: int, path: Path) -> Array:
    """Return the table of a LETOR file with zeros for the features up to `n_features` that it does not list."""
    n, width = X.shape
    if width < n_features:
        check_room(f"{path}: a table of {n:,} documents × {n_features:,} features", n * n_features * X.itemsize)
        X = np.pad(X, ((0, 0), (0, n_features - width)))
    return X


def split_fold(data: RankingData, fold: int = 1) -> tuple[RankingData, RankingData, RankingData]:
    """Split the queries of a data set into five equal parts in order, and return a fold from 1 to 5 as LETOR does.

    If five does not divide the number of queries, the first parts hold one more.

    Examples
    --------
    >>> data = RankingData([[0.5]] * 10, y=[0, 1] * 5, qid=[1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    >>> [part.qid[::2].tolist() for part in split_fold(data, 2)]
    [[2, 3, 4], [5], [1]]
    """
    if fold not in range(1, N_FOLDS + 1):
        raise ValueError(f"fold is {fold}; there are folds 1 to {N_FOLDS}")
    train, vali, test = (
        of_queries(data, queries, f"{data.name}, fold {fold}, {part}")
        for part, queries in deal(np.arange(data.n_queries), fold, data.name).items()
    )
    return train, vali, test


def split_queries(
    data: RankingData, validation: float = 0.2, test: float = 0.2, *, seed: int = 0
) -> tuple[RankingData, RankingData, RankingData]:
    """Draw shares of the queries for validation and test; return the three parts, each in the order of `data`.

    The same seed gives the same queries with every version of NumPy. A part without a query is a ValueError.
    """
    check_share(one=False, validation=validation, test=test)
    if validation + test >= 1:
        raise ValueError("validation and test leave no query for training; give smaller shares")
    train, for_test, vali = _drawn(data, {"test": test, "validation": validation}, seed)
    return train, vali, for_test


def _drawn(data: RankingData, shares: dict[str, float], seed: int) -> list[RankingData]:
    """Return the training queries, and the shares of queries that are drawn for other parts, in this order."""
    check_at_least(0, seed=seed)
    sizes = [floor(share * data.n_queries + 0.5) for share in shares.values()]
    if not all(sizes) or sum(sizes) >= data.n_queries:
        listed = " and ".join(f"{share:g} for {part}" for part, share in reversed(shares.items()))
        raise ValueError(f"{data.name}: {data.n_queries} queries cannot be split into shares of {listed}; give more")
    *drawn, rest = np.split(Draws(seed).order(data.n_queries), np.cumsum(sizes))
    parts = zip(("training", *shares), (rest, *drawn), strict=True)
    return [of_queries(data, np.sort(queries), f"{data.name}, {part}") for part, queries in parts]


def deal_queries(
    data: RankingData, fold: int, n_folds: int, *, seed: int = 0
) -> tuple[RankingData, RankingData, RankingData]:
    """Deal the queries of a data set at random into 3 to 1,000 equal parts, and hold two of them out.

    As in LETOR's folds the last part is the test part of fold 1, and the one before it the validation part; with each
    further fold both move on by one. Queries keep the order of `data`. The same seed gives the same parts with every
    version of NumPy.
    """
    check_at_least(3, MOST_FOLDS, n_folds=n_folds)
    check_at_least(1, n_folds, fold=fold)
    check_at_least(0, seed=seed)
    dealt = deal(Draws(seed).order(data.n_queries), fold, data.name, n_folds)
    train, vali, test = (
        of_queries(data, np.sort(queries), f"{data.name}, fold {fold}, {part}") for part, queries in dealt.items()
    )
    return train, vali, test


def deal(queries: Integers, fold: int, name: str, n_folds: int = N_FOLDS) -> dict[str, Integers]:
    """Deal the queries of the data called `name` into equal parts; return those of a fold by the name of its part."""
    if len(queries) < n_folds:
        raise ValueError(f"{name}: {len(queries)} queries cannot be dealt into {n_folds} parts; give more")
    parts = np.array_split(queries, n_folds)
    *training, validation, test = parts[fold - 1 :] + parts[: fold - 1]
    return {"training": np.concatenate(training), "validation": validation, "test": test}


def count_folds(folder: Path) -> int:
    """Return how many of the folders Fold1, Fold2 and so on there are, up to the first that is not."""
    return next(number for number in count() if not (folder / f"Fold{number + 1}").is_dir())


def of_queries(data: RankingData, queries: Integers, name: str | None = None) -> RankingData:
    """Return the documents of some queries, in the order given; `name` as in `RankingData.with_rows`."""
    rows = np.concatenate([np.arange(0), *(np.arange(*data.offsets[q : q + 2]) for q in queries)])
    return data.with_rows(rows, name=name)
