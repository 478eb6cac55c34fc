"""A copy of a result, a member, a model or a dataclass in which some fields have other values."""

import dataclasses


def replace(value, **changes):
    """Return the copy; nothing is checked."""
    return value.model_copy(update=changes) if hasattr(value, "model_copy") else dataclasses.replace(value, **changes)
