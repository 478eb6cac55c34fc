"""Checkpoints of a search: its whole state between two generations, in one file that is replaced at one stroke.

The file is a line of JSON (format, versions, configuration), which is read first and runs no code, and a pickle,
which does: load only what this machine wrote. The problem and its data stay outside; bool rows are packed to bits.
"""

from __future__ import annotations

import io
import json
import pickle
import platform
import time
from copy import copy
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import cloudpickle
import numpy as np
from numpy.typing import NDArray
from pymoo.core.algorithm import Algorithm
from pymoo.core.problem import Problem

from moerank.evolution.archive import Archive
from moerank.files import remains_of, replacing
from moerank.version import VERSION

__all__ = ["Checkpoint"]

FORMAT = 1
"""Number of the file format; raised whenever an older file cannot be read any more."""


class Checkpoint:
    """The file that a search under way keeps its state in.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist.
    configuration : dict
        What determines the run (problem, solver, parameters, seed), as JSON values. A checkpoint of another
        configuration is refused.
    every : float, default 2.0
        Write at most once in that many seconds. The state of the last finished generation is held in memory in
        between, so an exception or an interrupt loses no finished generation; a killed process loses `every` seconds.

    Raises
    ------
    TypeError
        If the configuration holds other than JSON values.

    Examples
    --------
    >>> import tempfile
    >>> checkpoint = Checkpoint(Path(tempfile.mkdtemp()) / "run.checkpoint", {"solver": "mofsrank", "seed": 1})
    >>> checkpoint.exists()
    False
    """

    def __init__(self, path: str | Path, configuration: dict[str, Any], *, every: float = 2.0) -> None:
        self.path = Path(path)
        # Through JSON and back, so that a tuple here equals the list that it becomes in the file.
        self.configuration = json.loads(json.dumps(configuration))
        self.every = every
        self._pending: _State | None = None
        self._last_write = time.monotonic()

    def exists(self) -> bool:
        """Whether there is a state to go on from."""
        return self.path.exists()

    def record(self, problem: Problem, algorithm: Algorithm, archive: Archive, history: list[Any]) -> None:
        """Remember the state after a generation, and write it if the last write is `every` seconds ago."""
        self._pending = _State(problem, algorithm, archive, history)
        if time.monotonic() - self._last_write >= self.every:
            self.save()

    def save(self) -> None:
        """Write the remembered state now, unless it stands in the file already.

        It is written under a temporary name, flushed to the disk and renamed: killed at any moment, the file holds
        either the old state or the new one.
        """
        if self._pending is None:
            return
        with replacing(self.path) as file:
            file.write(json.dumps(self._header()).encode() + b"\n")
            self._pending.dump(file)
        self._pending = None
        self._last_write = time.monotonic()

    def load(self, problem: Problem) -> tuple[Algorithm, Archive, list[Any]]:
        """Return algorithm, archive and history as they were recorded, with `problem` put back into the algorithm.

        The time between the recording and now does not count for terminations by time.

        Raises
        ------
        ValueError
            If the file is no checkpoint, or one of other versions or of another configuration.
        """
        with self.path.open("rb") as file:
            self._check(file.readline())
            return _restored(file, problem)

    def remove(self) -> None:
        """Delete the file, and what a killed process may have left half written: the run has ended."""
        self._pending = None
        for path in (self.path, *remains_of(self.path)):
            path.unlink(missing_ok=True)

    def _header(self) -> dict[str, Any]:
        major, minor, _ = platform.python_version_tuple()
        versions = {
            "checkpoint format": FORMAT,
            "moerank": VERSION,
            "pymoo": version("pymoo"),
            "numpy": np.__version__,
            "python": f"{major}.{minor}",
        }
        return {"versions": versions, "configuration": self.configuration}

    def _check(self, first_line: bytes) -> None:
        try:
            there = json.loads(first_line)
            versions, configuration = there["versions"], there["configuration"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{self.path} is not a checkpoint of moerank; choose another path") from None
        here = self._header()
        remedy = "or remove it to begin anew"
        if differences := _differences(versions, here["versions"]):
            raise ValueError(
                f"checkpoint {self.path} was written by other versions: {differences}; "
                f"resume it with the versions it was written by, {remedy}"
            )
        if differences := _differences(configuration, here["configuration"]):
            raise ValueError(
                f"checkpoint {self.path} belongs to another configuration: {differences}; "
                f"resume it with the configuration it was written for, {remedy}"
            )


def _differences(there: dict[str, Any], here: dict[str, Any]) -> str:
    missing = "missing"
    return ", ".join(
        f"{key} is {there.get(key, missing)!r} there and {here.get(key, missing)!r} here"
        for key in sorted(there.keys() | here.keys())
        if there.get(key, missing) != here.get(key, missing)
    )


class _State:
    """The state after one generation, which later generations cannot change.

    The algorithm is pickled at once, but only refers to the rows of its individuals: those are never changed in
    place, and packing them is put off until the state is written. This takes milliseconds even for long rows.
    """

    def __init__(self, problem: Problem, algorithm: Algorithm, archive: Archive, history: list[Any]) -> None:
        individuals = [*_members(algorithm.pop), *_members(algorithm.off), *_members(algorithm.opt)]
        rows = {id(individual.X): individual.X for individual in individuals if individual.X.dtype == np.bool_}
        self.problem = problem
        self.rows = list(rows.values())
        buffer = io.BytesIO()
        _Pickler(buffer, {id(problem): "problem"} | dict(zip(rows, range(len(rows)), strict=True))).dump(algorithm)
        self.algorithm = buffer.getvalue()
        self.elapsed = time.time() - algorithm.start_time
        self.archive = copy(archive)
        self.history = list(history)

    def dump(self, file: BinaryIO) -> None:
        """Write everything but the problem."""
        content = {
            "algorithm": self.algorithm,
            "rows": [(len(row), np.packbits(row)) for row in self.rows],
            "elapsed": self.elapsed,
            "archive": self.archive,
            "history": self.history,
            "cache": self.problem.cache_state() if hasattr(self.problem, "cache_state") else None,
        }
        pickle.dump(content, file, pickle.HIGHEST_PROTOCOL)


def _restored(file: BinaryIO, problem: Problem) -> tuple[Algorithm, Archive, list[Any]]:
    content = pickle.load(file)
    rows = [np.unpackbits(packed, count=length).astype(np.bool_) for length, packed in content["rows"]]
    algorithm = _Unpickler(io.BytesIO(content["algorithm"]), {"problem": problem} | dict(enumerate(rows))).load()
    algorithm.start_time = time.time() - content["elapsed"]
    if hasattr(problem, "restore_cache"):
        problem.restore_cache(content["cache"])
    return algorithm, content["archive"], content["history"]


def _members(population: Any) -> NDArray[np.object_]:
    """Return the individuals of what may be a population, a single individual, or nothing yet."""
    return np.empty(0, object) if population is None else np.atleast_1d(population)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Writes a key in place of each object that stays outside, known by its id."""

    def __init__(self, file: BinaryIO, outside: dict[int, Any]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._outside = outside

    def persistent_id(self, obj: Any) -> Any:
        return self._outside.get(id(obj))


class _Unpickler(pickle.Unpickler):
    """Puts the objects that stayed outside back in place of their keys."""

    def __init__(self, file: BinaryIO, outside: dict[Any, Any]) -> None:
        super().__init__(file)
        self._outside = outside

    def persistent_load(self, pid: Any) -> Any:
        return self._outside[pid]
