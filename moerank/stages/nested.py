"""The settings of MOFSRank's stages as scikit-learn knows parameters of parameters: ``ensemble__generations``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moerank.checks import unknown
from moerank.stages.settings import KINDS, StageSettings

__all__ = ["listed_settings", "merged_settings"]


def listed_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of all stages by their nested names, those that were not given with their defaults.

    Parameters
    ----------
    parameters : mapping
        Those of MOFSRank. A stage that is left out has no settings.

    Examples
    --------
    >>> stages = {"instance_selection": False, "feature_selection": {"generations": 5}, "ensemble": False}
    >>> {name: value for name, value in listed_settings(stages).items() if "generations" in name}
    {'feature_selection__generations': 5}
    """
    return {
        f"{stage}__{key}": value
        for stage, kind in KINDS.items()
        if parameters[stage] is not False
        for key, value in {**_defaults(kind), **_given(parameters[stage])}.items()
    }


def merged_settings(parameters: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes of parameters in which those of a stage's settings have become one new mapping for the stage.

    Parameters
    ----------
    parameters : mapping
        Those of MOFSRank as they are.
    changes : mapping
        What ``set_params`` was given: parameters, and settings by their nested names.

    Raises
    ------
    ValueError
        For an unknown setting, the nearest one being suggested, for settings of a stage that is left out, and for
        parameters of a backend or another object that is None.

    Examples
    --------
    >>> merged_settings({"ensemble": {"population": 50}}, {"ensemble__generations": 5, "final": "knee"})
    {'final': 'knee', 'ensemble': {'population': 50, 'generations': 5}}
    """
    merged = {name: value for name, value in changes.items() if name.partition("__")[0] not in KINDS or name in KINDS}
    for name, value in changes.items():
        stage, _, key = name.partition("__")
        if key and merged.get(stage, parameters.get(stage, ())) is None:
            raise ValueError(f"{name}: {stage} is None, and so has no parameters of its own; set {stage} itself")
        if stage not in KINDS or not key:
            continue
        known, whole = _defaults(KINDS[stage]), merged.get(stage, parameters.get(stage))
        if key not in known:
            raise ValueError(unknown(f"setting of {stage}", key, known))
        if whole is False:
            raise ValueError(
                f"{name}: the stage is left out ({stage}=False), and has no settings; set {stage}=True, too"
            )
        merged[stage] = {**_given(whole), key: value}
    return merged


def _given(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _defaults(kind: type[StageSettings]) -> dict[str, Any]:
    """Return the keys of a stage's mapping with what each is if it is not given."""
    return {**{key: field.default for key, field in kind.model_fields.items()}, "termination": None, "initial": None}
