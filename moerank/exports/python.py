"""Export to Python: one function without dependencies that scores a document."""

from dataclasses import asdict
from pathlib import Path

import numpy as np

from moerank.exports.deployable import Deployable, Deployment, LinearDeployable
from moerank.version import VERSION

BEGIN = '''\
"""A ranker that moerank {version} wrote."""


def score(document):
    """Return the score of a document; documents with larger scores rank first.

    Parameters
    ----------
    document : mapping of str to number
        Raw values of its features by name. {missing}
    """
    names = {names}
    values = []
    for name in names:
        value = document.get(name)
        if value is None or value != value:
            {replacement}
        values.append(value)
    total = 0.0
'''

LINEAR_CODE = """\
    weights = {weights}
    offsets = {offsets}
    scales = {scales}
    for value, weight, offset, scale in zip(values, weights, offsets, scales):
        total += weight * ((value - offset) / scale)
    return total
"""

TREES_CODE = """\
    # The number of a split is its index in these lists, and that of leaf l is -1 - l.
    columns = {columns}
    thresholds = {thresholds}
    left = {left}
    right = {right}
    leaves = {leaves}
    for node in {roots}:
        while node >= 0:
            node = left[node] if values[columns[node]] <= thresholds[node] else right[node]
        total += leaves[-1 - node]
    return total
"""


def python(ranker: Deployable, path: Path) -> Deployment:
    """Return a module with one function."""
    if ranker.missing is None:
        missing = "A missing value (NaN, None or no entry) is a ValueError."
        replacement = 'raise ValueError(f"the document has no value of {name!r}")'
    else:
        missing = f"A missing value (NaN, None or no entry) counts as {float(ranker.missing)!r}."
        replacement = f"value = {float(ranker.missing)!r}"
    names = ascii(ranker.names)  # quoted, in ASCII
    text = BEGIN.format(version=VERSION, missing=missing, names=names, replacement=replacement)
    if isinstance(ranker, LinearDeployable):
        # Python's own numbers, because numpy's are printed as calls.
        columns = np.array([term[1:] for term in ranker.terms]).T.tolist()
        weights, offsets, scales = map(tuple, columns)
        text += LINEAR_CODE.format(weights=weights, offsets=offsets, scales=scales)
    else:
        text += TREES_CODE.format(**asdict(ranker.trees))
    step = (
        f"Import score from {path.name}, and call it with the features of a document, "
        "a mapping of names to numbers.\n"
        "Check that it gets raw values, as in the training data before scaling."
    )
    return Deployment({path: text.encode()}, step)
