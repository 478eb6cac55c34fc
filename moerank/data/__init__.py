"""Ranking data: the structure, its preference pairs, files and embedded problems."""

from moerank.data.pairs import PreferencePairs
from moerank.data.ranking_data import RankingData

__all__ = ["PreferencePairs", "RankingData"]
