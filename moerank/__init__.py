"""moerank: feature selection for learning to rank by evolutionary multi-objective optimisation.

All public names are here, and each is loaded on first use: ``import moerank as mr`` takes no time, and ``mr.MOFSRank``
loads what it needs. ``__init__.pyi`` lists the names.
"""

import logging

import lazy_loader

from moerank.version import VERSION

__version__ = VERSION

logging.getLogger(__name__).addHandler(
    logging.NullHandler()
)  # silent unless the application asks for messages

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_names, "__version__"]
