"""What the evolutionary search needs beyond pymoo: operators for long bit strings and a loop that can resume."""

from moerank.evolution.adaptive import DECAY as DECAY
from moerank.evolution.adaptive import FORM as FORM
from moerank.evolution.adaptive import AdaptiveBitFlip as AdaptiveBitFlip
from moerank.evolution.adaptive import Decay as Decay
from moerank.evolution.adaptive import Form as Form
from moerank.evolution.adaptive import importance_degrees as importance_degrees
from moerank.evolution.adaptive import redundancy_degrees as redundancy_degrees
from moerank.evolution.algorithms import ALGORITHMS as ALGORITHMS
from moerank.evolution.algorithms import Factory as Factory
from moerank.evolution.algorithms import make_algorithm as make_algorithm
from moerank.evolution.archive import Archive as Archive
from moerank.evolution.binary import DENSITY as DENSITY
from moerank.evolution.binary import DensitySampling as DensitySampling
from moerank.evolution.binary import KeepAsIs as KeepAsIs
from moerank.evolution.binary import SparseBitFlip as SparseBitFlip
from moerank.evolution.binary import SubsetSizeSampling as SubsetSizeSampling
from moerank.evolution.binary import UniformCrossover as UniformCrossover
from moerank.evolution.checkpoint import Checkpoint as Checkpoint
from moerank.evolution.duplicates import DigestDuplicates as DigestDuplicates
from moerank.evolution.duplicates import row_digests as row_digests
from moerank.evolution.mixed import MixedCrossover as MixedCrossover
from moerank.evolution.mixed import MixedMutation as MixedMutation
from moerank.evolution.mixed import MixedSampling as MixedSampling
from moerank.evolution.search import Generation as Generation
from moerank.evolution.search import SearchResult as SearchResult
from moerank.evolution.search import search as search
