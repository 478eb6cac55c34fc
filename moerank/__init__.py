"""moerank: feature selection for learning to rank by evolutionary multi-objective optimisation.

Everything public is here, and loaded when it is first used: ``import moerank as mr`` takes no time, ``mr.MOFSRank``
loads what it needs. The names are those of ``__init__.pyi``.
"""

import logging

import lazy_loader

from moerank.version import VERSION

__version__ = VERSION

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless the application asks for messages

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_names, "__version__"]
