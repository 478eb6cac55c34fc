"""Kernels that are compiled before they are called."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from moerank.kernels import compiled

HELPER = Path(__file__).parents[1] / "helpers" / "kernel_calls.py"


def test_the_record_holds_all_kernels_of_a_run_and_no_others():
    called = json.loads(subprocess.run([sys.executable, str(HELPER)], check=True, capture_output=True).stdout)
    recorded = json.loads(compiled.RECORDED.read_text())
    for group in ("front", "baselines"):
        assert {(name, types) for name, types in called[group]} == {(name, types) for name, types, _ in recorded[group]}


def test_a_kernel_is_compiled_by_another_process_and_waited_for(tmp_path, monkeypatch):
    # In a process of its own, whose cache is empty; the kernel that comes later is called at once.
    (tmp_path / "signatures.json").write_text(
        json.dumps(
            {
                group: [e for e in entries if e[0] in ("counted_ranks.sum_over_queries", "scores._scores")]
                for group, entries in {"front": json.loads(compiled.RECORDED.read_text())["front"]}.items()
            }
            | {"baselines": [], "others": []}
        )
    )
    code = """
import sys
from contextlib import nullcontext
from pathlib import Path
import numpy as np
from moerank.kernels import compiled
from moerank.kernels.counted_ranks import sum_over_queries
from moerank.kernels.compiled import is_on_disk
compiled.RECORDED = Path("signatures.json")
entries = compiled.missing(["front"])
shares = []
compiled.missing = lambda groups: [entry for entry in entries if entry[0].startswith(groups[0])]
with compiled.compiled_ahead(["scores"], ["counted_ranks"], 2, lambda: nullcontext(shares.append)):
    values = np.ones((3, 2))
    assert sum_over_queries(values).tolist() == [3.0, 3.0]
    assert sum(sum_over_queries.stats.cache_hits.values()) == 1
assert shares[-1] == 1.0 and shares == sorted(shares)
assert all(is_on_disk(compiled._kernel(name)) for name, _, _ in entries)
"""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.getenv("PYTHONPATH")])),
    }
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_started_where_all_is_on_disk(monkeypatch):
    monkeypatch.setattr(compiled, "missing", lambda groups: [])
    monkeypatch.setattr("loky.ProcessPoolExecutor", lambda *_: pytest.fail("a pool was started"))
    with compiled.compiled_ahead(["front"], ["baselines"], 2):
        pass
