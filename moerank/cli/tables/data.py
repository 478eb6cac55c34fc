"""The table of what data hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from moerank.cli.tables import FittedTable, new_table
from moerank.data import DataDescription

__all__ = ["description_table"]


def description_table(title: str, descriptions: Sequence[DataDescription]) -> FittedTable:
    """Return one column per file and one row per count."""
    table = new_table(title)
    table.add_column("")
    columns = [description.as_dict() for description in descriptions]
    for column in columns:
        table.add_column(Path(column.pop("name")).name, justify="right")
    for key in columns[0]:
        table.add_row(key.replace("_", " "), *(_count(column[key]) for column in columns))
    return table


def _count(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{label}: {count:,}" for label, count in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
