"""The formats of other systems, and the export of a ranker in one of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moerank.checks import check_at_least, unknown
from moerank.exports.deployable import Deployable, Deployment, deployable, read_features
from moerank.exports.elasticsearch import elasticsearch, opensearch
from moerank.exports.json import plain_json
from moerank.exports.onnx import onnx_graph
from moerank.exports.python import python
from moerank.exports.solr import solr
from moerank.exports.vespa import vespa
from moerank.files import prepare_folder, remove_old_remains, replace_file
from moerank.rankers.model import Model
from moerank.systems import open_regular

__all__ = ["FORMATS", "Format", "export"]


@dataclass(frozen=True)
class Format:
    """A format.

    Attributes
    ----------
    write : callable
        Makes the files of a `Deployable`, given the path of the first.
    file : str
        Its name where none is asked for; {} stands for the name of the model.
    """

    write: Callable[[Deployable, Path], Deployment]
    file: str


FORMATS: Mapping[str, Format] = {
    "solr": Format(solr, "solr.json"),
    "elasticsearch": Format(elasticsearch, "elasticsearch.json"),
    "opensearch": Format(opensearch, "opensearch.json"),
    "vespa": Format(vespa, "{}.profile"),
    "onnx": Format(onnx_graph, "ranker.onnx"),
    "python": Format(python, "score.py"),
    "json": Format(plain_json, "ranker.json"),
}


def export(
    ranker: Any,
    format: str,
    out: str | Path | None = None,
    *,
    member: int | None = None,
    name: str = "moerank",
    features: str | Path | Mapping[str, Any] | None = None,
) -> Deployment:
    """Write a ranker in the format of another system, which then scores documents as it does.

    Parameters
    ----------
    ranker : Model, or fitted estimator
        A ranker, a selector or `MOFSRank`.
    format : {"solr", "elasticsearch", "opensearch", "vespa", "onnx", "python", "json"}
    out : path, optional
        The file of the model; by default one named after the format in the current folder. Some formats have a second
        file, beside it.
    member : int, optional
        A row of ``ranker.front_``, from 0; by default the chosen one.
    name : str, default "moerank"
        What the model is called there: small letters, digits and _.
    features : path or mapping, optional
        A TOML file, or a mapping like it, with a table for each feature of which something is known: its ``name``
        there, and what it is for ``solr`` (class and params), ``elasticsearch`` (params and template) or ``vespa`` (an
        expression). Without it a feature is a field of the same name, in which _ stands for whatever is no letter or
        digit of ASCII.

    Returns
    -------
    Deployment
        ``print(export(…).next_step)`` says how to upload the files, and what to check.

    Raises
    ------
    ValueError
        For a ranker that no other system can compute document by document, a name that is not possible there, two
        features of one name, a number that the format cannot hold, and a file that holds something else already.
    OSError
        If a file cannot be read or written.
    ImportError
        For ONNX without the package onnx.

    Notes
    -----
    O(n_features), or O(number of leaves).

    Examples
    --------
    >>> import json, tempfile
    >>> from moerank.rankers import RankRLS
    >>> ranker = RankRLS(alpha=0.5).fit([[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]], y=[0, 1, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = export(ranker, "solr", f"{folder}/solr.json").files
    ...     print(*sorted(path.name for path in files))
    solr-features.json solr.json
    """
    if format not in FORMATS:
        raise ValueError(unknown("format", format, FORMATS))
    known = read_features(features)
    model = ranker if isinstance(ranker, Model) else _model_of(ranker, member)
    path = Path(FORMATS[format].file.format(name) if out is None else out)
    deployment = FORMATS[format].write(deployable(model, name, known), path)
    _write(deployment)
    return deployment


def _model_of(solver: Any, member: int | None) -> Model:
    """Return the model of a fitted estimator, or of a member of its front."""
    if not hasattr(solver, "support_"):
        raise ValueError(f"{type(solver).__name__} is not fitted: call fit first")
    if member is not None:
        if not hasattr(solver, "front_support_"):
            raise ValueError(f"{type(solver).__name__} has no front whose member could be exported")
        check_at_least(0, len(solver.front_support_) - 1, member=member)
        solver = copy.copy(solver)
        solver.support_, solver.chosen_ = solver.front_support_[member], member  # the trees are those of the chosen one
        if solver.front_coefs_ is not None:
            solver.coef_ = solver.front_coefs_[member]
    names = getattr(solver, "feature_names_in_", range(1, len(solver.support_) + 1))
    return Model.of(solver, [str(name) for name in names])


def _write(deployment: Deployment) -> None:
    """Write the files, each at one stroke, and the model last.

    Raises
    ------
    ValueError
        If one of them holds something else already.
    OSError
        If one cannot be written.
    """
    for path, content in deployment.files.items():
        try:
            with open_regular(path, through_links=True) as file:
                there = file.read(len(content) + 1)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if there != content:
            raise ValueError(f"{path} is there and holds something else; remove it, or choose another file with --out")
    for path, content in deployment.files.items():
        prepare_folder(path.parent)
        remove_old_remains(path)
        replace_file(path, content)
