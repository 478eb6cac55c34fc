"""The three stages of MOFSRank as pymoo problems."""

from moerank.stages.ensemble import Ensemble
from moerank.stages.feature_selection import FeatureSelection
from moerank.stages.instance_selection import InstanceSelection

__all__ = ["Ensemble", "FeatureSelection", "InstanceSelection"]
