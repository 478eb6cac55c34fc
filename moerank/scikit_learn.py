"""What moerank takes from scikit-learn when it is imported, without two modules that scikit-learn would load for it."""

import builtins
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_own = builtins.__import__
_later = ModuleType("pandas")
vars(_later)["__getattr__"] = lambda name: getattr(import_module("pandas"), name)
_instead = {"scipy.stats": import_module("scipy"), "pandas": _later}


def _import(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> ModuleType:
    """Import a module as Python does, but neither `scipy.stats` nor pandas for ``sklearn.utils.fixes``.

    They would take longer than all else together. That file uses the first only in functions, where SciPy loads it, and
    the second nowhere; a module that loads pandas when it is asked for anything stands for it.
    """
    new = name in _instead and name not in sys.modules and not fromlist
    if new and (globals or {}).get("__name__") == "sklearn.utils.fixes":
        return _instead[name]
    return _own(name, globals, locals, fromlist, level)


builtins.__import__ = _import
try:
    from sklearn.base import BaseEstimator, TransformerMixin, clone
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils.validation import check_is_fitted
finally:
    builtins.__import__ = _own

__all__ = ["BaseEstimator", "ConvergenceWarning", "TransformerMixin", "check_is_fitted", "clone"]
