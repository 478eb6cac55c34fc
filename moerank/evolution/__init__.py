"""What the evolutionary search needs beyond pymoo: operators for long bit strings and a loop that can resume."""

from moerank.evolution.adaptive import AdaptiveBitFlip, importance_degrees, redundancy_degrees
from moerank.evolution.binary import (
    DensitySampling,
    OnePointCrossover,
    SparseBitFlip,
    SubsetSizeSampling,
    UniformCrossover,
)
from moerank.evolution.duplicates import DigestDuplicates, row_digests
from moerank.evolution.mixed import MixedCrossover, MixedMutation, MixedSampling

__all__ = [
    "AdaptiveBitFlip",
    "DensitySampling",
    "DigestDuplicates",
    "MixedCrossover",
    "MixedMutation",
    "MixedSampling",
    "OnePointCrossover",
    "SparseBitFlip",
    "SubsetSizeSampling",
    "UniformCrossover",
    "importance_degrees",
    "redundancy_degrees",
    "row_digests",
]
