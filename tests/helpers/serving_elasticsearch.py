"""What the plugins of Elasticsearch and OpenSearch do with uploaded files, restated from their sources."""

import json

import numpy as np

from helpers.serving_solr import require

f = np.float32


def is_number(value):
    return type(value) in (int, float)


class PluginModel:
    """A model over a feature set, both as JSON texts.

    `follows_missing` is False for OpenSearch 3.2 to 3.7, in whose trees all that is absent goes to `no`, "zero" for
    earlier versions, where it is 0, and None for later ones, where a split need not say what is missing, and from 3.9
    on a model may say that it is 0.
    """

    def __init__(self, feature_set, model, follows_missing=True):
        feature_set = json.loads(feature_set)
        require(set(feature_set) == {"featureset"}, "featureset")
        require(set(feature_set["featureset"]) == {"features"}, "features")
        self.features = feature_set["featureset"]["features"]
        for feature in self.features:
            require(set(feature) <= {"name", "params", "template_language", "template"}, "unknown key")
            require("template" in feature, "a feature has a template")
        self.names = [feature["name"] for feature in self.features]
        require(len(set(self.names)) == len(self.names), "names are unique")
        self.follows_missing = follows_missing
        self.missing_as_zero = False
        model = json.loads(model)
        require(set(model) == {"model"} and set(model["model"]) == {"name", "model"}, "model")
        self.read_model(**model["model"]["model"])

    def read_model(self, type, definition, feature_normalizers=None):  # the key is called so
        self.is_linear = type == "model/linear"
        self.norms = {name: self.normaliser(name, norm) for name, norm in (feature_normalizers or {}).items()}
        if self.is_linear:
            require(isinstance(definition, dict), "a linear model is a table")
            for name, weight in definition.items():
                require(name in self.names, f"unknown feature {name}")
                require(is_number(weight), "weights are numbers")
            self.weights = [f(definition.get(name, 0)) for name in self.names]
            return
        require(type == "model/xgboost+json", "type")
        if isinstance(definition, dict):
            self.missing_as_zero = definition.pop("missing_as_zero", self.missing_as_zero)
            require(not self.missing_as_zero or self.follows_missing is None, "unknown key")
            require(set(definition) == {"objective", "splits"}, "unknown key")
            require(definition["objective"] == "rank:ndcg", "objective")
            definition = definition["splits"]
        require(len(definition) > 0, "at least one tree")
        for tree in definition:
            self.check_node(tree)
        self.trees = definition

    def normaliser(self, name, norm):
        require(name in self.names, f"unknown feature {name}")
        require(len(norm) == 1, "Multiple feature normalizers detected")
        ((kind, values),) = norm.items()
        if kind == "min_max":
            least, most = values["minimum"], values["maximum"]
            require(set(values) == {"minimum", "maximum"} and 0 <= least < most, "min_max")
            return f(least), f(most) - f(least)
        require(kind == "standard" and set(values) == {"mean", "standard_deviation"}, "standard")
        require(f(values["standard_deviation"]) > 0, "deviation")
        return f(values["mean"]), f(values["standard_deviation"])

    def check_node(self, node):
        if "leaf" in node:
            require(set(node) == {"nodeid", "leaf"}, "a leaf has nodeid and leaf")
            return
        needed = {"nodeid", "depth", "split", "split_condition", "yes", "no", "children"}
        needed |= {"missing"} if self.follows_missing is True else set()
        require(needed <= set(node) <= needed | {"missing"}, "This split does not have all the required fields")
        require(
            [child["nodeid"] for child in node["children"]] == [node["yes"], node["no"]], "Split structure is invalid"
        )
        if self.follows_missing is None and "missing" in node:
            require(node["missing"] in (node["yes"], node["no"]), "Split structure is invalid")
        require(node["split"] in self.names, f"unknown feature {node['split']}")
        for child in node["children"]:
            self.check_node(child)

    @staticmethod
    def value(template, fields):
        """The score of a query over a field of a document, None where it does not match."""
        if "match" in template:
            return fields.get(template["match"]["field"])
        scored = template["function_score"]
        require(scored["boost_mode"] == "replace", "the score is that of the function alone")
        factor, query = scored["field_value_factor"], scored["query"]
        if query == {"match_all": {}}:
            return fields.get(factor["field"], factor["missing"])
        require(query == {"exists": {"field": factor["field"]}}, "query")
        return fields.get(factor["field"])

    def score(self, fields):
        """The score of a document, a mapping of its fields to numbers."""
        values = {}
        for feature in self.features:
            x = self.value(feature["template"], fields)
            is_zero = self.is_linear or self.missing_as_zero or self.follows_missing == "zero"
            x = f(0 if is_zero else np.nan) if x is None else f(x)
            if feature["name"] in self.norms:
                a, b = self.norms[feature["name"]]
                x = (x - a) / b
            values[feature["name"]] = x
        total = f(0)
        if self.is_linear:
            for weight, x in zip(self.weights, values.values(), strict=True):
                total = f(total + weight * x)
            return total
        for tree in self.trees:
            total = f(total + f(self.leaf(tree, values)))
        return total

    def leaf(self, node, values):
        while "leaf" not in node:
            x = values[node["split"]]
            is_left = x < f(node["split_condition"])
            if np.isnan(x):
                is_left = self.follows_missing is not False and node.get("missing") == node["yes"]
            node = node["children"][0 if is_left else 1]
        return node["leaf"]
