"""Export to ONNX: a graph in single precision, for runtimes with the operators of 2021 or later.

Linear models are (X − offset) / scale · weights, trees are one TreeEnsembleRegressor of ai.onnx.ml 3. Thresholds are
rounded down to single precision, which changes no comparison with values of single precision.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from moerank.arrays import Array
from moerank.exports.deployable import (
    Deployable,
    Deployment,
    LinearDeployable,
    Node,
    TreesDeployable,
    breadth_first,
    normaliser,
    round_down_to_single,
    to_single,
)
from moerank.rankers.model import Forest
from moerank.version import VERSION

if TYPE_CHECKING:
    from onnx import NodeProto

OPSETS = {"": 13, "ai.onnx.ml": 3}
# Version of the file format; older runtimes refuse newer ones.
IR_VERSION = 8


def onnx_graph(ranker: Deployable, path: Path) -> Deployment:
    """Return a graph with the input ``X`` (n_documents, n_features) and the output ``score`` (n_documents, 1).

    The metadata ``features`` are the names of the features in the order of the columns of X. NaN is a missing value; if
    the training data had none, it makes the score NaN. Numbers that single precision cannot hold are a ValueError; a
    missing package onnx is an ImportError.
    """
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError:
        raise ImportError(
            "ONNX needs the package onnx, which is not installed: pip install 'moerank[onnx]'"
        ) from None

    nodes = []
    constants = {}
    values = "X"
    if ranker.missing is not None:
        missing = to_single(ranker.missing, "the number for missing values")
        constants["missing"] = np.array(missing, np.float32)
        nodes += [
            helper.make_node("IsNaN", ["X"], ["is_missing"]),
            helper.make_node("Where", ["is_missing", "missing", "X"], ["complete"]),
        ]
        values = "complete"
    if isinstance(ranker, LinearDeployable):
        nodes += _linear(ranker, values, constants)
    else:
        nodes += _trees(ranker, values, constants)
    table, score = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n_documents", width])
        for name, width in (("X", len(ranker.names)), ("score", 1))
    )
    arrays = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    model = helper.make_model(
        helper.make_graph(nodes, ranker.name, [table], [score], arrays),
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in OPSETS.items()],
        ir_version=IR_VERSION,
        producer_name="moerank",
        producer_version=VERSION,
    )
    helper.set_model_props(model, {"features": json.dumps(ranker.names)})
    step = "\n".join(
        [
            f"Load it: session = onnxruntime.InferenceSession({str(path)!r}); "
            'session.run(["score"], {"X": X}) scores X, an array of single precision whose columns '
            "are the raw values of these features:",
            f"  {', '.join(map(repr, ranker.names))}",
            "Check that X holds the values of the same documents in the training data.",
            *ranker.precision_remarks,
        ]
    )
    return Deployment({path: model.SerializeToString()}, step)


def _linear(ranker: LinearDeployable, values: str, constants: dict[str, Array]) -> list[NodeProto]:
    """Return the nodes of (values − offset) / scale · weights, and add their constants."""
    from onnx.helper import make_node

    nodes = []
    if ranker.scaling:
        rows = [normaliser(term, "standard")[:2] for term in ranker.terms]
        constants["offset"], constants["scale"] = np.array(rows, np.float32).T
        nodes += [
            make_node("Sub", [values, "offset"], ["moved"]),
            make_node("Div", ["moved", "scale"], ["scaled"]),
        ]
        values = "scaled"
    constants["weights"] = np.array(ranker.single_weights, np.float32)[:, None]
    return [*nodes, make_node("MatMul", [values, "weights"], ["score"])]


def _trees(ranker: TreesDeployable, values: str, constants: dict[str, Array]) -> list[NodeProto]:
    """Return the nodes of the sum of trees, and add their constants.

    Trees treat NaN as a large number: adding 0 times the values makes the score NaN instead.
    """
    from onnx.helper import make_node

    attributes = _tree_attributes(ranker.trees)
    constants["zero"] = np.array(0.0, np.float32)
    constants["axes"] = np.array([1], np.int64)
    return [
        make_node("TreeEnsembleRegressor", [values], ["sum"], domain="ai.onnx.ml", **attributes),
        make_node("Mul", [values, "zero"], ["zeros"]),
        make_node("ReduceSum", ["zeros", "axes"], ["nothing"]),
        make_node("Add", ["sum", "nothing"], ["score"]),
    ]


NODE_LISTS = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
TARGET_LISTS = ("treeids", "nodeids", "weights", "ids")


def _tree_attributes(trees: Forest) -> Node:
    """Return the attributes of a TreeEnsembleRegressor, whose nodes are numbered from 0 in each tree."""
    nodes = []
    targets = []
    for tree, root in enumerate(trees.roots):
        for number, (node, child) in enumerate(breadth_first(trees, root)):
            if node < 0:
                nodes.append((tree, number, 0, 0.0, "LEAF", 0, 0))
                weight = to_single(trees.leaves[-1 - node], "a leaf")
                targets.append((tree, number, weight, 0))
            else:
                column, threshold = trees.columns[node], trees.thresholds[node]
                value = round_down_to_single(threshold)
                nodes.append((tree, number, column, value, "BRANCH_LEQ", child, child + 1))
    node_lists = pd.DataFrame(nodes, columns=NODE_LISTS).add_prefix("nodes_").to_dict("list")
    target_lists = pd.DataFrame(targets, columns=TARGET_LISTS).add_prefix("target_").to_dict("list")
    return (
        node_lists
        | target_lists
        | {"n_targets": 1, "aggregate_function": "SUM", "post_transform": "NONE"}
    )
