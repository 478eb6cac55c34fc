"""Threads that share work, and contexts that share the one limit that a linear algebra library has for a process."""

import json
import os
import subprocess
import sys
from itertools import chain
from threading import Barrier, Thread, get_ident

import pytest
from threadpoolctl import ThreadpoolController

from moerank.kernels.threads import _set_threads, in_pieces, one_blas_thread

THREADS = 2


def libraries():
    import scipy.linalg  # noqa: F401  # has a library of its own

    return ThreadpoolController().select(user_api="blas").lib_controllers


def limits():
    return {library.num_threads for library in libraries()}


def set_limits(n_threads):
    for library in libraries():
        _set_threads(library, n_threads)


@pytest.fixture
def two_threads():
    before = {library.num_threads for library in libraries()}
    set_limits(THREADS)
    if limits() != {THREADS}:
        pytest.skip("the library has no threads to limit")
    yield
    set_limits(max(before))


@pytest.mark.usefixtures("two_threads")
def test_a_context_limits_and_puts_back():
    with one_blas_thread():
        assert limits() == {1}
    assert limits() == {THREADS}
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert limits() == {THREADS}


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_threads_that_overlap_see_one_thread_until_the_last_has_left(order):
    barrier = Barrier(4, timeout=60)
    seen = []

    def fit(number):
        for turn in range(3):  # enter one after the other
            if turn == number:
                entered = one_blas_thread()
                entered.__enter__()
                seen.append(limits())
            barrier.wait()
        for turn in order:  # leave in another order
            if turn == number:
                seen.append(limits())
                entered.__exit__(None, None, None)
            barrier.wait()

    threads = [Thread(target=fit, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        barrier.wait()
    for thread in threads:
        thread.join()
    assert seen == [{1}] * 6
    assert limits() == {THREADS}


def test_a_library_that_is_loaded_later_is_found():
    code = """
import json
import sys
from threadpoolctl import threadpool_info
from moerank.kernels.threads import one_blas_thread

def limits():
    return sorted(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")

import numpy
with one_blas_thread():
    assert "scipy" not in sys.modules
    first = limits()
import scipy.linalg
with one_blas_thread():
    print(json.dumps([first, limits()]))
"""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    output = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    numpy_alone, both = json.loads(output.stdout)
    assert set(numpy_alone) == set(both) == {1}


@pytest.mark.usefixtures("two_threads")
def test_a_forked_process_can_go_on_while_another_thread_is_inside():
    inside, done = Barrier(2, timeout=60), Barrier(2, timeout=60)

    def fit():
        with one_blas_thread():
            inside.wait()
            done.wait()

    thread = Thread(target=fit)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:  # the other thread is not here, and never leaves
        with one_blas_thread():
            good = limits() == {1}
        os._exit(0 if good and limits() == {THREADS} else 1)
    status = os.waitpid(child, 0)[1]
    done.wait()
    thread.join()
    assert status == 0
    assert limits() == {THREADS}


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 33, 100])
def test_pieces_are_in_order_and_fill_the_vectors(n, workers):
    pieces = in_pieces(list, range(n), workers)
    assert list(chain(*pieces)) == list(range(n))
    assert len(pieces) == max(1, min(workers, n // 16))
    assert all(len(piece) % 16 == 0 for piece in pieces[:-1])
    assert max(map(len, pieces)) - min(map(len, pieces)) <= 16


def together():
    """Return whether two pieces are worked on at the same time."""
    barrier = Barrier(2, timeout=20)
    idents = in_pieces(lambda piece: (barrier.wait(), get_ident())[1], range(2), 2, 1)
    return len(set(idents)) == 2


def test_pieces_are_worked_on_at_the_same_time_also_in_a_fork():
    assert together()
    if (child := os.fork()) == 0:
        os._exit(0 if together() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_pieces_may_have_pieces_when_no_thread_is_left():
    n = 8 * (os.cpu_count() or 1)
    inner = in_pieces(lambda outer: in_pieces(sum, range(10 * outer[0], 10 * outer[0] + 8), 4, 2), range(n), n, 1)
    assert inner == [[sum(range(10 * i + j, 10 * i + j + 2)) for j in (0, 2, 4, 6)] for i in range(n)]


def test_an_error_of_any_piece_is_raised():
    with pytest.raises(ZeroDivisionError):
        in_pieces(lambda piece: 1 // (piece[0] - 2), range(4), 4, 1)
