"""Rankers, which learn to rank with all features or a given subset, and populations of them for the search."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
