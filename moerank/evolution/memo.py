"""Memos: append-only files with what a computation has finished. Reading one runs no code.

The first line is JSON: format, versions of the writers, and the configuration. Each further line is a record: JSON and
a check sum, which is blake2b with a key made from the first line, so that records of another memo are refused. Anybody
can compute check sums.

A record of a search is a batch, ``[seconds, {digest: values}]``. The seconds are those of the search so far, without
interruptions; the digests (`row_digests`) name the individuals; the values are their F, G and H. `Memo.check` finds
forged values, because it measures the front again.
"""

import json
import os
import platform
import time
from collections import UserDict
from collections.abc import Callable, Iterable
from hashlib import blake2b
from importlib.metadata import version
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar
from weakref import finalize

import numpy as np
from pymoo.core.algorithm import Algorithm
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.core.problem import Problem

from moerank.arrays import Array, Matrix, Vector
from moerank.evolution.operators import new_rows, row_digests
from moerank.files import Json, open_regular, writing
from moerank.version import VERSION

MEMO_FORMAT = "moerank memo 2"  # name and version of the file format


Record = TypeVar("Record")


class Records:
    """Base of memos: a file of records at `path`, with the errors that `Memo` names.

    The file is held open: who removes it, to begin anew, does not get further records of this memo.
    """

    path: Path
    _key: bytes
    _file: FileIO | None = None

    def _open(self, configuration: Json, parse: Callable[[Any], Record]) -> list[Record]:
        """Return the parsed records; begin the file if there is none, and cut off an incomplete line."""
        python = ".".join(platform.python_version_tuple()[:2])
        versions = {
            "moerank": VERSION,
            "pymoo": version("pymoo"),
            "numpy": np.__version__,
            "python": python,
        }
        content = {"format": MEMO_FORMAT, "versions": versions, "configuration": configuration}
        header = json.dumps(content, sort_keys=True).encode() + b"\n"
        self._key = blake2b(header).digest()
        records = []
        end = 0
        if self.path.exists():
            with open_regular(self.path) as file:
                for index, line in enumerate(file):
                    if index == 0:
                        self._check_header(line, header)
                    if not line.endswith(b"\n"):
                        break
                    if index > 0:
                        name = f"record {index} of memo {self.path}"
                        records.append(self._parsed(line, name, end, parse))
                    end += len(line)
            os.truncate(self.path, end)
        self._file = None
        self._write(b"" if end else header)
        return records

    def _append(self, record: object) -> None:
        self._write(self._with_check(json.dumps(record).encode()))

    def _parsed(self, line: bytes, name: str, begin: int, parse: Callable[[Any], Record]) -> Record:
        """Return the parsed record of a line; a ValueError if it is damaged."""
        body = line.rpartition(b" ")[0]
        try:
            if line != self._with_check(body):
                raise ValueError
            return parse(json.loads(body))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise ValueError(
                f"{name} is damaged; cut the file off at byte {begin} to keep the records "
                "before it, or remove it to start again"
            ) from None

    def _check_header(self, line: bytes, header: bytes) -> None:
        """Refuse a first line other than the header, unless it is an incomplete header."""
        if line == header or (not line.endswith(b"\n") and header.startswith(line.rstrip(b"\0"))):
            return
        try:
            expected, actual = json.loads(header), json.loads(line)
            if actual["format"] != MEMO_FORMAT:
                raise ValueError
            versions = differences(actual["versions"], expected["versions"])
            settings = differences(actual["configuration"], expected["configuration"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ValueError(
                f"{self.path} is not a memo of this version of moerank; choose another path"
            ) from None
        what = "was written by other versions" if versions else "belongs to another configuration"
        raise ValueError(
            f"memo {self.path} {what}: {versions or settings or 'its first line was changed'}; "
            "resume it with the original ones, or remove it to start again"
        )

    def _with_check(self, body: bytes) -> bytes:
        """Return a record with its check sum."""
        return (
            body + b" " + blake2b(body, key=self._key, digest_size=16).hexdigest().encode() + b"\n"
        )

    def _write(self, line: bytes) -> None:
        with writing(self.path):
            if self._file is None:
                self._file = FileIO(self.path, "ab")
                finalize(self, self._file.close)
            while line:  # a full disk takes a part
                line = line[self._file.write(line) :]

    def __getstate__(self) -> Json:
        return vars(self) | {"_file": None}


class ArrayEvaluator(Evaluator):
    """pymoo evaluator that also takes strings as rows of an array, without individuals.

    `collect`, if it is set, gets the arguments of `Archive.add` for each batch, as `callback` gets the individuals.
    `seen` has the digests of all evaluated individuals.
    """

    collect: Callable[..., object] | None = None
    repeating = False

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[bytes] = set()

    def eval_rows(
        self, problem: Problem, X: Array, digests: list[bytes], algorithm: Algorithm
    ) -> Matrix:
        """Return the objectives of a batch (n, n_var) with these digests; rows may be packed if the problem `packs`."""
        F = self._values(problem, X, digests, algorithm)[:, : problem.n_obj]
        self.n_eval += len(X)
        self.seen.update(digests)
        if self.collect is not None:
            self.collect(X, F, n_bits=problem.n_var if _are_packed(X, problem) else None)
        return F

    def _eval(
        self,
        problem: Problem,
        pop: Population,
        names: Iterable[str],
        algorithm: Algorithm | None = None,
        **kw: object,
    ) -> None:
        """Set the values of individuals."""
        X = pop.get("X")
        digests = row_digests(X)
        values = self._values(problem, X, digests, algorithm)
        self.seen.update(digests)
        for name, part in zip(
            "FGH", np.split(values, np.cumsum(_sizes(problem))[:2], axis=1), strict=True
        ):
            pop.set(name, part)
        pop.apply(lambda individual: individual.evaluated.update("FGH"))

    def _values(
        self, problem: Problem, X: Array, digests: list[bytes], algorithm: Algorithm | None
    ) -> Matrix:
        """Return F, G and H side by side."""
        if _are_packed(X, problem):
            return problem.objectives_of(X, digests)
        return np.column_stack(
            problem.evaluate(X, return_values_of=list("FGH"), algorithm=algorithm, digests=digests)
        )


class Finished(Records, UserDict[str, Any]):
    """A dictionary of JSON values that writes each entry to the file `path` as it is set.

    `resume` reads the entries that an earlier process wrote; otherwise the file begins anew.
    """

    def __init__(self, path: Path, configuration: Json, *, resume: bool) -> None:
        super().__init__()
        self.path = path
        if not resume:
            path.unlink(missing_ok=True)
        for entry in self._open(json.loads(json.dumps(configuration)), dict):
            self.data |= entry

    def __setitem__(self, name: str, value: object) -> None:
        self._append({name: value})
        self.data[name] = value


class Memo(Records, ArrayEvaluator):
    """pymoo evaluator that records its evaluations in a file, and looks up what the file already has.

    To resume a search, run it again from its seed with the same memo, which knows the evaluations from before the
    interruption. It works for every pymoo algorithm, in `search` and in ``pymoo.optimize.minimize``.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist. The caller removes the file.
    configuration : dict, optional
        Settings that determine the values (problem, data, parameters), as JSON values. The class and seed of the
        algorithm and the numbers of variables and objectives are added. A memo of another configuration is refused.

    Attributes
    ----------
    resumed : bool
        Whether the file held values when the search began.
    repeating : bool
        Whether the search has not yet passed the point where it was interrupted.
    elapsed : float
        Seconds from the beginning of the search to the last evaluation, without interruptions.

    Raises
    ------
    ValueError
        When the search begins, if the file is damaged, is not a memo, or is from other versions or another
        configuration. An incomplete last line, such as a killed process leaves, is cut off.
    OSError
        If the file cannot be read or written.

    Notes
    -----
    A batch is given to the operating system as soon as it is evaluated: a killed process loses only its current batch.
    While a search is repeated, its clock follows the records, so that seconds before an interruption count towards a
    time limit.

    Examples
    --------
    >>> import tempfile
    >>> from pymoo.algorithms.moo.nsga2 import NSGA2
    >>> from pymoo.optimize import minimize
    >>> from pymoo.problems import get_problem
    >>> problem = get_problem("zdt1", n_var=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for n_gen in (3, 5):  # the second search goes on where the first one ended
    ...         memo = Memo(Path(folder, "zdt1.memo"), {"problem": "zdt1"})
    ...         result = minimize(problem, NSGA2(pop_size=20), ("n_gen", n_gen), seed=1, evaluator=memo)
    ...         print(f"{memo.n_eval} evaluations, resumed: {memo.resumed}")
    60 evaluations, resumed: False
    100 evaluations, resumed: True
    >>> memo.check(problem, result.X, result.F)
    """

    def __init__(self, path: str | Path, configuration: dict[str, object] | None = None) -> None:
        super().__init__()
        self.path = Path(path)
        # Through JSON and back: a tuple becomes a list in the file.
        self.configuration = json.loads(json.dumps(configuration or {}))
        self.resumed = False
        self.elapsed = 0.0
        self._records: dict[bytes, tuple[float, Vector]] | None = None

    def check(self, problem: Problem, X: Array, F: Array) -> None:
        """Measure individuals again, and raise a ValueError if they have other objectives than `F`.

        Without this check of the front, anybody who can write to the file could deceive a resumed search. The
        objectives of an `exact` problem, such as a stage, must be the same to the bit, those of others to nine digits,
        because they may depend on the batch.
        """
        X, F = np.atleast_2d(X), np.atleast_2d(F)
        again = Evaluator().eval(problem, Population.new("X", X))
        tolerance = 0.0 if getattr(problem, "exact", False) else 1e-9
        agrees = np.isclose(again.get("F"), F, rtol=tolerance, atol=tolerance / 1000).all(axis=1)
        agrees &= again.get("feas").ravel()
        if not agrees.all():
            raise ValueError(
                f"memo {self.path} holds wrong values: measured again, the member of the front "
                f"with {F[agrees.argmin()].tolist()} has others; remove the memo to start again "
                "(a problem whose values change from one evaluation to the next cannot be resumed)"
            )

    def _values(
        self, problem: Problem, X: Array, digests: list[bytes], algorithm: Algorithm | None
    ) -> Matrix:
        """Return F, G and H side by side; strings that are not in the file are evaluated and recorded."""
        if self._records is None or (algorithm is not None and not algorithm.is_initialized):
            self._records = self._opened(problem, algorithm)
        records = self._records
        rows = new_rows(digests, records)
        if rows:
            self.repeating = False
            new_digests = [digests[row] for row in rows]
            new_strings = X if len(rows) == len(X) else X[rows]
            values = super()._values(problem, new_strings, new_digests, algorithm)
            if algorithm is not None:
                self.elapsed = max(self.elapsed, time.time() - algorithm.start_time)
            rows_by_digest = dict(zip(new_digests, values, strict=True))
            lists = {digest.hex(): row.tolist() for digest, row in rows_by_digest.items()}
            self._append([self.elapsed, lists])
            records |= {digest: (self.elapsed, row) for digest, row in rows_by_digest.items()}
        elif self.repeating:
            self.elapsed = max(self.elapsed, *(records[digest][0] for digest in digests))
            if algorithm is not None:
                algorithm.start_time = time.time() - self.elapsed
        return np.array([records[digest][1] for digest in digests])

    def _opened(
        self, problem: Problem, algorithm: Algorithm | None
    ) -> dict[bytes, tuple[float, Vector]]:
        """Return the values in the file."""
        self.n_eval, self.elapsed = 0, 0.0
        self.seen.clear()
        search = {
            "variables": problem.n_var,
            "objectives, inequalities, equalities": _sizes(problem),
        }
        if algorithm is not None:
            search["algorithm class"] = type(algorithm).__name__
            search["seed of the search"] = algorithm.seed
        width = sum(_sizes(problem))

        def parse(record: Any) -> dict[bytes, tuple[float, Vector]]:
            seconds, lists = record
            batch = {}
            for digest, values in lists.items():
                row = np.array(values, float).reshape(width)
                batch[bytes.fromhex(digest)] = float(seconds), row
            return batch

        records: dict[bytes, tuple[float, Vector]] = {}
        for batch in self._open(search | self.configuration, parse):
            records |= batch
        self.resumed = self.repeating = bool(records)
        return records


def _are_packed(X: Array, problem: Problem) -> bool:
    """Return whether the rows are packed bits for a stage that takes them."""
    return X.dtype == np.uint8 and getattr(problem, "packs", False)


def _sizes(problem: Problem) -> list[int]:
    """Return the numbers of objectives, inequalities and equalities."""
    return [problem.n_obj, problem.n_ieq_constr, problem.n_eq_constr]


def differences(actual: dict[str, Any], expected: dict[str, Any], within: str = "") -> str:
    """Describe the values that differ."""
    descriptions: list[str] = []
    for key in sorted(actual.keys() | expected.keys()):
        name = within + key[:200]
        a, b = actual.get(key, "missing"), expected.get(key, "missing")
        if isinstance(a, dict) and isinstance(b, dict):
            descriptions += filter(None, [differences(a, b, f"{name}.")])
        elif a != b:
            descriptions.append(f"{name} is {repr(a)[:200]} there and {repr(b)[:200]} here")
    return ", ".join(descriptions)
