"""What the evolutionary search needs beyond pymoo: operators for long bit strings and a loop that can resume."""

from moerank.evolution.adaptive import (
    DECAY,
    FORM,
    AdaptiveBitFlip,
    Decay,
    Form,
    importance_degrees,
    redundancy_degrees,
)
from moerank.evolution.algorithms import ALGORITHMS, Factory, make_algorithm
from moerank.evolution.archive import Archive
from moerank.evolution.binary import (
    DENSITY,
    DensitySampling,
    KeepAsIs,
    SparseBitFlip,
    SubsetSizeSampling,
    UniformCrossover,
)
from moerank.evolution.checkpoint import Checkpoint
from moerank.evolution.duplicates import DigestDuplicates, row_digests
from moerank.evolution.mixed import MixedCrossover, MixedMutation, MixedSampling
from moerank.evolution.search import Generation, SearchResult, search

__all__ = [
    "ALGORITHMS",
    "DECAY",
    "DENSITY",
    "FORM",
    "AdaptiveBitFlip",
    "Archive",
    "Checkpoint",
    "Decay",
    "Factory",
    "Form",
    "DensitySampling",
    "DigestDuplicates",
    "Generation",
    "KeepAsIs",
    "MixedCrossover",
    "MixedMutation",
    "MixedSampling",
    "SearchResult",
    "SparseBitFlip",
    "SubsetSizeSampling",
    "UniformCrossover",
    "importance_degrees",
    "make_algorithm",
    "redundancy_degrees",
    "row_digests",
    "search",
]
