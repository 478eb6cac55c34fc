"""The LETOR format in plain Python, for files that are in order: the oracle of the loader's tests."""

import re

import numpy as np


def read_plainly(content, missing=None):
    """X, y, qid of the documents in `content` (bytes)."""
    rows, y, qid = [], [], []
    for line in re.split(rb"\r\n|\r|\n", content):
        text = line.split(b"#")[0].decode("ascii").strip(" \t")
        if not text:
            continue
        label, query, *features = text.split()
        y.append(int(float(label)))
        qid.append(int(query.removeprefix("qid:")))
        values = {}
        for feature in features:
            number, value = feature.split(":")
            values[int(number)] = missing if value == "NULL" else float(value)
        rows.append(values)
    n_features = max((number for values in rows for number in values), default=0)
    X = np.array([[values.get(number, 0.0) for number in range(1, n_features + 1)] for values in rows])
    return X, np.array(y), np.array(qid)


def assert_same_documents(data, content, missing=None):
    X, y, qid = read_plainly(content, missing)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.qid, qid)
