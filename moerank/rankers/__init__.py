"""Rankers, which learn to rank with all features or a given subset, and populations of them for the search.

A name is loaded when it is first used. The stub beside this file has a line for each, such as
``from .list_net import ListNet as ListNet``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
