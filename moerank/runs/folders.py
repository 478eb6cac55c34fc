"""The folder of a run: what is finished in it, what was interrupted, and going on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moerank.files import prepare_folder
from moerank.runs.problem import Problem
from moerank.runs.result import RunResult
from moerank.runs.result_files import JOURNAL, read_result, unfinished, write_result
from moerank.runs.run_fold import Progress, configuration, run_fold
from moerank.runs.solver_spec import SolverSpec
from moerank.systems import remove

if TYPE_CHECKING:
    from moerank.cluster import DaskCluster

__all__ = ["FoldRuns"]


@dataclass(frozen=True)
class FoldRuns:
    """A solver on some folds of a problem, each in a folder of its own.

    Parameters
    ----------
    problem : Problem
    solver : SolverSpec
    folders : mapping of int to Path
        Where the run of each fold is kept.
    seed : int, default 0
    data : path, optional
        Where files of data are; see `Problem.load_fold`.
    """

    problem: Problem
    solver: SolverSpec
    folders: Mapping[int, Path]
    seed: int = 0
    data: Path | None = None

    def run(
        self,
        *,
        resume: bool = False,
        workers: int = 1,
        progress: Callable[[], AbstractContextManager[Progress | None]] = nullcontext,
        say: Callable[[str], object] = lambda sentence: None,
        cluster: DaskCluster | None = None,
    ) -> Iterator[RunResult]:
        """Yield the result of each fold once it is on disk, and run what is not finished.

        Everything that can be refused is refused before the first fold begins.

        Parameters
        ----------
        resume : bool, default False
            Go on from what an interrupted run has left, and run nothing again that is finished.
        workers : int, default 1
            Threads; results are the same for any number.
        progress : callable, optional
            Makes the context in which a fold runs, and which is told how far it is; see `run_fold`.
        say : callable
            Called with each sentence that the user should read.
        cluster : DaskCluster, optional
            Whose workers hold the shards of the training parts; see `run_fold`.

        Raises
        ------
        OSError
            If a folder cannot be written, or data are missing.
        ValueError
            If a folder holds the result of another configuration.
        """
        self.problem.spec(self.solver)
        for fold in self.folders if len(self.folders) > 1 or cluster is None else ():  # else the run itself begins so
            self.problem.load_limited_fold(fold, self.data, cluster)
        for folder in self.folders.values():
            prepare_folder(folder)
        finished = {fold: self._finished(fold, folder) for fold, folder in self.folders.items()}
        if resume and not any(finished[fold] or unfinished(folder) for fold, folder in self.folders.items()):
            say("nothing to resume; starting from the beginning")
        for fold, folder in self.folders.items():
            result = finished[fold]
            if result is not None and resume:
                say(f"{folder} holds the finished run; it is not run again")
            else:
                if result is not None:
                    say(f"{folder} holds a finished run of the same configuration; it will be replaced")
                if not resume:
                    for journal in unfinished(folder):
                        say(f"starting anew; {journal} of an interrupted run is removed (--resume would continue it)")
                        remove(journal)
                with progress() as report:
                    result = run_fold(
                        self.problem,
                        fold,
                        self.solver,
                        self.seed,
                        workers=workers,
                        data=self.data,
                        journal=folder / JOURNAL,
                        resume=resume,
                        progress=report,
                        cluster=cluster,
                    )
            write_result(result, folder)
            for journal in unfinished(folder):  # only now: whoever is killed before goes on from them
                remove(journal)
            yield result

    def _finished(self, fold: int, folder: Path) -> RunResult | None:
        """Return the finished result in a folder; refuse a folder with that of another configuration."""
        result = read_result(folder)
        if result is None:
            return None
        here = _flat(configuration(self.problem, fold, self.solver, self.seed))
        there = _flat(result.configuration)
        for key in [*here, *there]:
            if here.get(key) != there.get(key):
                raise ValueError(
                    f"{folder} holds the result of another configuration ({key} is {there.get(key)} there and "
                    f"{here.get(key)} here); choose another folder with --out, or remove it"
                )
        return result


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings under dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat
