"""Exports of trained rankers to search engines and other systems, one file per system."""

from moerank.exports.formats import FORMATS as FORMATS
from moerank.exports.formats import Format as Format
from moerank.exports.formats import export as export
