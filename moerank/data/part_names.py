"""What the files of a fold may be called."""

from __future__ import annotations

from pathlib import Path

__all__ = ["check_folder", "names_in", "part_paths"]

_SPELLINGS = {
    "training": ("train.txt", "trainingset.txt"),
    "validation": ("vali.txt", "validationset.txt"),
    "test": ("test.txt", "testset.txt"),
}
_ENDINGS = {"training": (".train",), "validation": (".vali", ".valid"), "test": (".test",)}
_COMPRESSIONS = ("", ".gz", ".xz")


def part_paths(directory: Path) -> list[Path]:
    """Return the training, validation and test file of the folder of a fold.

    Each is the first found of ``train.txt`` and ``trainingset.txt`` (``vali.txt`` …), plain or with ``.gz`` or ``.xz``
    appended, in letters of any size; else the only file whose name ends in ``.train`` (``.vali`` or ``.valid``,
    ``.test``), as in ``rank.train``.

    Raises
    ------
    FileNotFoundError
        If the folder or a part is missing, or several files may be the part; the message says what was looked for and
        what is there.
    """
    check_folder(directory, "load_fold reads the folder of one fold, such as MQ2008/Fold1")
    files = sorted((entry for entry in directory.iterdir() if entry.is_file()), key=lambda entry: entry.name)
    return [_part_path(directory, part, files) for part in _SPELLINGS]


def _part_path(directory: Path, part: str, files: list[Path]) -> Path:
    spelt = [spelling + compression for spelling in _SPELLINGS[part] for compression in _COMPRESSIONS]
    for name in spelt:
        found = [file for file in files if file.name.lower() == name]
        if found:
            return next((file for file in found if file.name == name), found[0])
    endings = tuple(ending + compression for ending in _ENDINGS[part] for compression in _COMPRESSIONS)
    found = [file for file in files if file.name.lower().endswith(endings)]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(file.name for file in found)
        raise FileNotFoundError(f"{directory}: {listed} may each be the {part} part; name the one that is {spelt[0]}")
    raise FileNotFoundError(
        f"{directory}: no {part} part; looked for {' and '.join(_SPELLINGS[part])} (also .gz and .xz, and in capital "
        f"letters) and for one file *{_ENDINGS[part][0]}, and found {names_in(directory)}"
    )


def check_folder(directory: Path, advice: str) -> None:
    """Raise a FileNotFoundError for what is no folder, with the advice."""
    if not directory.is_dir():
        reason = "is a file, not a folder" if directory.exists() else "does not exist"
        raise FileNotFoundError(f"{directory} {reason}; {advice}")


def names_in(directory: Path) -> str:
    """Return the names of the first ten entries of a folder, for a message."""
    present = sorted(entry.name for entry in directory.iterdir())
    return ", ".join(present[:10]) + (", …" if len(present) > 10 else "") if present else "nothing"
