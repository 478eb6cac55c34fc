"""Export to ONNX: a graph in single precision, for runtimes with the operators of 2021 or later.

Linear models are (X − offset) / scale · weights, trees are one TreeEnsembleRegressor of ai.onnx.ml 3. Thresholds are
rounded down to single precision, which changes no comparison with values of single precision.
"""

import json
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from moerank.exports import deployable
from moerank.exports.deployable import Deployable, Deployment, Node
from moerank.rankers.model import Forest
from moerank.version import VERSION

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

    constants: list[onnx.TensorProto] = []
    nodes: list[onnx.NodeProto] = []

    def constant(name: str, values: ArrayLike, dtype: type[np.generic] = np.float32) -> str:
        constants.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def add(operator: str, inputs: list[str], output: str, **attributes: object) -> str:
        nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    values = "X"
    if ranker.missing is not None:
        value = constant(
            "missing", deployable.single(ranker.missing, "the number for missing values")
        )
        values = add("Where", [add("IsNaN", ["X"], "is_missing"), value, "X"], "complete")
    if ranker.trees is not None:
        add("TreeEnsembleRegressor", [values], "sum", domain="ai.onnx.ml", **_trees(ranker.trees))
        # Trees treat NaN as a large number: adding 0 times the values makes the score NaN instead.
        zeros = add("Mul", [values, constant("zero", 0.0)], "zeros")
        add(
            "Add",
            ["sum", add("ReduceSum", [zeros, constant("axes", [1], np.int64)], "nothing")],
            "score",
        )
    else:
        if ranker.scaling is not None:
            offset = [
                deployable.single(term.offset, f"the offset of {term.name!r}")
                for term in ranker.terms
            ]
            scale = [
                deployable.single_positive(term.scale, f"the scale of {term.name!r}")
                for term in ranker.terms
            ]
            moved = add("Sub", [values, constant("offset", offset)], "moved")
            values = add("Div", [moved, constant("scale", scale)], "scaled")
        weights = [[weight] for weight in ranker.single_weights]
        add("MatMul", [values, constant("weights", weights)], "score")
    table = helper.make_tensor_value_info(
        "X", onnx.TensorProto.FLOAT, ["n_documents", len(ranker.names)]
    )
    score = helper.make_tensor_value_info("score", onnx.TensorProto.FLOAT, ["n_documents", 1])
    model = helper.make_model(
        helper.make_graph(nodes, ranker.name, [table], [score], constants),
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in OPSETS.items()],
        ir_version=IR_VERSION,
        producer_name="moerank",
        producer_version=VERSION,
    )
    helper.set_model_props(model, {"features": json.dumps(ranker.names)})
    step = "\n".join(
        [
            f'Load it: session = onnxruntime.InferenceSession({str(path)!r}); session.run(["score"], {{"X": X}}) '
            "scores X, an array of single precision whose columns are the raw values of these features:",
            f"  {', '.join(map(repr, ranker.names))}",
            "Check that X holds the values of the same documents in the training data.",
            *ranker.coarse,
        ]
    )
    return Deployment({path: model.SerializeToString()}, step)


def _trees(trees: Forest) -> Node:
    """Return the attributes of a TreeEnsembleRegressor, whose nodes are numbered from 0 in each tree."""
    nodes: list[tuple[int, int, int, float, str, int, int]] = []
    targets: list[tuple[int, int, float]] = []
    for tree, root in enumerate(trees.roots):
        for number, (node, below) in enumerate(deployable.breadth_first(trees, root)):
            if node < 0:
                nodes.append((tree, number, 0, 0.0, "LEAF", 0, 0))
                targets.append((tree, number, deployable.single(trees.leaves[-1 - node], "a leaf")))
            else:
                threshold = deployable.single_at_most(trees.thresholds[node])
                nodes.append(
                    (tree, number, trees.columns[node], threshold, "BRANCH_LEQ", below, below + 1)
                )
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    lists: Node = {
        f"nodes_{name}": list(values)
        for name, values in zip(names, zip(*nodes, strict=True), strict=True)
    }
    of_leaves = zip(("treeids", "nodeids", "weights"), zip(*targets, strict=True), strict=True)
    lists |= {f"target_{name}": list(values) for name, values in of_leaves} | {
        "target_ids": [0] * len(targets)
    }
    return lists | {"n_targets": 1, "aggregate_function": "SUM", "post_transform": "NONE"}
