"""A cached kernel must go stale with anything it calls, and processes that start together must not spoil each other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import moerank.kernels

OUTER = """
from moerank.kernels.compiled import is_on_disk, kernel
from moerank.kernels.inner import inner

@kernel
def outer(x):
    return inner(x)

before = is_on_disk(outer)
print(outer(1), before, is_on_disk(outer))
"""
INNER = """
from moerank.kernels.compiled import kernel

@kernel
def inner(x):
    return x + {number}
"""


@pytest.fixture
def package(tmp_path):
    """A package of that name with two kernels of its own, and a function that runs them in a new process."""
    folder = tmp_path / "moerank" / "kernels"
    folder.mkdir(parents=True)
    for init in (folder, folder.parent):
        (init / "__init__.py").touch()
    shutil.copy(Path(moerank.kernels.__file__).parent / "compiled.py", folder)
    (folder / "outer.py").write_text(OUTER)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def start():
        command = [sys.executable, "-m", "moerank.kernels.outer"]
        pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return subprocess.Popen(command, env=environment, cwd=tmp_path, **pipes)

    return folder, start


def test_a_change_in_what_a_kernel_calls_is_seen(package):
    folder, start = package
    for number in (1, 10):
        (folder / "inner.py").write_text(INNER.format(number=number))
        assert start().communicate()[0] == f"{1 + number} False True\n"
        assert start().communicate()[0] == f"{1 + number} True True\n"
    written = list((folder.parents[1] / "cache").rglob("*.nbc"))
    assert len(written) == 2  # of the last version, one for each kernel


def test_processes_that_start_together_on_an_empty_or_stale_cache_all_work(package):
    folder, start = package
    for number in (1, 10):
        (folder / "inner.py").write_text(INNER.format(number=number))
        outputs = [process.communicate() for process in [start() for _ in range(4)]]
        assert [(output.split()[0], errors) for output, errors in outputs] == [(str(1 + number), "")] * 4
