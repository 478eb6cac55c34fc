"""Reader of tables of what features cost: CSV with one row per feature."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from moerank.data.costs import FeatureCosts
from moerank.data.read import text_lines
from moerank.data.read.delimited import csv_table

# The first two columns are required; of the others, columns with other names hold further numbers.
COLUMNS = ("name", "cost", "group", "group_cost")


def read_cost_table(
    path: Path, feature_names: Sequence[str], other: float | None = None
) -> FeatureCosts:
    r"""Read a table of costs with the columns name, cost and, if there are groups, group and group_cost.

    Every feature of the data has a row, in any order, or costs `other`. Columns with other names hold further numbers,
    such as latencies, of every feature. A ValueError names a missing column, and a feature that is unknown, there twice
    or without a row, whose cost is no number from 0 on, whose group has two costs, or that lacks a further number.
    """
    table = _cells(path)
    group, is_priced = table.pop("group"), table["group_cost"] != ""
    numbers = table.apply(pd.to_numeric, errors="coerce").astype(float)
    is_price = numbers.ge(0) & numbers.lt(np.inf)
    faults = {
        "is not a feature of the data": ~table.index.isin(feature_names),
        "has two rows": table.index.duplicated(),
        "has a cost that is not a number from 0 on": ~is_price["cost"],
        "has a group_cost without a group": is_priced & (group == ""),
        "has a group_cost that is not a number from 0 on": is_priced & ~is_price["group_cost"],
        "is in a group with two costs": numbers["group_cost"].groupby(group).transform("nunique")
        > 1,
    }
    extras = numbers.drop(columns=["cost", "group_cost"])
    for column in extras:
        faults[f"has no finite number in the column {column!r}"] = ~np.isfinite(extras[column])
    features_of = {fault: table.index[is_faulty] for fault, is_faulty in faults.items()}
    if other is None or len(extras.columns):
        features_of["has no row"] = pd.Index(feature_names).difference(table.index, sort=False)
    for fault, features in features_of.items():
        for name in features[:1]:
            raise ValueError(f"{path}: {name!r} {fault}; give each feature one row with its cost")
    prices = numbers["group_cost"][is_priced].groupby(group).first()
    return FeatureCosts.of(
        numbers["cost"].reindex(feature_names, fill_value=other),
        [entry or None for entry in group.reindex(feature_names, fill_value="")],
        prices.to_dict(),
        extras.reindex(feature_names).to_dict("list"),
    )


def _cells(path: Path) -> pd.DataFrame:
    """Return the texts of a table of costs by feature, empty ones for a column of groups that it lacks."""
    rows, _ = csv_table(path, text_lines(path))
    header = [name.strip() for name in next(rows, (0, []))[1]]
    if not set(COLUMNS[:2]) <= set(header) or len(set(header)) < len(header):
        raise ValueError(
            f"{path}: the columns must be {', '.join(COLUMNS)}; the last two are optional, and "
            "others hold further numbers of each feature"
        )
    table = pd.DataFrame([fields for _, fields in rows], columns=header, dtype=str)
    for column in COLUMNS[2:]:
        if column not in header:
            table[column] = ""
    return table.apply(lambda column: column.str.strip()).set_index("name")
