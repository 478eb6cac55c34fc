"""What Elasticsearch's own learning to rank does with an uploaded model, restated from its sources."""

import json

import numpy as np

from helpers.serving_elasticsearch import is_number
from helpers.serving_solr import require


class ElasticModel:
    """A trained model as JSON text, for a version of the engine."""

    def __init__(self, text, version=(8, 15)):
        model = json.loads(text)
        fields = {"input"} if version < (8, 15) else set()
        require(set(model) == {"description", "inference_config", "definition"} | fields, "input.field_names")
        config = model["inference_config"]["learning_to_rank"]
        extractors = [entry["query_extractor"] for entry in config["feature_extractors"]]
        self.queries = {entry["feature_name"]: entry["query"] for entry in extractors}
        require(len(self.queries) == len(extractors), "contains duplicate [feature_name] values")
        ensemble = model["definition"]["trained_model"]["ensemble"]
        require(ensemble["aggregate_output"] == {"weighted_sum": {}}, "aggregate_output")
        self.names = ensemble["feature_names"]
        require(not fields or model["input"] == {"field_names": self.names}, "input.field_names")
        require(set(self.names) == set(self.queries), "every feature has a query")
        self.trees = []
        for entry in ensemble["trained_models"]:
            require(entry["tree"]["feature_names"] == self.names, "feature_names")
            require(ensemble["target_type"] == entry["tree"]["target_type"] == "regression", "target_type")
            self.trees.append(entry["tree"]["tree_structure"])
            for place, node in enumerate(self.trees[-1]):
                require(node["node_index"] == place, "nodes are found by their place")
                require("leaf_value" in node or is_number(node["threshold"]), "threshold")

    @staticmethod
    def value(query, fields):
        """The score of a query over a field of a document, None where it does not match."""
        if "match" in query:
            return fields.get(query["match"]["field"])
        scored = query["script_score"]
        field = scored["query"]["exists"]["field"]
        require(scored["script"] == {"source": f"return doc['{field}'].value;"}, "script")
        require(fields.get(field, 0) >= 0, "script_score script returned an invalid score")
        return fields.get(field)

    def score(self, fields):
        """The score of a document, a mapping of its fields to numbers."""
        found = [self.value(self.queries[name], fields) for name in self.names]
        values = [np.nan if x is None else float(np.float32(x)) for x in found]
        total = 0.0
        for tree in self.trees:
            node = tree[0]
            while "leaf_value" not in node:
                x = values[node["split_feature"]]
                compare = {"lte": x <= node["threshold"], "lt": x < node["threshold"]}
                is_left = node["default_left"] if np.isnan(x) else compare[node["decision_type"]]
                node = tree[node["left_child" if is_left else "right_child"]]
            total += node["leaf_value"]
        return float(np.float32(total))
