"""Threads that share work."""

import os
from itertools import chain
from threading import Barrier, get_ident

import pytest

from moerank.kernels.threads import in_pieces


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
