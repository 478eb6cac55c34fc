"""Broken files by the hundred: each is read as the format says, or refused in one sentence that names the place."""

import random
from collections import Counter

import numpy as np
import pytest
from helpers.broken_letor import VALID, after_an_accident, broken, judged, without_queries

import moerank.data.read.letor

N_FILES = 300


@pytest.mark.parametrize("missing", [None, 0.25])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("counts", [None, [4, 4, 4]])
def test_broken_files_are_read_rightly_or_refused(tmp_path, monkeypatch, missing, dtype, counts):
    rng = random.Random(f"plain {missing}")
    path = tmp_path / "broken.txt"
    base = [] if counts is None else [after_an_accident(VALID, rng, [without_queries])]
    if counts:
        path.with_name("broken.txt.query").write_text("4\n4\n4\n")
    outcomes = Counter()
    for _ in range(N_FILES if counts is None else N_FILES // 2):
        content = broken(rng, *base)
        path.write_bytes(content)
        monkeypatch.setattr(moerank.data.read.letor, "CHUNK", rng.choice([1, 16, 64, 2**12]))
        outcome = judged(path, content, missing=missing, dtype=dtype, counts=counts)
        assert outcome in ("read", "refused"), content
        outcomes[outcome] += 1
    assert 0.1 < outcomes["read"] / outcomes.total() < 0.8
