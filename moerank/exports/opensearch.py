"""OpenSearch's plugin for learning to rank, which reads the files of Elasticsearch's, with one difference in trees."""

from __future__ import annotations

from pathlib import Path

from moerank.exports.deployable import Deployable, Deployment
from moerank.exports.elasticsearch import plugin_files

__all__ = ["opensearch"]


def opensearch(ranker: Deployable, path: Path) -> Deployment:
    """Write a model in the format of OpenSearch's plugin, and its feature set beside it.

    Up to version 3.7 a value that is absent goes right in every tree, whatever the split says. The queries written
    here always have a value, unless what is missing counts as less than 0.

    Parameters
    ----------
    ranker : Deployable
    path : Path
        Of the model; the features go to the same name with ``-features``.

    Raises
    ------
    ValueError
        As `elasticsearch` does.

    Examples
    --------
    >>> from moerank.exports.deployable import deployable
    >>> from moerank.rankers.model import Model
    >>> model = deployable(Model(names=("price",), columns=(0,), weights=(-0.5,)), "moerank", {})
    >>> sorted(path.name for path in opensearch(model, Path("os.json")).files)
    ['os-features.json', 'os.json']
    """
    remarks = []
    if ranker.trees is not None and (ranker.absent < 0 or any(known.elasticsearch for known in ranker.features)):
        remarks.append(
            "Before OpenSearch 3.8 a feature whose query does not match goes right in every tree: take 3.8 or later."
        )
    return plugin_files(ranker, path, "OpenSearch with the plugin opensearch-learning-to-rank-base", *remarks)
