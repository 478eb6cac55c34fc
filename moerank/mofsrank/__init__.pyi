"""MOFSRank: its three stages as pymoo problems, and the estimator that runs them in a row."""

from .ensemble import Ensemble as Ensemble
from .estimator import MOFSRank as MOFSRank
from .feature_selection import FeatureSelection as FeatureSelection
from .instance_selection import InstanceSelection as InstanceSelection
from .settings import Limits as Limits
