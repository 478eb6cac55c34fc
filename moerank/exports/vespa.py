"""Export to Vespa: a rank profile whose second phase is a linear expression, or trees in LightGBM's format.

Vespa computes expressions in double precision, and may serve trees in single precision, values, thresholds and leaves.
A value goes left if it is less than the threshold, so the next number of single precision above the threshold is
written; values of float fields then take the same branches.
"""

import re
from pathlib import Path

from moerank.exports.deployable import (
    Deployable,
    Deployment,
    LinearDeployable,
    Node,
    TreesDeployable,
    json_bytes,
    nested_trees,
    next_single_above,
)
from moerank.rankers.model import Forest

PROFILE = """\
rank-profile {name} inherits default {{
{functions}
    second-phase {{
        expression: score_{name}
    }}
    match-features {{
        {features}
        score_{name}
    }}
}}
"""

FUNCTION = """\
    function {name}() {{
        expression {{
            {expression}
        }}
    }}
"""

VESPA_STEP = """\
{copies}. Deploy and query it:
  vespa deploy APPLICATION
  vespa query 'yql=select * from SCHEMA where userQuery()' query=TEXT ranking.profile={name}
It scores the best 100 documents of each node by the first phase of the profile default; rerank-count in its second \
phase sets another number. Write first-phase in the file to score all documents that match.
Check that matchfeatures in the answer are the values of the same documents in the training data, and that fields are \
of the type float."""


def vespa(ranker: Deployable, path: Path) -> Deployment:
    """Return a rank profile, and for trees a second file named after the model, with ``.json``.

    A profile with the name of that file is a ValueError.
    """
    files = {}
    functions = [f"f_{label}" for label in ranker.labels]
    rank_features = _rank_features(ranker)
    profile = []
    rows = zip(functions, ranker.labels, ranker.names, ranker.features, strict=True)
    for function, label, name, entry in rows:
        value = entry.vespa or (name if name in rank_features else f"attribute({label})")
        expression = f"if (isNan({value}), {_number(ranker.engine_missing)}, {value})"
        profile.append(FUNCTION.format(name=function, expression=expression))
    if isinstance(ranker, LinearDeployable):
        form = "{} * {}" if ranker.scaling is None else "{} * (({} - {}) / {})"
        terms = zip(ranker.terms, functions, strict=True)
        summands = [
            form.format(_number(t.weight), function, _number(t.offset), _number(t.scale))
            for t, function in terms
        ]
        expression = " +\n            ".join(summands)
    else:
        trees = path.with_name(f"{ranker.name}.json")
        if trees == path:
            raise ValueError(
                f"{path} is the name of the file of the trees; "
                "choose another file for the profile with --out"
            )
        files[trees] = json_bytes(_dump(ranker.trees, functions), compact=True)
        expression = f'lightgbm("{trees.name}")'
    profile.append(FUNCTION.format(name=f"score_{ranker.name}", expression=expression))
    matched = "\n        ".join(functions)
    files[path] = PROFILE.format(
        name=ranker.name, functions="".join(profile).rstrip(), features=matched
    ).encode()
    return Deployment(files, _next_step(ranker, path))


def _rank_features(ranker: Deployable) -> set[str]:
    """Return the names that are rank features of Vespa, such as bm25(title), and no fields."""
    return {name for name in ranker.names if re.fullmatch(r"[A-Za-z]\w*\(.*\)[\w.]*", name)}


def _number(value: float) -> str:
    """Return a number as an expression with the same value: as Java writes it, negative numbers in brackets."""
    digits, exponent, power = repr(float(value)).partition("e")
    text = f"{digits}{'' if '.' in digits else '.0'}{exponent.upper()}{int(power) if power else ''}"
    return f"({text})" if text.startswith("-") else text


def _dump(trees: Forest, functions: list[str]) -> Node:
    """Return the keys of LightGBM's dump that Vespa reads. No value is absent: each function has a default."""
    leaves: list[Node] = [{"leaf_value": value} for value in trees.leaves]
    splits: list[Node] = [
        {
            "split_feature": column,
            "threshold": next_single_above(threshold),
            "decision_type": "<=",
            "default_left": False,
            "missing_type": "NaN",
        }
        for column, threshold in zip(trees.columns, trees.thresholds, strict=True)
    ]
    roots = nested_trees(
        trees, splits, leaves, lambda low, high: {"left_child": low, "right_child": high}
    )
    return {
        "objective": "lambdarank",
        "feature_names": functions,
        "tree_info": [{"tree_structure": root} for root in roots],
        "pandas_categorical": [],
    }


def _next_step(ranker: Deployable, path: Path) -> str:
    copies = f"Copy {path} to schemas/SCHEMA/{ranker.name}.profile in the application package"
    if isinstance(ranker, TreesDeployable):
        copies += f", and {path.with_name(f'{ranker.name}.json')} to models"
    step = VESPA_STEP.format(copies=copies, name=ranker.name)
    return "\n".join([step, *ranker.remarks("vespa", _rank_features(ranker))])
