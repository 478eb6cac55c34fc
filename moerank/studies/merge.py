"""Two studies as one: the cells of both, after a check that they do not contradict each other."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from moerank.runs.result import RunResult
from moerank.studies.cell import Cell
from moerank.studies.requests import check_names, read_grids
from moerank.studies.store import Store
from moerank.studies.study import Study

__all__ = ["merge_studies"]


def merge_studies(folders: Iterable[str | Path], out: str | Path) -> Study:
    """Write the union of studies to a folder, and return it.

    Cells are named by all that decides their results, so a cell that several studies have is the same run: it is taken
    once, and refused if its results differ in more than times and versions. Nothing that is in `out` is replaced, and
    nothing is written before everything was checked.

    Parameters
    ----------
    folders : sequence of path
        Of two or more studies, run on different machines or asked for different solvers, say.
    out : path
        The folder of the union: a new one, or that of a study, which is extended.

    Raises
    ------
    ValueError
        If a folder holds no study, if problems or solvers of one name differ, or results of one cell.
    OSError
        If `out` cannot be written.

    Notes
    -----
    Reads all results once: O(bytes of the studies).

    Examples
    --------
    >>> merge_studies(["results/office"], "results/both")
    Traceback (most recent call last):
        ...
    ValueError: name at least two studies to merge
    """
    given = [Path(folder) for folder in folders]
    if len(given) < 2:
        raise ValueError("name at least two studies to merge")
    target = Path(out)
    there = [target] if Store(target, write=False).read_grids() else []
    distinct = {folder.resolve(): folder for folder in [*there, *given]}
    studies = [Study.load(folder) for folder in distinct.values()]
    for number, study in enumerate(studies):
        for other in studies[:number]:
            check_names(study.out, read_grids(study.out, _grids(study)), other.problems, other.solvers)
    _refuse_contradictions(studies)
    with Store(target) as store:
        for study in studies:
            for grid in _grids(study):
                store.add_grid(grid, lambda grids: None)
        for study in studies:
            other_store = Store(study.out, write=False)
            finished, failed = other_store.done()
            for cell in study.cells():
                if cell.key in finished | failed:
                    store.adopt(cell, other_store)
    return Study.load(target)


def _grids(study: Study) -> list[dict[str, Any]]:
    return Store(study.out, write=False).read_grids()


def _refuse_contradictions(studies: list[Study]) -> None:
    """Read all results, and compare those of cells that several studies have finished."""
    found: dict[str, Path] = {}
    for study in studies:
        store = Store(study.out, write=False)
        finished, _ = store.done()
        for cell in study.cells():
            if cell.key not in finished:
                continue
            result = store.read(cell)
            if cell.key in found and _decided(result) != _decided(_read(found[cell.key], cell)):
                raise ValueError(
                    f"{study.out} and {found[cell.key]} have different results of {cell.label}, of which one is wrong; "
                    f"remove cells/{cell.key}.json in one of them"
                )
            found[cell.key] = study.out


def _read(folder: Path, cell: Cell) -> RunResult:
    return Store(folder, write=False).read(cell)


def _decided(result: RunResult) -> dict[str, Any]:
    """Return what a configuration decides: all but the times, the versions and metrics that came later."""
    values = result.as_dict()
    del values["times"], values["versions"]
    for ranker in (*values["front"], *values["baselines"]):
        ranker.pop("further", None)
    return values
