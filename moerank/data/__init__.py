"""Ranking data: documents and their preference pairs, readers of files, and embedded problems."""

import lazy_loader

from moerank.data.describe import describe as describe  # now, because its module has the same name

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
