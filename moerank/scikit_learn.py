"""What moerank takes from scikit-learn when it is imported, without two modules that scikit-learn would load for it."""

import builtins
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_python_import = builtins.__import__
_lazy_pandas = ModuleType("pandas")
vars(_lazy_pandas)["__getattr__"] = lambda name: getattr(import_module("pandas"), name)
_stand_ins = {"scipy.stats": import_module("scipy"), "pandas": _lazy_pandas}


def _import(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> ModuleType:
    """Import a module as Python does, but neither `scipy.stats` nor pandas for ``sklearn.utils.fixes``.

    These two would take longer to load than everything else. That file uses `scipy.stats` only in functions, and SciPy
    loads it there. It does not use pandas; a stand-in loads pandas when somebody asks it for an attribute.
    """
    is_new = name in _stand_ins and name not in sys.modules and not fromlist
    if is_new and (globals or {}).get("__name__") == "sklearn.utils.fixes":
        return _stand_ins[name]
    return _python_import(name, globals, locals, fromlist, level)


builtins.__import__ = _import
try:
    from sklearn.base import BaseEstimator, TransformerMixin, clone
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils.validation import check_is_fitted
finally:
    builtins.__import__ = _python_import

__all__ = ["BaseEstimator", "ConvergenceWarning", "TransformerMixin", "check_is_fitted", "clone"]
