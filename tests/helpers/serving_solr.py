"""What Solr's module ltr does with uploaded files, restated from its sources: checks of types, and scores."""

import json

import numpy as np

f = np.float32

FEATURES = "org.apache.solr.ltr.feature."
PARAMS = {
    "SolrFeature": {"q", "fq", "df"},
    "FieldValueFeature": {"field"},
    "FieldLengthFeature": {"field"},
    "OriginalScoreFeature": set(),
    "ValueFeature": {"value", "required"},
}
NORMALIZERS = {
    "org.apache.solr.ltr.norm.MinMaxNormalizer": ("min", "max"),
    "org.apache.solr.ltr.norm.StandardNormalizer": ("avg", "std"),
}


class RefusedError(Exception):
    """The search engine would not take this."""


def require(condition, message):
    if not condition:
        raise RefusedError(message)


def number(text):
    """A number that Solr takes as a text."""
    require(isinstance(text, str), f"{text!r} is no string")
    return f(float(text))


class SolrModel:
    """A model over a feature store, both as JSON texts."""

    def __init__(self, store, model):
        store = json.loads(store)
        self.defaults = {}
        for feature in store if isinstance(store, list) else [store]:
            require(set(feature) <= {"store", "name", "class", "params"}, "unknown key")
            require(feature["class"].startswith(FEATURES), "class")
            params = dict(feature["params"])
            default = params.pop("defaultValue", "0.0")
            require(set(params) <= PARAMS[feature["class"].removeprefix(FEATURES)], "unknown parameter")
            require(feature["name"] not in self.defaults, f"{feature['name']} already contained in the store")
            self.defaults[feature["name"]] = f(float(default))
        model = json.loads(model)
        require(set(model) == {"store", "name", "class", "features", "params"}, "unknown key")
        require(model["features"], "no features declared")
        self.names = [feature["name"] for feature in model["features"]]
        require(len(set(self.names)) == len(self.names), "duplicated feature")
        for name in self.names:
            require(name in self.defaults, f"Feature: {name} not found in store: {model['store']}")
        self.norms = {feature["name"]: self.norm(feature) for feature in model["features"]}
        params = model["params"]
        if model["class"] == "org.apache.solr.ltr.model.LinearModel":
            require(set(params) == {"weights"}, "unknown parameter")
            weights = params["weights"]
            require(all(type(weight) in (int, float) for weight in weights.values()), "weights are numbers")
            if missing := [name for name in self.names if name not in weights]:
                raise RefusedError(f"lacks weight(s) for {missing}")
            self.weights = [f(weights[name]) for name in self.names]
        else:
            require(model["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel", "class")
            require(set(params) == {"trees"}, "unknown parameter")
            self.trees, self.weights = params["trees"], None
            for tree in self.trees:
                require(set(tree) == {"weight", "root"}, "a tree has weight and root")
                self.check_node(tree["root"])

    @staticmethod
    def norm(feature):
        require(set(feature) <= {"name", "norm"}, "unknown key")
        if "norm" not in feature:
            return f(0), f(1), True
        first, second = NORMALIZERS[feature["norm"]["class"]]
        params = feature["norm"]["params"]
        require(set(params) == {first, second}, "unknown parameter")
        a, b = number(params[first]), number(params[second])
        if first == "min":
            require(b - a != 0, "MinMax Normalizer delta must not be zero")
            return a, f(b - a), False
        require(b > 0, "Standard Normalizer standard deviation must be positive")
        return a, b, False

    def check_node(self, node):
        if "feature" not in node:
            require(set(node) == {"value"}, "a leaf has a value")
            number(node["value"])
            return
        require(set(node) == {"feature", "threshold", "left", "right"}, "tree node is missing")
        require(node["feature"] in self.names, "the tree would score 0 silently")
        number(node["threshold"])
        self.check_node(node["left"])
        self.check_node(node["right"])

    def score(self, document):
        """The score of a document, a mapping of the names of those features that it has to numbers."""
        values = {}
        for name in self.names:
            a, b, identity = self.norms[name]
            x = f(document.get(name, self.defaults[name]))
            values[name] = x if identity or np.isnan(x) else (x - a) / b
        total = f(0)
        if self.weights is not None:
            for name, weight in zip(self.names, self.weights, strict=True):
                total = f(total + values[name] * weight)
            return total
        for tree in self.trees:
            node = tree["root"]
            while "feature" in node:
                is_left = values[node["feature"]] <= number(node["threshold"]) + f(1e-6)
                node = node["left" if is_left else "right"]
            total = f(total + number(tree["weight"]) * number(node["value"]))
        return total
