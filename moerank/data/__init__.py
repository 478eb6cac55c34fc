"""Ranking data: the structure, its preference pairs, files and embedded problems."""

from moerank.data.folds import load_fold, split_fold
from moerank.data.letor import load_letor
from moerank.data.pairs import PreferencePairs
from moerank.data.ranking_data import RankingData

__all__ = ["PreferencePairs", "RankingData", "load_fold", "load_letor", "split_fold"]
