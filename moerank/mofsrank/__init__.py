"""MOFSRank: its three stages as pymoo problems, and the estimator that runs them in a row."""

from moerank.mofsrank.ensemble import Ensemble as Ensemble
from moerank.mofsrank.estimator import MOFSRank as MOFSRank
from moerank.mofsrank.feature_selection import FeatureSelection as FeatureSelection
from moerank.mofsrank.instance_selection import InstanceSelection as InstanceSelection
from moerank.mofsrank.settings import Limits as Limits
