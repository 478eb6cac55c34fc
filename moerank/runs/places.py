"""Where the data of a problem are looked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["Places", "shipped_folder"]


def shipped_folder() -> Path:
    """Return the folder of the problem files that come with the package."""
    package = Path(__file__).parents[1]
    # The wheel carries the folder inside the package; in a checkout it stands beside it.
    return next(path for path in (package / "problems", package.parent / "problems") if path.is_dir())


class Places:
    """Where data are looked for.

    Parameters
    ----------
    beside : Path, optional
        The folder of the problem's file, which comes first.
    others : sequence of Path
        Places of data: they hold the folder or file that a problem names, or are that folder themselves.
    """

    def __init__(self, beside: Path | None, others: Sequence[Path]) -> None:
        self._named = [*([] if beside is None else [beside]), *others]
        self._others = others

    def folders(self, folder: str) -> list[Path]:
        """Return the paths that a folder may have."""
        found = [place / folder for place in self._named]
        return found + [place for place in self._others if place not in found]

    def files(self, file: str) -> list[Path]:
        """Return the paths that a file may have."""
        return [place / file for place in self._named]

    def absolute(self) -> Places:
        """Return the same places as they are called from any working directory."""
        places = Places(None, [place.absolute() for place in self._others])
        places._named = [place.absolute() for place in self._named]
        return places

    def __str__(self) -> str:
        return ", ".join(dict.fromkeys(map(str, self._named)))
