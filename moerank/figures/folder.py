"""A folder of figures as a table: a file that is put there is in it, and loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

__all__ = ["FigureFolder"]

Kind = TypeVar("Kind")


class FigureFolder(Mapping[str, Kind]):
    """The figures of a package by the names of its files.

    Names are known without loading anything, so that ``moerank plot --help`` answers at once. Each file has its figure
    as ``FIGURE``.

    Parameters
    ----------
    package : str
    path : sequence of str
        The ``__path__`` of the package.
    kind : type
        What its figures are.
    """

    def __init__(self, package: str, path: Sequence[str], kind: type[Kind]) -> None:
        self._package, self._path, self._kind = package, path, kind

    def __getitem__(self, name: str) -> Kind:
        if name not in list(self):
            raise KeyError(name)
        figure = import_module(f"{self._package}.{name}").FIGURE
        if not isinstance(figure, self._kind):
            raise TypeError(f"{self._package}.{name}: FIGURE is a {type(figure).__name__}, not a {self._kind.__name__}")
        return figure

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(module.name for module in iter_modules(self._path)))

    def __len__(self) -> int:
        return len(list(iter(self)))
