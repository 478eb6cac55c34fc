"""A cached kernel must go stale with anything it calls, and nothing that happens to the cache may end a process."""

import os
import random
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.forks import Forks

import moerank.kernels

PACKAGE = Path(moerank.kernels.__file__).parents[1]
OUTER = """
from moerank.kernels.compiled import is_on_disk, kernel
from moerank.kernels.inner import inner

@kernel
def outer(x):
    return inner(x)

if __name__ == "__main__":
    before = is_on_disk(outer)
    print(outer(1), before, is_on_disk(outer))
"""
OUTER_AS_PROGRAM = "import runpy; runpy.run_module('moerank.kernels.outer', run_name='__main__', alter_sys=True)"
INNER = """
from moerank.kernels.compiled import kernel

@kernel
def inner(x):
    return x + {number}
"""


@pytest.fixture(scope="module")
def forks():
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture
def package(tmp_path, forks):
    """A package of that name with two kernels of its own, and a function that runs them in a new process."""
    folder = tmp_path / "moerank" / "kernels"
    folder.mkdir(parents=True)
    for init in (folder, folder.parent):
        (init / "__init__.py").touch()
    for name in ("files.py", "kernels/compiled.py"):
        shutil.copy(PACKAGE / name, folder.parent / name)
    (folder / "inner.py").write_text(INNER.format(number=1))
    (folder / "outer.py").write_text(OUTER)
    given = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def start(code=OUTER_AS_PROGRAM, **changes):
        return forks.start(code, {**os.environ, **given, **changes}, tmp_path)

    return folder, start


def written(folder):
    """The files of code below a folder."""
    return sorted(folder.rglob("*.nbc"))


def test_a_change_in_what_a_kernel_calls_is_seen(package):
    folder, start = package
    for number in (1, 10):
        (folder / "inner.py").write_text(INNER.format(number=number))
        assert start().communicate()[0] == f"{1 + number} False True\n"
        assert start().communicate()[0] == f"{1 + number} True True\n"
    assert len(written(folder.parents[1] / "cache")) == 2  # of the last version, one for each kernel


def test_processes_that_start_together_on_an_empty_or_stale_cache_all_work(package):
    folder, start = package
    for number in (1, 10):
        (folder / "inner.py").write_text(INNER.format(number=number))
        outputs = [process.communicate() for process in [start() for _ in range(4)]]
        assert [(output.split()[0], errors) for output, errors in outputs] == [(str(1 + number), "")] * 4
    assert start().communicate() == ("11 True True\n", "")


def test_a_damaged_file_is_compiled_again(package, tmp_path):
    _, start = package
    assert start().communicate() == ("2 False True\n", "")
    files = written(tmp_path / "cache")
    whole = [path.read_bytes() for path in files]
    rng = random.Random(0)
    damages = [lambda content: b"", lambda content: content[: len(content) // 2], lambda content: content + b"x"]
    for damage in [*damages, lambda content: _flipped(content, rng)]:
        for path, content in zip(files, whole, strict=True):
            path.write_bytes(damage(content))
        process = start()
        assert process.communicate() == ("2 True True\n", "")
        assert process.returncode == 0
        assert [len(path.read_bytes()) for path in files] == [len(content) for content in whole]
    files[0].write_bytes(whole[1])  # the code of the other kernel
    assert start().communicate() == ("2 True True\n", "")


def _flipped(content, rng):
    """The content with eight of its bits the other way round."""
    changed = bytearray(content)
    for _ in range(8):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


SORTS = """
from moerank.kernels.compiled import kernel

@kernel
def least(x):
    x.sort()
    return x[0]

@kernel
def place_of_least(x):
    return x.argsort()[0]
"""


def test_code_of_two_processes_is_not_taken_for_one_another(package):
    # Both compile numba's quicksort, one for values and one for places. Counted alike, these have the same names.
    folder, start = package
    (folder / "sorts.py").write_text(SORTS)
    call = "import numpy; from moerank.kernels.sorts import *; x = numpy.arange(40.0)[::-1].copy(); "
    for name in ("least", "place_of_least"):
        assert start(f"{call} {name}(x)").communicate() == ("", "")
    for names in ("place_of_least(x), least(x)", "least(x.copy()), place_of_least(x)"):
        assert start(f"{call} print(sorted([{names}]))").communicate() == ("[0.0, 39]\n", "")


PLANT = """
import sys
from pathlib import Path
from moerank.kernels import compiled

class Trace:
    def __reduce__(self):
        return Path.touch, (Path(sys.argv[1]),)

right = compiled.dumps
compiled.dumps = lambda data: right(Trace())
from moerank.kernels.outer import outer
outer(1)
"""
"""Puts code into the cache, with the right check sums, that leaves a trace where it is unpickled."""

NOWHERE = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache"}
"""A user who has no home."""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no owners and modes of files")
@pytest.mark.parametrize("how", ["open to others", "open to a group", "of somebody else", "a link"])
def test_a_folder_where_somebody_else_may_write_is_not_read(package, tmp_path, how):
    _, start = package
    trace, temporary = tmp_path / "trace", tmp_path / "temporary"
    assert start(PLANT.replace("sys.argv[1]", repr(str(trace)))).communicate() == ("", "")
    start().communicate()
    assert trace.exists()  # from the user's own folder it is read: what follows can fail
    trace.unlink()
    (folder,) = (tmp_path / "cache").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    if how == "a link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    elif how == "of somebody else":
        if os.geteuid() != 0:
            pytest.skip("only root gives files away")
        os.chown(folder, 65534, 65534)
    else:
        folder.chmod(0o777 if how == "open to others" else 0o770)
    temporary.mkdir()
    output, errors = start(TMPDIR=str(temporary), **NOWHERE).communicate()
    assert output == "2 False True\n"  # nothing was found, and it was compiled
    assert not trace.exists()
    (own,) = temporary.iterdir()
    assert errors.splitlines() == [
        f"moerank: compiled kernels are kept in {own}: NUMBA_CACHE_DIR={tmp_path / 'cache'} cannot be used "
        "(it must be writable, by this user alone)"
    ]
    own.chmod(0o777)
    output, errors = start(TMPDIR=str(temporary), **NOWHERE).communicate()
    assert output == "2 False False\n"
    assert errors.startswith("moerank: compiled kernels are not kept, so that each start takes up to a minute: NUMBA_")
    assert errors.count("\n") == 1


def test_files_of_somebody_else_and_pipes_are_not_read(package, tmp_path):
    _, start = package
    assert start().communicate() == ("2 False True\n", "")
    files = written(tmp_path / "cache")
    for path in files:
        path.unlink()
        os.mkfifo(path)
    assert start().communicate(timeout=100) == ("2 True True\n", "")
    assert all(path.is_file() for path in files)
    if os.geteuid() == 0:
        trace = tmp_path / "trace"
        (tmp_path / "cache2").mkdir()
        plant = PLANT.replace("sys.argv[1]", repr(str(trace)))
        assert start(plant, NUMBA_CACHE_DIR=str(tmp_path / "cache2")).communicate() == ("", "")
        for path in written(tmp_path / "cache2"):
            os.chown(path, 65534, 65534)
        assert start(NUMBA_CACHE_DIR=str(tmp_path / "cache2")).communicate() == ("2 False True\n", "")
        assert not trace.exists()


def test_an_installation_that_cannot_be_written_to(package, tmp_path):
    folder, start = package
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    given = {"NUMBA_CACHE_DIR": "", "TMPDIR": str(temporary)}
    assert start(**given).communicate() == ("2 False True\n", "")
    assert {path.parent for path in written(folder)} == {folder / "__pycache__" / "kernels"}
    shutil.rmtree(folder / "__pycache__")
    (folder / "__pycache__").touch()  # not even root makes a folder there

    caches = {**given, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "xdg")}
    assert start(**caches).communicate() == ("2 False True\n", "")
    assert start(**caches).communicate() == ("2 True True\n", "")
    assert len(written(tmp_path / "xdg" / "moerank")) == 2

    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing\n"
        "from moerank.kernels.outer import outer\n"
        "if __name__ == '__main__':\n"
        "    worker = multiprocessing.get_context('spawn').Process(target=outer, args=(1,))\n"
        "    worker.start(), worker.join(), print(outer(1), worker.exitcode)\n"
    )
    command = [sys.executable, str(script)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), **given, **NOWHERE}
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    (own,) = temporary.iterdir()
    assert process.stdout == "2 0\n"
    assert len(written(own)) == 2
    assert process.stderr.splitlines() == [  # the worker does not say it again
        f"moerank: compiled kernels are kept in {own}: neither the installation nor the user's cache folder can be "
        "used (it must be writable, by this user alone)"
    ]


def test_a_disk_that_is_full_keeps_no_code_and_stops_nothing(package):
    _, start = package
    code = """
from moerank import files
def full(*arguments):
    raise OSError(28, "no space left on device")
files.os.fsync = full
from moerank.kernels.outer import outer
from moerank.kernels.compiled import is_on_disk
print(outer(1), is_on_disk(outer))
"""
    assert start(code).communicate() == ("2 False\n", "")
