"""Problem files: TOML that is checked before any work begins, with messages that name place and remedy."""

from __future__ import annotations

import reprlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError

from moerank.checks import unknown
from moerank.files import read_text
from moerank.runs.file_sources import Split
from moerank.runs.memory import InMemory, MemoryData, read_memory
from moerank.runs.places import shipped_folder
from moerank.runs.problem import Problem, Published
from moerank.runs.sources import SOURCES

__all__ = ["load_problem", "make_problem", "shipped_problems", "with_settings"]

MOST_BYTES = 2**20
"""Of a problem file."""

LONGEST_LINE = 4096
"""A key of thousands of parts, which is read in the square of their number, fits into none."""


def shipped_problems() -> dict[str, Path]:
    """Return the problem files that come with the package, by name.

    Examples
    --------
    >>> sorted(shipped_problems())
    ['digits', 'mq2008', 'mslr', 'ohsumed', 'planted', 'web']
    """
    return {path.stem: path for path in sorted(shipped_folder().glob("*.toml"))}


def load_problem(problem: str | Path, overrides: Mapping[str, Any] | None = None) -> Problem:
    """Read a problem file.

    Parameters
    ----------
    problem : str or Path
        The name of a shipped problem, or the path of a file.
    overrides : mapping of str to object, optional
        Values that replace the file's, as ``{"feature_selection.generations": 20}``.

    Raises
    ------
    FileNotFoundError
        If there is no such file or shipped problem.
    ValueError
        If the file is no TOML, or holds an unknown key or a wrong value. The message names file, table and key, and
        the nearest key that exists.

    Examples
    --------
    >>> load_problem("digits").metric.name
    'NDCG@10'
    >>> load_problem("digits", {"ensemble.generatons": 5})
    Traceback (most recent call last):
        ...
    ValueError: --set ensemble.generatons: unknown key [ensemble] generatons; did you mean generations?
    """
    path = _problem_path(problem)
    overrides = overrides or {}
    document = _changed(_document(path), overrides)
    with _sentences(str(path), overrides):
        read = Problem.model_validate(document)
    return read if str(problem) in shipped_problems() else read.beside(path.parent)


def make_problem(name: str, data: InMemory, settings: Mapping[str, Any] | None = None) -> Problem:
    """Return a problem whose data are in memory.

    Parameters
    ----------
    name : str
    data : RankingData, (RankingData, RankingData, RankingData) or a sequence of such
        Training, validation and test part of each fold; or one table, of whose queries a fifth each is drawn for
        validation and test, unless the setting ``data.split`` says something else.
    settings : mapping of str to object, optional
        What a problem file would say, as ``{"metric.name": "NDCG@5", "ensemble.generations": 20}``.

    Raises
    ------
    ValueError
        For data or settings that cannot be.

    Examples
    --------
    >>> from moerank.data import load_planted_fold
    >>> problem = make_problem("mine", load_planted_fold(1), {"metric.name": "MAP"})
    >>> problem.metric.name, problem.n_folds()
    ('MAP', 1)
    """
    settings = settings or {}
    document = _changed({"name": name}, settings)
    with _sentences(f"problem {name!r}", settings):
        return Problem.model_validate({**document, "data": read_memory(data, document.get("data", {}))})


def with_settings(problem: Problem, settings: Mapping[str, Any]) -> Problem:
    """Return a problem with other settings, as `load_problem` takes them.

    Raises
    ------
    ValueError
        For an unknown key or a wrong value, and for settings of the data of a problem in memory, which is made with
        them.

    Examples
    --------
    >>> with_settings(load_problem("digits"), {"metric.name": "MAP"}).metric.name
    'MAP'
    """
    if not settings:
        return problem
    document = _changed(problem.model_dump(exclude_unset=True), settings)
    if isinstance(problem.data, MemoryData):
        if of_data := [key for key in settings if key.startswith("data.")]:
            raise ValueError(
                f"{of_data[0]}: the data of {problem.name} are in memory; make_problem takes their settings"
            )
        document["data"] = problem.data
    with _sentences(f"problem {problem.name!r}", settings):
        changed = Problem.model_validate(document)
    return changed.beside(problem.folder) if problem.folder else changed


def _document(path: Path) -> dict[str, Any]:
    """Return what stands in a TOML file."""
    text = read_text(path, MOST_BYTES)
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > LONGEST_LINE:
            raise ValueError(f"{path}: line {number} has more than {LONGEST_LINE:,} characters; break it")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"{path}: not a TOML file: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path}: not a TOML file: {error}") from None


def _problem_path(problem: str | Path) -> Path:
    shipped = shipped_problems()
    if str(problem) in shipped:
        return shipped[str(problem)]
    if Path(problem).exists() and not Path(problem).is_dir():
        return Path(problem)
    if Path(problem).suffix == ".toml":
        raise FileNotFoundError(f"there is no problem file {problem}; shipped problems are {', '.join(shipped)}")
    raise FileNotFoundError(unknown("problem", str(problem), shipped) + " (or give the path of a problem file)")


@contextmanager
def _sentences(place: str, settings: Mapping[str, Any]) -> Iterator[None]:
    """Turn what pydantic says of a problem into a ValueError of one sentence."""
    try:
        yield
    except ValidationError as error:
        raise ValueError(_sentence(error, place, settings)) from None


def _changed(document: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document, into which settings are put."""
    for key, value in settings.items():
        _put(document, key, value)
    return document


def _put(document: dict[str, Any], key: str, value: Any) -> None:
    """Set the value of a dotted key, making tables on the way."""
    *tables, last = key.split(".")
    for table in tables:
        document = document.setdefault(table, {})
        if not isinstance(document, dict):
            raise ValueError(f"--set {key}: {table} is a value, not a table")
    document[last] = value


def _sentence(error: ValidationError, file: str, overrides: Mapping[str, Any]) -> str:
    """Say where the most telling error is, and what would be right."""
    # A misspelt key comes first: it may be the reason why another is missing.
    problem = min(error.errors(), key=lambda entry: entry["type"] != "extra_forbidden")
    # Pydantic names the source in the location: data.digits.n_queries is data.n_queries here.
    location = [str(part) for i, part in enumerate(problem["loc"]) if not (i == 1 and problem["loc"][0] == "data")]
    key = ".".join(location)
    override = next((name for name in overrides if name == key or name.startswith(key + ".")), None)
    place = f"--set {override}" if override else file
    table = f"[{'.'.join(location[:-1])}] " if location[:-1] else ""
    if problem["type"] == "extra_forbidden":
        known = list(_section(problem["loc"][:-1]).model_fields)
        nearest = get_close_matches(location[-1], known, n=1)
        advice = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(known)}"
        return f"{place}: unknown key {table}{location[-1]}; {advice}"
    if problem["type"] == "missing":
        return f"{place}: the key {table}{location[-1]} is missing"
    if problem["type"].startswith("union_tag"):
        of_files = (source for source in SOURCES if source is not MemoryData)
        sources = (get_args(source.model_fields["source"].annotation)[0] for source in of_files)
        return f"{place}: [{key}] source: choose one of {', '.join(sources)}"
    if problem["type"] == "value_error":
        if location in (["data"], ["data", "split"]):  # of several keys together
            table = f"[{'.'.join(location)}] "
        within = "parameters: " * (location[-1:] == ["parameters"])
        return f"{place}: {table}{within}{problem['ctx']['error']}"
    expected = problem["msg"].split(",")[0].removeprefix("Input ")
    given = f", not {reprlib.repr(problem['input'])}" if isinstance(problem["input"], str | int | float) else ""
    return f"{place}: {table}{location[-1]}: {expected}{given}"


def _section(location: Sequence[int | str]) -> type[BaseModel]:
    """Return the model of the table at `location`: none is deeper than three steps."""
    match location:
        case ("data", _, "split"):
            return Split
        case ("data", source):
            return next(model for model in SOURCES if source in get_args(model.model_fields["source"].annotation))
        case ("published", _):
            return Published
        case (str(table),):
            return cast("type[BaseModel]", Problem.model_fields[table].annotation)
    return Problem
