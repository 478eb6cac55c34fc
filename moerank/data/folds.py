"""Folds: from LETOR's files, from queries that are dealt or drawn, and from generated problems.

LETOR deals the queries into five parts S1 … S5. Fold 1 trains on S1, S2, S3, validates on S4 and tests on S5; each
further fold moves all three by one part, so that every part is the test part once.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, count
from math import exp, floor, log
from pathlib import Path
from statistics import NormalDist
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike

from moerank.arrays import Array, Floats, Integers, Mask, Matrix
from moerank.checks import check_at_least, check_not_negative, check_room, check_share
from moerank.data.preparation import MissingRule
from moerank.data.ranking_data import Fold, RankingData
from moerank.data.read import as_precision, check_folder, names_in
from moerank.data.read.letor import load_parts
from moerank.files import AnyPath


class Draws:
    """Random draws from the 64-bit words of PCG64 with a seed, or of another generator."""

    def __init__(self, seed: int | np.random.BitGenerator) -> None:
        self._words = seed if isinstance(seed, np.random.BitGenerator) else np.random.PCG64(seed)

    def order(self, n: int) -> Integers:
        """Return the numbers 0 to n − 1 in a random order."""
        return np.argsort(self._words.random_raw(n), kind="stable")

    def uniform(self, shape: tuple[int, ...]) -> Array:
        """Return multiples of 2⁻⁵³ in [0, 1)."""
        words = self._words.random_raw(int(np.prod(shape))).reshape(shape)
        return (words >> np.uint64(11)).astype(float) * 2.0**-53


N_FOLDS = 5  # of LETOR's data sets, and of the embedded problems

MAX_FOLDS = 1000


def load_fold(
    directory: AnyPath,
    *,
    zero_based: bool = False,
    missing: MissingRule | None = None,
    missing_values: Sequence[float] = (),
    dtype: DTypeLike | None = None,
    validation: float | None = None,
    seed: int = 0,
) -> Fold:
    r"""Read the training, validation and test file of a LETOR fold.

    Parameters
    ----------
    directory : path-like
        The folder with ``train.txt``, ``vali.txt`` and ``test.txt`` (or ``trainingset.txt``, ``validationset.txt``
        and ``testset.txt``), each plain or with ``.gz`` appended, in upper or lower case. The first one
        found in this order is read, otherwise the only file ``*.train``, ``*.vali`` (or ``*.valid``) and ``*.test``.
        A folder that does not exist is looked for where commands look: in ``$MOERANK_DATA``, then in ``data``.
    zero_based, missing, missing_values, dtype
        As in `load_letor`; all parts have the same precision.
    validation : float, optional
        The share of the training queries to draw for validation if the folder has no validation file, as in LightGBM's
        examples ``rank.train`` and ``rank.test``.
    seed : int, default 0
        The seed of that draw, as in `split_queries`.

    Returns
    -------
    train, vali, test : RankingData
        All have the same features, as many as the part with the most.

    Raises
    ------
    FileNotFoundError
        If the folder or a part is missing; the message says what was looked for and what is there.
    ValueError
        As in `load_letor`, for the content of a file.

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
    folders = [Path(directory), *(root / directory for root in data_folders())]
    folder = next(filter(Path.is_dir, folders), folders[0])
    paths = part_paths(folder, needs_validation=validation is None)
    parts = load_parts(paths, missing, missing_values, dtype, zero_based=zero_based)
    if validation is not None and len(parts) == 2:
        check_share(one=False, validation=validation)
        parts[:1] = _draw_parts(parts[0], {"validation": validation}, seed)
    return cast("Fold", tuple(parts))


def data_folders() -> list[Path]:
    """Return the folders of data: that in the environment variable ``MOERANK_DATA``, then ``data`` in this one."""
    return [Path(root) for root in (os.environ.get("MOERANK_DATA"), "data") if root]


_NAMES = {  # names of the files, or else endings of the only file, such as Yahoo's set1.train.txt
    "training": (("train.txt", "trainingset.txt"), (".train", ".train.txt")),
    "validation": (
        ("vali.txt", "validationset.txt"),
        (".vali", ".valid", ".vali.txt", ".valid.txt"),
    ),
    "test": (("test.txt", "testset.txt"), (".test", ".test.txt")),
}
_DRAWS_VALIDATION = (
    ". load_fold(…, validation=0.2), or split = {validation = 0.2} in a problem file, draws it "
    "from training"
)


def part_paths(folder: Path, *, needs_validation: bool) -> list[Path]:
    """Return the three files of a fold, see `load_fold`; a validation file that is not needed may be missing."""
    check_folder(folder, "load_fold reads the folder of one fold, such as MQ2008/Fold1")
    files = sorted(filter(Path.is_file, folder.iterdir()), key=lambda entry: entry.name.swapcase())
    paths = []
    for part, (names, ends) in _NAMES.items():
        spellings = [name + end for name in names for end in ("", ".gz")]
        candidates = [file for name in spellings for file in files if file.name.lower() == name][:1]
        if not candidates:
            plain_names = [file.name.lower().removesuffix(".gz") for file in files]
            candidates = list(compress(files, (name.endswith(ends) for name in plain_names)))
        if len(candidates) > 1:
            raise FileNotFoundError(
                f"{folder}: {', '.join(file.name for file in candidates)} may each be the {part} "
                f"part; rename one to {spellings[0]}"
            )
        if not candidates and (needs_validation or part != "validation"):
            remedy = _DRAWS_VALIDATION if part == "validation" else ""
            raise FileNotFoundError(
                f"{folder}: no {part} part; looked for {' and '.join(names)} (also .gz, and in "
                f"capital letters) and for one file *{ends[0]}, and found {names_in(folder)}"
                f"{remedy}"
            )
        paths += candidates
    return paths


def split_fold(data: RankingData, fold: int = 1) -> Fold:
    """Split the queries of a data set into five equal parts in order, and return a fold from 1 to 5 as LETOR does.

    If five does not divide the number of queries, the first parts have one query more.

    Examples
    --------
    >>> data = RankingData([[0.5]] * 10, y=[0, 1] * 5, qid=[1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    >>> [part.qid[::2].tolist() for part in split_fold(data, 2)]
    [[2, 3, 4], [5], [1]]
    """
    return _deal(data, np.arange(data.n_queries), fold, N_FOLDS)


def split_queries(
    data: RankingData, validation: float = 0.2, test: float = 0.2, *, seed: int = 0
) -> Fold:
    """Draw shares of the queries for validation and test; return the three parts, each in the order of `data`.

    The same seed gives the same queries with every version of NumPy. A part without a query is a ValueError.
    """
    check_share(one=False, validation=validation, test=test)
    train, test_part, vali = _draw_parts(data, {"test": test, "validation": validation}, seed)
    return train, vali, test_part


def _draw_parts(data: RankingData, shares: dict[str, float], seed: int) -> list[RankingData]:
    """Return the training queries, and the shares of queries that are drawn for other parts, in this order."""
    check_at_least(0, seed=seed)
    sizes = [floor(share * data.n_queries + 0.5) for share in shares.values()]
    if not all(sizes) or sum(sizes) >= data.n_queries:
        texts = [f"{share:g} for {part}" for part, share in reversed(shares.items())]
        raise ValueError(
            f"{data.name}: {data.n_queries} queries cannot be split into shares of "
            f"{' and '.join(texts)}; give more"
        )
    *selections, rest = np.split(Draws(seed).order(data.n_queries), np.cumsum(sizes))
    parts = zip(("training", *shares), (rest, *selections), strict=True)
    return [of_queries(data, np.sort(queries), f"{data.name}, {part}") for part, queries in parts]


def deal_queries(data: RankingData, fold: int, n_folds: int, *, seed: int = 0) -> Fold:
    """Deal the queries of a data set at random into 3 to 1,000 equal parts, and hold two of them out.

    As in LETOR's folds the last part is the test part of fold 1, and the one before it the validation part; with each
    further fold both move by one part. Queries keep the order of `data`. The same seed gives the same parts with every
    version of NumPy.
    """
    check_at_least(3, MAX_FOLDS, n_folds=n_folds)
    check_at_least(0, seed=seed)
    return _deal(data, Draws(seed).order(data.n_queries), fold, n_folds, keep_order=True)


def _deal(
    data: RankingData, order: Integers, fold: int, n_folds: int, *, keep_order: bool = False
) -> Fold:
    """Deal queries into equal parts in an order, and return the parts of a fold, in the order of `data` if asked."""
    check_at_least(1, n_folds, fold=fold)
    if len(order) < n_folds:
        raise ValueError(
            f"{data.name}: {len(order)} queries cannot be dealt into {n_folds} parts; give more"
        )
    parts = np.array_split(order, n_folds)
    *training, vali, test = parts[fold - 1 :] + parts[: fold - 1]
    queries_of = {"training": np.concatenate(training), "validation": vali, "test": test}
    fold_parts = []
    for part, queries in queries_of.items():
        rows = np.sort(queries) if keep_order else queries
        fold_parts.append(of_queries(data, rows, f"{data.name}, fold {fold}, {part}"))
    return cast("Fold", tuple(fold_parts))


def count_folds(folder: Path) -> int:
    """Count the folds Fold1, Fold2 and so on, up to the first that is missing."""
    return next(number for number in count() if not (folder / f"Fold{number + 1}").is_dir())


def of_queries(data: RankingData, queries: Integers, name: str | None = None) -> RankingData:
    """Return the documents of some queries, in the order given; `name` as in `RankingData.with_rows`."""
    rows = np.concatenate([np.arange(0), *(np.arange(*data.offsets[q : q + 2]) for q in queries)])
    return data.with_rows(rows, name=name)


SIDE = 8  # pixels along each side of an image


def load_digits_fold(
    fold: int = 1, *, n_queries: int = 150, n_documents: int = 100, seed: int = 0
) -> Fold:
    """Make a fold of query by example on scikit-learn's copy of the UCI digits.

    The query images are distinct. The documents of a query are drawn uniformly from all other images, without
    replacement, and drawn again in the rare case that all or none show the digit of the query. About one in ten is
    relevant. An image can be a document of several queries.

    Parameters
    ----------
    fold : int, default 1
        From 1 to 5; the queries are dealt into five parts as LETOR does, see `split_fold`.
    n_queries : int, default 150
        From 5 to 1797, the number of images.
    n_documents : int, default 100
        Documents of each query, from 2 to 1796.
    seed : int, default 0
        The seed of the draws of query images and documents, which are the same in all folds.

    Returns
    -------
    train, vali, test : RankingData
        64 features in [0, 1], 1 − |difference| / 16 of each pixel, named "row 1 column 1" to "row 8 column 8", row by
        row: feature f is the pixel ``divmod(f, 8)``. Labels are 1 for the digit of the query, else 0. Query ids are
        1 to `n_queries`.

    Raises
    ------
    ValueError
        For numbers outside their range.

    References
    ----------
    E. Alpaydin, C. Kaynak: Optical recognition of handwritten digits. UCI Machine Learning Repository (1998), the test
    part.

    Examples
    --------
    >>> train, vali, test = load_digits_fold(1)
    >>> train
    RankingData('digits, fold 1, training': 9000 documents, 90 queries, 64 features)
    """
    from sklearn.datasets import load_digits

    check_at_least(0, seed=seed)
    images, digits = load_digits(return_X_y=True)
    n_images = len(images)
    check_at_least(5, n_images, n_queries=n_queries)
    check_at_least(2, n_images - 1, n_documents=n_documents)
    draws = Draws(seed)
    queries = draws.order(n_images)[:n_queries]
    documents = np.array([_draw_documents(draws, digits, query, n_documents) for query in queries])
    difference = np.abs(images[documents] - images[queries, None])
    data = RankingData(
        (1.0 - difference / 16).reshape(-1, SIDE * SIDE),  # pixels are integers from 0 to 16
        (digits[documents] == digits[queries, None]).ravel(),
        np.repeat(np.arange(1, n_queries + 1), n_documents),
        [
            f"row {row} column {column}"
            for row in range(1, SIDE + 1)
            for column in range(1, SIDE + 1)
        ],
        name="digits",
    )
    return split_fold(data, fold)


def _draw_documents(draws: Draws, digits: Integers, query: int, n_documents: int) -> Integers:
    while True:
        images = draws.order(len(digits))
        documents = images[images != query][:n_documents]
        if len(np.unique(digits[documents] == digits[query])) == 2:
            return documents


MAX_LABELS = 1000


@dataclass(frozen=True, eq=False)
class PlantedProblem:
    """A data set and the role of each of its features.

    Attributes
    ----------
    data : RankingData
        Features in [0, 1). Their names tell their roles: "relevant 2", "redundant 1 of 2" (the first redundant feature
        made from "relevant 2"), "noise 3".
    source : ndarray of int64, shape (n_features,)
        The feature from which each one is made: itself for a relevant feature, a relevant one for a redundant feature,
        −1 for noise.
    """

    data: RankingData
    source: Integers

    @property
    def relevant(self) -> Mask:
        """The mask of the relevant features, shape (n_features,)."""
        return np.equal(self.source, np.arange(len(self.source)))


def make_planted(
    n_queries: int = 100,
    n_documents: int = 20,
    n_relevant: int = 5,
    n_redundant: int = 10,
    n_noise: int = 15,
    *,
    n_labels: int = 3,
    noise: float = 0.1,
    seed: int = 0,
) -> PlantedProblem:
    """Make a planted problem of any size.

    Parameters
    ----------
    n_queries, n_documents : int
        Number of queries, and of documents in each: at least 1 and 2.
    n_relevant, n_redundant, n_noise : int
        Features of each role: at least 1, 0 and 0. The redundant ones are made from the relevant ones in turn. The
        columns stand in random order.
    n_labels : int, default 3
        Labels are 0 to n_labels − 1; from 2 to 1,000.
    noise : float, default 0.1
        Width of the uniform noise on the utility, at least 0. The mean of the relevant features has standard
        deviation √(1 / (12 · n_relevant)).
    seed : int, default 0
        The same seed gives the same bits with every version of NumPy.

    Returns
    -------
    PlantedProblem
        Time O(n_documents_in_all · n_features).

    Raises
    ------
    ValueError
        For numbers outside their range, and for a table that is larger than the limit of `check_room`.

    Examples
    --------
    >>> problem = make_planted(n_queries=2, n_documents=4, n_relevant=1, n_redundant=1, n_noise=1)
    >>> problem.data.feature_names, problem.relevant.tolist(), problem.source.tolist()
    (('relevant 1', 'noise 1', 'redundant 1 of 1'), [True, False, False], [0, -1, 0])
    """
    check_at_least(1, n_queries=n_queries, n_relevant=n_relevant)
    check_at_least(2, n_documents=n_documents)
    check_at_least(0, n_redundant=n_redundant, n_noise=n_noise, seed=seed)
    check_at_least(2, MAX_LABELS, n_labels=n_labels)
    check_not_negative(noise=noise)
    n_rows, n_features = n_queries * n_documents, n_relevant + n_redundant + n_noise
    n_bytes = n_rows * 8 + n_features * (n_rows * 8 * 3 + 100)  # three copies, and the names
    check_room(
        f"{n_queries:,} queries of {n_documents:,} documents with {n_features:,} features", n_bytes
    )
    draws = Draws(seed)
    relevant = draws.uniform((n_relevant, n_rows))
    origins = np.arange(n_redundant) % n_relevant
    redundant = 0.8 * relevant[origins] + 0.2 * draws.uniform((n_redundant, n_rows))
    features = np.concatenate([relevant, redundant, draws.uniform((n_noise, n_rows))])
    # Python's sum adds one feature after the other, so that the bits do not depend on how NumPy splits a sum.
    utility = sum(relevant) / n_relevant + noise * (draws.uniform((n_rows,)) - 0.5)
    order = draws.order(n_features)
    names = [f"relevant {j + 1}" for j in range(n_relevant)]
    names += [f"redundant {i // n_relevant + 1} of {j + 1}" for i, j in enumerate(origins)]
    names += [f"noise {i + 1}" for i in range(n_noise)]
    data = RankingData(
        features[order].T,
        _labels(utility.reshape(n_queries, n_documents), n_labels).ravel(),
        np.repeat(np.arange(1, n_queries + 1), n_documents),
        [names[feature] for feature in order],
        name="planted",
    )
    column = np.argsort(order)
    sources = np.concatenate([column[:n_relevant], column[origins], np.full(n_noise, -1)])
    return PlantedProblem(data, sources[order])


def load_planted_fold(fold: int = 1, **planted: Any) -> Fold:
    """Make a planted problem and split its queries as LETOR does.

    Parameters
    ----------
    fold : int, default 1
        From 1 to 5, see `split_fold`.
    **planted
        The arguments of `make_planted`.

    Returns
    -------
    train, vali, test : RankingData
        Three fifths, one fifth and one fifth of the queries.

    Examples
    --------
    >>> train, vali, test = load_planted_fold(2, n_queries=10)
    >>> train
    RankingData('planted, fold 2, training': 120 documents, 6 queries, 30 features)
    """
    return split_fold(make_planted(**planted).data, fold)


def _labels(utility: Matrix, n_labels: int) -> Integers:
    """Label the documents of each row of `utility` by their rank in utility."""
    rank = np.argsort(np.argsort(-utility, axis=1, kind="stable"), axis=1)
    sizes = [-(-utility.shape[1] // 4**label) for label in range(n_labels - 1, 0, -1)]
    return n_labels - 1 - np.searchsorted(sizes, rank, side="right")


# How many features of each kind there are, in the order in which they are drawn.
WEB_KINDS = {
    "informative": 20,
    "copy 1 of": 20,
    "copy 2 of": 20,
    "uniform": 30,
    "tail": 24,
    "count": 18,
    "query": 4,
}
COPY_WEIGHTS = (0.9, 0.6)  # of the informative feature in its first and its second copy

N_FEATURES, N_OF_QUERY = sum(WEB_KINDS.values()), WEB_KINDS["query"]
# Random words of 64 bits per document: two uniform numbers each, of which the last two are noise on its utility.
WORDS_PER_DOCUMENT = (N_FEATURES + 2) // 2

# Documents of a query: mean, standard deviation of the logarithm, and the maximum, as in MSLR-WEB30K.
MEAN, SPREAD, LONGEST = 115, 0.6, 1251

DECAY, NOISE = np.float32(0.85), np.float32(1.5)
LIMITS = np.array([5.244, 6.081, 6.829, 7.181], np.float32)

QUERIES_OF_A_BLOCK = (
    64  # queries that are drawn together, from their own counter: no block depends on another
)

MAX_SEED = 2**64 - 1


def make_web(n_queries: int = 300, seed: int = 0, dtype: DTypeLike = np.float32) -> RankingData:
    """Make a web search problem with known informative features.

    Parameters
    ----------
    n_queries : int, default 300
        At least 1; MSLR-WEB30K has 31,531. A smaller problem has the first queries of a larger one.
    seed : int, default 0
        From 0 to 2⁶⁴ − 1. The same seed gives the same bits with every version of NumPy.
    dtype : {float32, float64}, default float32
        Precision of the features; the values are the same in both.

    Returns
    -------
    RankingData
        About 115 documents per query, 136 features. Their names tell their kinds: "informative 1" (the strongest) to
        "informative 20", "copy 2 of 1" (the second of the first), "uniform 1", "tail 1", "count 1", "query 1".
        Query ids are 1 to `n_queries`. Time O(n_documents · n_features); memory is that of the table and some
        megabytes.

    Raises
    ------
    ValueError
        For numbers outside their range, and for a table that is larger than the limit of `check_room`.

    Examples
    --------
    >>> data = make_web(20)
    >>> data
    RankingData('web': 2290 documents, 20 queries, 136 features)
    >>> data.X.dtype, data.feature_names[:3]
    (dtype('float32'), ('informative 18', 'copy 1 of 15', 'tail 12'))
    """
    offsets = _offsets(n_queries, seed, dtype)
    order = Draws(_generator(seed, 1)).order(N_FEATURES)
    names = [f"{kind} {number}" for kind, n in WEB_KINDS.items() for number in range(1, n + 1)]
    X = np.empty(
        (offsets[-1], N_FEATURES), dtype, order="F"
    )  # the order in which populations are scored
    y = np.empty(len(X), np.int64)
    for begin in range(0, n_queries, QUERIES_OF_A_BLOCK):
        part = offsets[begin : begin + QUERIES_OF_A_BLOCK + 1]
        values, y[part[0] : part[-1]] = _block(np.diff(part), seed, begin // QUERIES_OF_A_BLOCK)
        for feature, column in enumerate(order):
            X[part[0] : part[-1], feature] = values[:, column]
    X.setflags(write=False)  # so that it is not copied
    qid = np.repeat(np.arange(1, n_queries + 1), np.diff(offsets))
    return RankingData(X, y, qid, [names[feature] for feature in order], name="web")


def load_web_fold(
    fold: int = 1, *, n_queries: int = 300, seed: int = 0, dtype: DTypeLike = np.float32
) -> Fold:
    """Make a web search problem and split its queries as LETOR does.

    Parameters
    ----------
    fold : int, default 1
        From 1 to 5, see `split_fold`.
    n_queries, seed, dtype
        As in `make_web`; at least 5 queries.

    Returns
    -------
    train, vali, test : RankingData
        Three fifths, one fifth and one fifth of the queries.

    Examples
    --------
    >>> train, vali, test = load_web_fold(2, n_queries=10)
    >>> train
    RankingData('web, fold 2, training': 927 documents, 6 queries, 136 features)
    """
    return split_fold(make_web(n_queries, seed, dtype), fold)


def _offsets(n_queries: int, seed: int, dtype: DTypeLike) -> Integers:
    """Draw the length of each query; return their first rows. A table beyond the limit is refused."""
    check_at_least(1, n_queries=n_queries)
    check_at_least(0, MAX_SEED, seed=seed)
    n_bytes = int(n_queries) * MEAN * (N_FEATURES * np.dtype(as_precision(dtype)).itemsize + 16)
    check_room(f"{n_queries:,} queries of {MEAN} documents with {N_FEATURES} features", n_bytes)
    normal = NormalDist(log(MEAN) - SPREAD**2 / 2, SPREAD)
    chances = Draws(_generator(seed, 0)).uniform((n_queries,))
    # In Python's arithmetic, because NumPy's logarithm depends on the processor.
    sizes = [
        min(max(round(exp(normal.inv_cdf(max(chance, 2.0**-53)))), 1), LONGEST)
        for chance in chances.tolist()
    ]
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


def _block(lengths: Integers, seed: int, block: int) -> tuple[Floats, Integers]:
    """Draw features and labels of a block by single operations of IEEE 754, so that all machines get the same bits."""
    query_words = _uniform(seed, 2 * block + 2, len(lengths), (N_OF_QUERY + 2) // 2)
    uniform = _uniform(seed, 2 * block + 3, int(lengths.sum()), WORDS_PER_DOCUMENT)
    values, noise = uniform[:, :N_FEATURES], uniform[:, N_FEATURES:]
    ends = np.cumsum(list(WEB_KINDS.values()))
    informative, *copies, _, tails, counts, constant = np.split(values, ends[:-1], axis=1)
    for share, copy in zip(COPY_WEIGHTS, copies, strict=True):
        copy *= np.float32(1 - share)
        copy += np.float32(share) * informative
    for heavy in (tails, counts):
        heavy[...] = np.float32(1) / np.sqrt(np.float32(1) - heavy)
    tails -= np.float32(1)
    tails *= np.float32(0.1)
    np.floor(counts, out=counts)
    counts -= np.float32(1)
    document_words = np.repeat(query_words, lengths, axis=0)
    constant[...] = np.floor(np.float32(16) * document_words[:, :N_OF_QUERY])
    utility = NOISE * (noise[:, 0] + noise[:, 1]) + document_words[:, N_OF_QUERY]
    strength = np.float32(1)
    for feature in informative.T:
        utility += strength * feature
        strength *= DECAY
    return values, np.searchsorted(LIMITS, utility, side="right").astype(np.int64)


def _uniform(seed: int, counter: int, n_rows: int, n_words: int) -> Floats:
    """Return multiples of 2⁻²⁴ in [0, 1), shape (n_rows, 2 · n_words); a larger table begins with the same rows."""
    halves = (
        _generator(seed, counter).random_raw(n_rows * n_words).astype("<u8", copy=False).view("<u4")
    )
    halves >>= np.uint32(8)
    uniform = halves.astype(np.float32)
    uniform *= np.float32(2.0**-24)
    return uniform.reshape(n_rows, 2 * n_words)


def _generator(seed: int, counter: int) -> np.random.Philox:
    return np.random.Philox(key=np.array([seed, counter], np.uint64))
