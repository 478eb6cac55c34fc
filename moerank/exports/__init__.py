"""Exports of trained rankers to search engines and other systems, one file per system."""
