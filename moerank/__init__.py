"""moerank: feature selection for learning to rank by evolutionary multi-objective optimisation.

All public names are here, and each is loaded on first use: ``import moerank as mr`` takes no time, and ``mr.MOFSRank``
loads what it needs. ``__init__.pyi`` lists the names.
"""

import gc
import logging
from typing import Any

import lazy_loader

from moerank.version import VERSION

__version__ = VERSION

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless the application asks for messages

_load, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_names, "__version__"]


def __getattr__(name: str) -> Any:
    """Return a public name, loaded without the garbage collector, which would search all new modules again and again.

    Of threads that load names at once, those that found the collector on leave it on.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        value = globals()[name] = _load(name)  # so that each name comes here once
        if not gc.get_freeze_count():  # objects that others have frozen stay frozen
            gc.freeze()
            gc.unfreeze()  # to the oldest generation, else the next collection would search all of it
        return value
    finally:
        if was_on:
            gc.enable()
