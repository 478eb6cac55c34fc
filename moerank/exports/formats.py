"""Formats of exports, and the function `export`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from moerank.checks import check_at_least, check_choice
from moerank.files import open_regular, prepare_folder, replace_file
from moerank.solvers import plugins

if TYPE_CHECKING:
    from moerank.exports.deployable import Deployable, Deployment
    from moerank.rankers.model import Model


@dataclass(frozen=True)
class Format:
    """A format of exports.

    Attributes
    ----------
    file : str
        Default name of the model's file; {} stands for the name of the model.
    writer : callable or str
        ``writer(deployable, path)`` returns a `Deployment` whose model is the file `path`. A string
        "package.module:function" is imported at first use.
    """

    file: str
    writer: Callable[[Deployable, Path], Deployment] | str


FORMATS: Mapping[str, Format] = {
    "solr": Format("solr.json", "moerank.exports.solr:solr"),
    "elasticsearch": Format("elasticsearch.json", "moerank.exports.elasticsearch:elasticsearch"),
    "opensearch": Format("opensearch.json", "moerank.exports.elasticsearch:opensearch"),
    "vespa": Format("{}.profile", "moerank.exports.vespa:vespa"),
    "onnx": Format("ranker.onnx", "moerank.exports.onnx:onnx_graph"),
    "python": Format("score.py", "moerank.exports.python:python"),
    "json": Format("ranker.json", "moerank.exports.json:plain_json"),
}
"""The package's own formats. Installed packages add others as entry points ``moerank.exports``."""


def find_format(name: str) -> Format:
    """Return a format of this package or of another installed one; an unknown name is a ValueError."""
    formats = {**plugins("moerank.exports", Format), **FORMATS}
    check_choice(formats, format=name)
    return formats[name]


def export(
    ranker: object,
    format: str,
    out: str | Path | None = None,
    *,
    member: int | None = None,
    name: str = "moerank",
    features: str | Path | Mapping[str, object] | None = None,
) -> Deployment:
    """Write a ranker in the format of another system, which then computes the same scores.

    Parameters
    ----------
    ranker : Model, or fitted estimator
        A ranker, a selector or `MOFSRank`.
    format : str
        "solr", "elasticsearch" (its plugin), "opensearch", "vespa", "onnx", "python", "json", or a format of an
        installed package.
    out : path, optional
        The file of the model; by default one named after the format in the current folder. Some formats write a second
        file in its folder.
    member : int, optional
        A row of ``ranker.front_``, from 0; by default the chosen one.
    name : str, default "moerank"
        Name of the model in the other system: lower-case letters, digits and _.
    features : path or mapping, optional
        A TOML file, or a mapping like it, with a table for each described feature: its ``name`` in the other system,
        and its definition for ``solr`` (class and params), ``elasticsearch`` (params and template, also
        for "opensearch") or ``vespa`` (an expression). A feature without a description is a field of the same name,
        with _ in place of all characters but ASCII letters and digits.

    Returns
    -------
    Deployment
        ``print(export(…).next_step)`` says how to upload the files and what to check.

    Raises
    ------
    ValueError
        If other systems cannot compute the ranker document by document, if a name is invalid or taken twice, if the
        format cannot hold a number, if a feature of a search engine has values that the engine refuses, or if a file
        exists with other content.
    OSError
        If a file cannot be read or written.
    ImportError
        For ONNX without the package onnx.

    Examples
    --------
    >>> import json, tempfile
    >>> from moerank.rankers import RankRLS
    >>> ranker = RankRLS(alpha=0.5).fit([[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]], y=[0, 1, 2], qid=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = export(ranker, "solr", f"{folder}/solr.json").files
    ...     print(*sorted(path.name for path in files))
    solr-features.json solr.json
    """
    from moerank.exports.deployable import deployable, read_features

    target = find_format(format)
    path = Path(target.file.format(name) if out is None else out)
    writer = resolve_name(target.writer) if isinstance(target.writer, str) else target.writer
    deployment = writer(deployable(_model_of(ranker, member), name, read_features(features)), path)
    _write(deployment)
    return deployment


def _model_of(solver: Any, member: int | None) -> Model:
    """Return a model as it is, or make that of a fitted estimator or of a member of its front."""
    from moerank.rankers.model import Model

    if isinstance(solver, Model):
        return solver
    if not hasattr(solver, "support_"):
        raise ValueError(f"{type(solver).__name__} is not fitted: call fit first")
    if member is not None:
        if not hasattr(solver, "front_support_"):
            raise ValueError(f"{type(solver).__name__} has no front with members to export")
        check_at_least(0, len(solver.front_support_) - 1, member=member)
        solver = copy.copy(solver)
        solver.support_ = solver.front_support_[member]
        solver.chosen_ = member  # the trees are those of the chosen one
        if solver.front_coefs_ is not None:
            solver.coef_ = solver.front_coefs_[member]
    names = getattr(solver, "feature_names_in_", range(1, len(solver.support_) + 1))
    return Model.of(solver, [str(name) for name in names])


def _write(deployment: Deployment) -> None:
    """Write each file atomically, the model last; a file that exists with other content is a ValueError."""
    for path, content in deployment.files.items():
        with suppress(FileNotFoundError, NotADirectoryError), open_regular(path) as file:
            if file.read(len(content) + 1) != content:
                raise ValueError(
                    f"{path} exists with other content; "
                    "remove it, or choose another file with --out"
                )
    for path, content in deployment.files.items():
        prepare_folder(path.parent)
        replace_file(path, content)
