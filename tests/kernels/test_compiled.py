"""A cached kernel must go stale with anything it calls, and nothing that happens to the cache may end a process."""

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.kernel_calls import calls_of_runs

import moerank.kernels
from moerank.kernels import compiled

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


SERVER = """
import json, os, signal, socket, sys, tempfile, traceback
import filelock, llvmlite, numba, platformdirs
numba.njit(nogil=True, no_cfunc_wrapper=True)(lambda x: x + 1)(1)
asked = socket.socket(fileno=int(sys.argv[1]))
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while (request := socket.recv_fds(asked, 2**20, 2))[0]:
    if os.fork() == 0:
        break
    for pipe in request[1]:
        os.close(pipe)
else:
    sys.exit()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
asked.close()
for number, pipe in enumerate(request[1], start=1):
    os.dup2(pipe, number)
    os.close(pipe)
code, folder, environment = json.loads(request[0])
os.environ.clear()
os.environ.update(environment)
os.chdir(folder)
sys.path[:0] = ["", folder]
sys.argv[1:] = []
tempfile.tempdir = None
numba.config.reload_config()
signal.alarm(120)  # a process that hangs ends, and its test fails
try:
    exec(code, {"__name__": "__main__"})
except BaseException:
    traceback.print_exc()
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
"""
"""Forks a process for each code that it is sent: nine tenths of a new process of Python are numba's beginnings."""


class Process:
    """A process that runs a code, and the reading ends of its output and errors."""

    def __init__(self, server, code, folder, environment):
        pipes = [os.pipe() for _ in range(2)]
        request = json.dumps([code, str(folder), environment]).encode()
        socket.send_fds(server, [request], [writes for _, writes in pipes])
        for _, writes in pipes:
            os.close(writes)
        self._reads = [os.fdopen(reads) for reads, _ in pipes]

    def communicate(self):
        """Wait for the end of the process; return what it has printed as output and errors."""
        texts = []
        for file in self._reads:
            with file:
                texts.append(file.read())
        return tuple(texts)


@pytest.fixture(scope="module")
def server():
    """The socket of a process that starts others."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-Bc", SERVER, str(theirs.fileno())]
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        yield ours
        ours.close()
        assert process.wait(timeout=60) == 0


@pytest.fixture
def package(tmp_path, server):
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
        return Process(server, code, tmp_path, {**os.environ, **given, **changes})

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
        outputs = [process.communicate() for process in [start() for _ in range(3)]]
        assert [(output.split()[0], errors) for output, errors in outputs] == [(str(1 + number), "")] * 3
    assert start().communicate() == ("11 True True\n", "")


@pytest.mark.parametrize(("ending", "seen"), [("nbc", ["True True"] * 2), ("nbi", ["False False", "False True"])])
def test_a_file_that_a_power_cut_has_shortened_is_written_again(package, tmp_path, ending, seen):
    _, start = package
    assert start().communicate() == ("2 False True\n", "")
    files = sorted((tmp_path / "cache").rglob(f"*.{ending}"))
    sizes = [path.stat().st_size for path in files]
    for share in (0.0, 0.5):
        for path, size in zip(files, sizes, strict=True):
            os.truncate(path, int(size * share))
        for on_disk in seen:  # the first compiles, and finds a damaged index; the second keeps the code
            assert start().communicate() == (f"2 {on_disk}\n", "")
        assert [path.stat().st_size for path in files] == sizes


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
from numba.core import caching

class Trace:
    def __reduce__(self):
        return Path.touch, (Path(TRACE),)

def save(self, name, data):
    Path(self._data_path(name)).write_bytes(caching.dumps(Trace()))

caching.IndexDataCacheFile._save_data = save
from moerank.kernels.outer import outer
outer(1)
"""
"""Puts code into the cache that leaves a trace where it is unpickled."""

NOWHERE = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache"}
"""A user who has no home."""


def test_a_folder_where_somebody_else_may_write_is_not_read(package, tmp_path):
    _, start = package
    trace = tmp_path / "trace"
    start(PLANT.replace("TRACE", repr(str(trace)))).communicate()
    start().communicate()
    assert trace.exists()  # from the user's own folder it is read: what follows can fail
    trace.unlink()
    (folder,) = (tmp_path / "cache").iterdir()
    mode = stat.S_IMODE(folder.stat().st_mode)
    assert not mode & 0o022
    for wrong in (0o777, 0o770):  # open to others, or to a group
        folder.chmod(wrong)
        assert start().communicate() == (f"2 {wrong == 0o770} True\n", "")  # compiled, and then kept elsewhere
    folder.chmod(mode)
    if os.geteuid() == 0:  # only root gives files away
        os.chown(folder, 65534, 65534)
        assert start().communicate() == ("2 True True\n", "")
        os.chown(folder, 0, 0)
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert start().communicate() == ("2 True True\n", "")
    assert not trace.exists()


def test_folders_are_taken_in_order(package, tmp_path):
    folder, start = package
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    given = {
        "NUMBA_CACHE_DIR": "",
        "TMPDIR": str(temporary),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "xdg"),
    }
    assert start(**given).communicate() == ("2 False True\n", "")
    assert len(written(folder / "__pycache__")) == 2

    shutil.rmtree(folder / "__pycache__")
    (folder / "__pycache__").touch()  # not even root makes a folder there
    assert start(**given).communicate() == ("2 False True\n", "")
    assert len(written(tmp_path / "xdg" / "moerank")) == 2

    assert start(**given | NOWHERE).communicate() == ("2 False True\n", "")
    (own,) = temporary.iterdir()
    assert len(written(own)) == 2

    shutil.rmtree(own)
    own.touch()
    output, errors = start(**given | NOWHERE).communicate()
    assert output == "2 False False\n"
    assert errors == (
        "moerank: compiled kernels are not kept, so each start takes up to a minute; set NUMBA_CACHE_DIR to a "
        "folder that only you can write to\n"
    )

    homeless = f"""
import moerank.kernels.compiled as compiled, platformdirs, tempfile
def fail(*_): raise RuntimeError("could not determine the home directory")
def nowhere(): raise FileNotFoundError(2, "No usable temporary directory found")
compiled.user_cache_path, tempfile.gettempdir = fail, nowhere
compiled.missing = lambda groups: [("outer.outer", "(int64,)", 1.0)]
compiled.compile_ahead(["front"], 2)  # no other process compiles what cannot be kept
{OUTER_AS_PROGRAM}
"""
    output, errors_of_homeless = start(homeless, **given).communicate()
    assert (output, errors_of_homeless) == ("2 False False\n", errors)


def test_code_that_root_has_put_into_an_image_serves_everybody(package, tmp_path):
    folder, start = package
    given = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(tmp_path / "xdg")}
    assert start(**given).communicate() == ("2 False True\n", "")
    (image,) = (folder / "__pycache__").glob("kernels-*")
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o044 == 0o044 for path in written(image))
    as_nobody = (
        f"""
import os
writes = os.access
os.access = lambda path, mode: str(path) != {str(image)!r} and writes(path, mode)
from moerank.kernels import compiled
print([str(path) for path in compiled._folders()][0] == {str(image)!r}, len(compiled._folders()))
"""
        + OUTER_AS_PROGRAM
    )
    assert start(as_nobody, **given).communicate() == ("True 2\n2 True True\n", "")
    assert not written(tmp_path / "xdg")


def test_a_disk_that_is_full_keeps_no_code_and_stops_nothing(package):
    _, start = package
    code = """
from numba.core import caching
def full(*arguments):
    raise OSError(28, "no space left on device")
caching.os.replace = full
from moerank.kernels.outer import outer
from moerank.kernels.compiled import is_on_disk
print(outer(1), is_on_disk(outer))
"""
    assert start(code).communicate() == ("2 False\n", "")


SPIN = """
import numpy as np
from moerank.kernels.compiled import kernel

@kernel
def spin(x, n):
    y = 1.0
    for i in range(n):
        y = np.sqrt(y + i)
    return x + y, y
"""


def test_an_interrupt_leaves_a_kernel_as_an_interrupt(package):
    folder, start = package
    (folder / "spin.py").write_text(SPIN)
    code = """
import os, signal, threading
import numpy as np
from moerank.kernels.spin import spin
signal.signal(signal.SIGINT, signal.default_int_handler)
x = np.ones(3)
spin(x, 1)
timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
timer.start()
try:
    while True:
        spin(x, 30_000_000)
except BaseException as error:
    print(type(error).__name__)
"""
    assert start(code).communicate() == ("KeyboardInterrupt\n", "")


def test_the_record_holds_all_kernels_of_two_runs_and_no_others():
    recorded = json.loads(compiled.RECORDED.read_text())
    for group, called in calls_of_runs().items():
        assert set(called) == {(name, types) for name, types, _ in recorded[group]}


def test_a_kernel_is_compiled_by_another_process(tmp_path):
    # In a process of its own, whose cache is empty.
    vector = "Array(float64, 1, 'C', False, aligned=True)"
    scores = [entry for entry in json.loads(compiled.RECORDED.read_text())["front"] if entry[0] == "scores._scores"]
    recorded = {"front": [["algebra.dot", f"({vector}, {vector})", 1.0], *scores], "others": []}
    (tmp_path / "signatures.json").write_text(json.dumps(recorded))
    code = """
import sys
from contextlib import nullcontext
from pathlib import Path
import numpy as np
from moerank.kernels import compiled
from moerank.kernels.algebra import dot
from moerank.kernels.compiled import is_on_disk
compiled.RECORDED = Path("signatures.json")
dot(*np.ones((2, 3), np.float32))  # code for other types does not count
entries = compiled.missing(["front"])
assert len(entries) == 2
shares = []
compiled.compile_ahead(["front"], 1, lambda: nullcontext(shares.append))
assert dot(np.ones(3), np.ones(3)) == 3.0
assert sum(dot.stats.cache_hits.values()) == 1
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
    # On another processor.
    elsewhere = environment | {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    code = "from moerank.kernels import algebra, compiled; print(compiled.is_on_disk(algebra.dot))"
    found = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, env=elsewhere, text=True)
    assert found == "False\n"


@pytest.mark.parametrize(
    "how",
    [
        "import multiprocessing.spawn as s; s.set_executable('/nowhere/python')",
        "limit()",
        "import loky.backend.resource_tracker as tracker; tracker.register = break_pipe",
    ],
)
def test_kernels_are_compiled_here_where_no_process_can_be_started(package, how):
    _, start = package
    code = f"""
def limit():
    import os
    def fail(): raise BlockingIOError(11, "Resource temporarily unavailable")
    os.fork = fail
def break_pipe(*_): raise BrokenPipeError(32, "Broken pipe")
from moerank.kernels import compiled
from moerank.kernels.outer import outer
compiled.missing = lambda groups: [("outer.outer", "(int64,)", 1.0)]
{how}
compiled.compile_ahead(["front"], 2)
print(len(outer.overloads), outer(1))
"""
    assert start(code).communicate()[0] == "1 2\n"


def test_a_kernel_works_without_optimisation(package, tmp_path):
    folder, _ = package
    text = "from moerank.kernels.compiled import kernel\nimport numpy as np\nfrom moerank.kernels.lanes import *\n"
    shutil.copy(PACKAGE / "kernels" / "lanes.py", folder)
    shutil.copy(PACKAGE / "arrays.py", folder.parent)
    text += "@kernel\ndef inner(x):\n    y = np.zeros(3)\n    y[0] = x\n    return y.sum() + 1\n"
    (folder / "inner.py").write_text(text)
    # numba reads this variable when it begins, so this takes a process that nobody has forked.
    environment = {**os.environ, "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-Bc", OUTER_AS_PROGRAM]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("2.0 False")
