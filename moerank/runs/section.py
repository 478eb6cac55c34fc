"""A table of a problem file, as every reader of such files understands it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict

from moerank.runs.solver_spec import check_parameters

__all__ = ["Parameters", "Section"]


class Section(BaseModel):
    """A table of a problem file: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _checked(parameters: dict[str, Any]) -> dict[str, Any]:
    check_parameters(parameters)
    return parameters


Parameters = Annotated[dict[str, Any], AfterValidator(_checked)]
