"""Rankers, which learn to rank with all features or a given subset, and populations of them for the search."""

import sys
from importlib import _bootstrap, import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import lazy_loader

STATISTICS = "scipy.stats"


def _import_scikit_learn() -> None:
    """Import the base classes of scikit-learn without `scipy.stats`, which takes half a second, if both are new.

    ``sklearn.utils.fixes`` imports it and uses it only in functions. Meanwhile a placeholder stands for it, which loads
    the real module if anything of it is asked for. Threads that import it wait, because the locks of the imports and
    the mark of an import under way are those of Python itself.
    """
    lock = getattr(_bootstrap, "_ModuleLockManager", None)
    if lock is None:  # in a Python of the future
        return
    placeholder = ModuleType(STATISTICS)

    def load(name: str) -> Any:
        if sys.modules.get(STATISTICS) is placeholder:
            del sys.modules[STATISTICS]
        return getattr(import_module(STATISTICS), name)

    placeholder.__getattr__, placeholder.__spec__ = load, SimpleNamespace(_initializing=True)
    with lock("sklearn"), lock(STATISTICS):
        if not {"sklearn", STATISTICS} & set(sys.modules):
            sys.modules[STATISTICS] = placeholder
            try:
                import_module("sklearn.base")
            finally:
                if sys.modules.get(STATISTICS) is placeholder:
                    del sys.modules[STATISTICS]


_import_scikit_learn()
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
