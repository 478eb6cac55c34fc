"""Solr itself: the page about it, and every kind of model that is exported to it."""

import doctest
import io
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from helpers.pages import blocks

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "recipes" / "solr.md"
