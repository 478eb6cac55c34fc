"""moerank: feature selection for learning to rank by evolutionary multi-objective optimisation.

All public names are here, and each is loaded on first use: ``import moerank as mr`` takes no time, and ``mr.MOFSRank``
loads what it needs. ``__init__.pyi`` lists the names.
"""

import gc
import logging

import lazy_loader

from moerank.version import VERSION

__version__ = VERSION

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless the application asks for messages

_load, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_names, "__version__"]


def __getattr__(name: str) -> object:
    """Load a public name, without the garbage collections that would cost an eighth of the time of the imports."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return _load(name)
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # both together move all objects to the oldest generation, which is seldom visited
        if collects:
            gc.enable()
