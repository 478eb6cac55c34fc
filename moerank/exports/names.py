"""What a feature is in another system: its name by one rule, or by the table of a file that says more of it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, TypeAdapter, ValidationError

from moerank.checks import first_mistake
from moerank.files import read_text

__all__ = [
    "SolrFeature",
    "TargetFeature",
    "TemplateFeature",
    "check_name",
    "names_there",
    "plain_name",
    "read_features",
]

MOST_BYTES = 2**24
"""Of a file of features."""

NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"

Name = Annotated[str, StringConstraints(pattern=NAME)]
Line = Annotated[str, StringConstraints(pattern=r"^[^\r\n]*\S[^\r\n]*$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SolrFeature(_Table):
    """A feature of Solr: the name of its class, that of the package left out or not, and its parameters."""

    class_: Annotated[Line, Field(alias="class")]
    params: dict[str, JsonValue] = Field(default_factory=dict)


class TemplateFeature(_Table):
    """A feature of Elasticsearch's plugin and OpenSearch's: a query whose score it is, and what that asks for."""

    template: dict[str, JsonValue] | Line
    params: tuple[str, ...] = ()
    template_language: Line = "mustache"


class TargetFeature(_Table):
    """What a file says of a feature.

    Attributes
    ----------
    name : str, optional
        Its name there: letters, digits and _ of ASCII, no digit first.
    solr : SolrFeature, optional
    elasticsearch : TemplateFeature, optional
        For OpenSearch, too.
    vespa : str, optional
        A ranking expression, as ``bm25(title)``.
    """

    name: Name | None = None
    solr: SolrFeature | None = None
    elasticsearch: TemplateFeature | None = None
    vespa: Line | None = None


_FEATURES = TypeAdapter(dict[str, TargetFeature])


def read_features(features: str | Path | Mapping[str, Any] | None) -> dict[str, TargetFeature]:
    """Read what a TOML file, or a mapping of the same content, says of features: a table each, by their names.

    Raises
    ------
    ValueError
        If it is no TOML file, or holds something else.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> read_features({"BM25 of the title": {"name": "bm25", "vespa": "bm25(title)"}})["BM25 of the title"].vespa
    'bm25(title)'
    """
    where, values = "features", features
    if isinstance(features, str | Path):
        where = str(features)
        try:
            values = tomllib.loads(read_text(Path(features), MOST_BYTES))
        except RecursionError:
            raise ValueError(f"{where}: not a TOML file: nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"{where}: not a TOML file: {error}") from None
    try:
        return _FEATURES.validate_python({} if values is None else values)
    except ValidationError as error:
        raise ValueError(f"{where}: {first_mistake(error)}") from None


def plain_name(name: str) -> str:
    """Return a name that every system can hold.

    What is no letter, digit or _ of ASCII becomes _, and f goes before a first digit, and into an empty name.

    Examples
    --------
    >>> plain_name("BM25 of title.en"), plain_name("46"), plain_name("")
    ('BM25_of_title_en', 'f46', 'f')
    """
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if re.match(NAME, plain) else f"f{plain}"


def names_there(names: Sequence[str], given: Sequence[str | None]) -> tuple[str, ...]:
    """Return the names of features in a search engine: those that are given, else plain ones.

    Raises
    ------
    ValueError
        If two of them are the same.
    """
    there: dict[str, str] = {}
    for name, told in zip(names, given, strict=True):
        plain = told or plain_name(name)
        if plain in there:
            raise ValueError(
                f"the features {there[plain]!r} and {name!r} are both called {plain!r} there; name one of them in a "
                f'file, as ["{_basic(name)}"] with name = "{plain}_2", and give it by --features'
            )
        there[plain] = name
    return tuple(there)


def check_name(name: str) -> None:
    """Raise a ValueError for what cannot name a model: small letters, digits and _ are taken, a letter first."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"name must be of small letters, digits and _, a letter first, not {name!r}")


def _basic(name: str) -> str:
    """Return a name as TOML writes it between quotation marks."""
    return "".join(
        f"\\{sign}" if sign in '"\\' else f"\\u{ord(sign):04x}" if sign < " " or sign == "\x7f" else sign
        for sign in name
    )
