"""The three stages of MOFSRank as pymoo problems."""

from moerank.stages.ensemble import Ensemble as Ensemble
from moerank.stages.feature_selection import FeatureSelection as FeatureSelection
from moerank.stages.feature_strings import FeatureLimits as FeatureLimits
from moerank.stages.instance_selection import InstanceSelection as InstanceSelection
