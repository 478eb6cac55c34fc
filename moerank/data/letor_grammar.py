"""What is wrong with a line of a LETOR file, in words: the grammar of a document, and the first part that breaks it."""

from __future__ import annotations

import re
from itertools import pairwise
from unicodedata import category

__all__ = ["LARGEST_FEATURE", "LONGEST_ID", "missing_remedy", "refusal", "wrong_document", "wrong_id"]

LARGEST_FEATURE = 10_000
"""The largest feature number a file may hold unless `n_features` allows more: a misprint must not fill the memory."""

LONGEST_ID = 100
"""Characters of a query id, at most: every document holds one."""

_LABEL = rb"[0-9]{1,9}(?:\.0*)?"
_FEATURE = rb"[0-9]{1,9}"
_NUMBER = rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NULL = rb"(?i:null|nan)"
_FEATURE_NUMBERS = re.compile(rb"[ \t]([0-9]+):")


def refusal(path: object, number: int, line: bytes, reason: str) -> ValueError:
    """Return the error that names a line by path, number and text."""
    return ValueError(f"{path}, line {number}: {reason}: {_shortened(line, 100)!r}")


def wrong_document(
    document: bytes, *, n_features: int | None, nulls: bool, with_queries: bool, side_file: str | None
) -> str | None:
    """Name the first part of a line that does not have the form of a document; None if there is none.

    Parameters
    ----------
    document : bytes
        The line without its comment.
    n_features : int, optional
        The largest feature number that is allowed, if it is not LARGEST_FEATURE.
    nulls : bool
        Whether values may be missing.
    with_queries : bool
        Whether the line has a query id.
    side_file : str, optional
        The file that holds the queries, where they are not in the lines.
    """
    label, *rest = re.split(rb"[ \t]+", document.strip(b" \t"))
    if not re.fullmatch(_LABEL, label):
        return f"the label {_quoted(label)} is not an integer from 0 (irrelevant) to 999,999,999"
    has_id = bool(rest) and rest[0].startswith(b"qid:")
    if with_queries:
        if not has_id:
            return (
                "no query id after the label; expected 'label qid:Q 1:v 2:v …', or a file .query beside this one with "
                "the number of documents of each query"
            )
        reason = wrong_id(rest[0][4:])
        if reason:
            return reason
        rest = rest[1:]
    elif has_id:
        return f"the line has a query id, but {side_file} gives the queries, too; remove one of the two"
    form = b"%b:(?:%b)" % (_FEATURE, _NUMBER + b"|" + _NULL if nulls else _NUMBER)
    for token in rest:
        if not re.fullmatch(form, token):
            return _wrong_token(token, n_features)
    return _wrong_features([int(feature) for feature in _FEATURE_NUMBERS.findall(document)], n_features)


def wrong_id(raw: bytes) -> str | None:
    """Say what is wrong with the bytes of a query id, if anything."""
    if not raw:
        return "the query id '' is empty"
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return f"the query id {_quoted(raw)} is not a text in UTF-8"
    if any(sign.isspace() or category(sign) == "Cc" for sign in text):
        return f"the query id {_quoted(raw)} holds a space or a control character"
    if len(text) > LONGEST_ID:
        return f"the query id {_quoted(raw)} is longer than {LONGEST_ID} characters"
    return None


def missing_remedy(feature: object) -> str:
    """Return the refusal of a value that is missing, with the rules that would fill it."""
    return (
        f"the value of feature {feature} is missing (NULL); pass missing=, the number it becomes, or 'query-min', "
        "'query-mean' or 'query-worst' (in a problem file: missing in [data])"
    )


def _wrong_token(token: bytes, n_features: int | None) -> str:
    feature, colon, value = token.partition(b":")
    if not colon or not re.fullmatch(rb"[0-9]+", feature):
        return f"{_quoted(token)} is not of the form feature:value, as in 12:0.5"
    if not re.fullmatch(_FEATURE, feature):
        return _beyond_limit(_shortened(feature), n_features)
    if value.upper() == b"NULL":
        return missing_remedy(feature.decode())
    return f"the value {_quoted(value)} of feature {feature.decode()} is not a finite number"


def _wrong_features(features: list[int], n_features: int | None) -> str | None:
    """Say what is wrong with the feature numbers of one line, if anything."""
    if features and features[0] == 0:
        return "feature number 0; feature numbers start at 1, so add 1 to all of them"
    for feature, following in pairwise(features):
        if feature == following:
            return f"feature {feature} is listed twice"
        if feature > following:
            return f"feature {following} follows feature {feature}; list the features in increasing order"
    if features and features[-1] > (n_features or LARGEST_FEATURE):
        return _beyond_limit(str(features[-1]), n_features)
    return None


def _beyond_limit(feature: str, n_features: int | None) -> str:
    if n_features is not None:
        return f"feature {feature} is beyond n_features={n_features}"
    return (
        f"feature {feature} is beyond the limit of {LARGEST_FEATURE:,} features; number the features without gaps, "
        "or pass n_features if so many are meant"
    )


def _shortened(part: bytes, length: int = 30) -> str:
    text = part.decode("utf-8", "backslashreplace")
    return text if len(text) <= length else text[: length - 1] + "…"


def _quoted(part: bytes) -> str:
    return repr(_shortened(part))
