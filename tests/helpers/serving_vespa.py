"""What Vespa does with a rank profile and a model of LightGBM, restated from its documentation and its sources."""

import json
import math
import re

import numpy as np

NUMBER = r"(?<![\w.])\d+(?:\.\d+)?(?:[eE]-?\d+)?(?![\w.])"


class VespaProfile:
    """A rank profile as text, and the models of the application by their file names."""

    def __init__(self, text, models=None):
        self.models = {name: json.loads(content) for name, content in (models or {}).items()}
        head = re.fullmatch(r"rank-profile (\w+) inherits (\w+) \{\n(.*)\}\n", text, re.DOTALL)
        self.name, self.parent, body = head.groups()
        begins = re.finditer(r"^    function (\w+)\(\) *\{", body, re.MULTILINE)
        self.functions = {match[1]: self.expression(body, match.end()) for match in begins}
        assert len(self.functions) == len(re.findall(r"^ *function ", body, re.MULTILINE)), (
            "every function is read, and its name is its own"
        )
        ((self.phase, begin),) = [(match[1], match.end()) for match in re.finditer(r"(first|second)-phase \{", body)]
        self.scored = self.expression(body, begin)
        self.matched = re.search(r"match-features(?:: ([^\n]*)| \{(.*?)\})", body, re.DOTALL)
        self.matched = (self.matched[1] or self.matched[2]).split()
        assert set(self.matched) <= set(self.functions)

    @staticmethod
    def expression(body, begin):
        """The first expression from a place on: the rest of a line behind a colon, or what is in braces."""
        match = re.compile(r"expression(?:: ([^\n]*?) *\}?$| \{(.*?)\n *\})", re.DOTALL | re.MULTILINE).search(
            body, begin
        )
        return (match[1] or match[2]).strip()

    def score(self, features):
        """The score of a document, a mapping of rank features like ``attribute(price)`` to numbers."""
        return self.value(self.scored, features)

    def value(self, expression, features):
        """The value of an expression: in double precision, functions and rank features in it by their names."""
        if match := re.fullmatch(r'lightgbm\("(.*)"\)', expression):
            return self.forest(self.models[match[1]], features)
        names = {"isNan": math.isnan, "choose": lambda condition, yes, no: yes if condition else no}
        text = re.sub(r"\bif *\(", "choose(", expression)
        for number, feature in enumerate(sorted(set(re.findall(r"\b(?:attribute|bm25|query)\(\w+\)", text)))):
            text = text.replace(feature, f"feature{number}")
            names[f"feature{number}"] = features.get(feature, math.nan)
        for name in set(re.findall(r"[A-Za-z_]\w*", re.sub(NUMBER, "", text))) - set(names):
            names[name] = self.value(self.functions[name], features)
        return eval(text.replace("\n", " "), {"__builtins__": {}}, names)

    def forest(self, dump, features):
        """The sum of leaves, as the forest evaluator has it: values, thresholds and leaves in single precision."""
        assert dump["objective"] == "lambdarank"
        assert dump["pandas_categorical"] == []
        values = [np.float32(self.value(name, features)) for name in dump["feature_names"]]
        total = 0.0
        for tree in dump["tree_info"]:
            node = tree["tree_structure"]
            while "left_child" in node:
                assert node["decision_type"] == "<="
                x, threshold = values[node["split_feature"]], np.float32(float(node["threshold"]))
                is_left = not x >= threshold if node["default_left"] else x < threshold
                node = node["left_child" if is_left else "right_child"]
            total += float(np.float32(node["leaf_value"]))
        return total
