"""What moerank takes from scikit-learn when it is imported, without two modules that scikit-learn would load for it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import _bootstrap, import_module
from types import ModuleType, SimpleNamespace
from typing import Any

SLOW = ("scipy.stats", "pandas")


def _stand_in(slow: str) -> ModuleType:
    """Return a module that loads the real one if anything of it is asked for."""
    module = ModuleType(slow)

    def load(name: str) -> Any:
        if sys.modules.get(slow) is module:
            del sys.modules[slow]
        return getattr(import_module(slow), name)

    vars(module).update(__getattr__=load, __spec__=SimpleNamespace(_initializing=True))
    return module


@contextmanager
def _without_slow_modules() -> Iterator[None]:
    """Import scikit-learn for the first time without those modules in `SLOW` that are new.

    ``sklearn.utils.fixes`` imports them, which takes longer than all else, and uses them only in functions, if at all.
    Meanwhile other modules stand in for them. Threads that import one of them wait, because the locks of the imports
    and the mark of an import under way are those of Python itself.
    """
    lock = getattr(_bootstrap, "_ModuleLockManager", None)
    if lock is None:  # in a Python of the future
        yield
        return
    with lock("sklearn"), lock(SLOW[0]), lock(SLOW[1]):
        new = set(SLOW).difference(sys.modules) if "sklearn" not in sys.modules else ()
        stand_ins = {name: _stand_in(name) for name in new}
        sys.modules.update(stand_ins)
        try:
            yield
        finally:
            for name, module in stand_ins.items():
                if sys.modules.get(name) is module:
                    del sys.modules[name]


with _without_slow_modules():
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import _safe_indexing
    from sklearn.utils.parallel import Parallel, delayed
    from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

__all__ = [
    "BaseEstimator",
    "ConvergenceWarning",
    "OneToOneFeatureMixin",
    "Parallel",
    "TransformerMixin",
    "_check_feature_names_in",
    "_safe_indexing",
    "check_is_fitted",
    "clone",
    "delayed",
]
