"""What moerank takes from scikit-learn when it is imported, without two modules that scikit-learn would load for it."""

import builtins
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


@contextmanager
def _without_slow_modules() -> Iterator[None]:
    """Keep ``sklearn.utils.fixes`` from loading `scipy.stats` and pandas, which takes longer than all else together.

    It uses the first only in functions, where SciPy loads it, and the second nowhere; a module that loads pandas when
    it is asked for anything stands for it. All other imports, in this and other threads, are Python's own.
    """
    own = builtins.__import__
    later = ModuleType("pandas")
    vars(later)["__getattr__"] = lambda name: getattr(import_module("pandas"), name)

    def without(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> ModuleType:
        if not fromlist and name not in sys.modules and globals and globals.get("__name__") == "sklearn.utils.fixes":
            if name == "scipy.stats":
                return own("scipy")
            if name == "pandas":
                return later
        return own(name, globals, locals, fromlist, level)

    builtins.__import__ = without
    try:
        yield
    finally:
        builtins.__import__ = own


with _without_slow_modules():
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import OneToOneFeatureMixin as OneToOneFeatureMixin
    from sklearn.base import TransformerMixin as TransformerMixin
    from sklearn.base import clone as clone
    from sklearn.exceptions import ConvergenceWarning as ConvergenceWarning
    from sklearn.utils import _safe_indexing as _safe_indexing
    from sklearn.utils.parallel import Parallel as Parallel
    from sklearn.utils.parallel import delayed as delayed
    from sklearn.utils.validation import _check_feature_names_in as _check_feature_names_in
    from sklearn.utils.validation import check_is_fitted as check_is_fitted
