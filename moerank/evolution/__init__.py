"""Evolutionary search beyond pymoo: operators for long bit strings, sparse searches, and a loop that can resume."""

import lazy_loader

from moerank.evolution.search import search as search  # now, because its module has the same name

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
