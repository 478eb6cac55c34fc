"""MOFSRank: its three stages as pymoo problems, and the estimator that runs them in a row."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
