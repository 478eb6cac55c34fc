"""Rankers: learning to rank with all features or a given subset; each is a fitness backend for the search."""
