import numpy as np
import pytest

from moerank.kernels.letor_text import State, read_lines

TEXT = b"# c\n2 qid:1 1:0.5 3:-2e1 # x\r\n\t0 qid:1 2:7\n1 qid:22 1:1\r1 qid:3 \n"


class Call:
    """One call of the reader."""

    def __init__(self, text, *, width=3, largest=1e300, with_queries=True, with_nulls=False):
        self.text = np.frombuffer(text + b"\0", np.uint8).copy()
        n = text.count(b"\n") + text.count(b"\r")
        self.values, self.labels, self.state = np.zeros((n, width)), np.zeros(n, np.int64), np.zeros(6, np.int64)
        self.runs, self.hard = np.zeros((n, 4), np.int64), np.zeros((len(text), 5), np.int64)
        options = 10, largest, with_queries, with_nulls
        read_lines(self.text, len(text), self.values, self.labels, *options, self.runs, self.hard, self.state)
        self.refused = self["AT"] < len(text)

    def __getitem__(self, entry):
        return self.state[State[entry]]


@pytest.mark.parametrize("width", [0, 2, 3, 5])
def test_documents_labels_and_the_places_of_queries(width):
    call = Call(TEXT, width=width)
    assert not call.refused
    assert (call["ROW"], call["LINE"], call["WIDEST"], call["HARD"]) == (4, 5, 3, 0)
    assert call.labels[:4].tolist() == [2, 0, 1, 1]
    expected = np.array([[0.5, 0, -20, 0, 0], [0, 7, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(call.values[:4], expected[:, :width])
    runs = call.runs[: call["RUNS"]]
    assert [TEXT[begin:end] for begin, end, _, _ in runs] == [b"1", b"22", b"3"]
    assert runs[:, 2:].tolist() == [[0, 1], [2, 3], [3, 4]]


def test_values_left_to_the_caller():
    text = b"1 qid:1 1:12345678901234567890 2:1e999\n1 qid:1 1:0.00000000000000000000025 2:5e-324 3:1e-3\n"
    call = Call(text, largest=1e-4)
    hard = call.hard[: call["HARD"]]
    left = [text[begin:end] for begin, end, *_ in hard]
    assert left == [b"12345678901234567890", b"1e999", b"0.00000000000000000000025", b"5e-324", b"1e-3"]
    assert hard[:, 2:].tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1], [1, 2, 1]]
    assert Call(b"1 qid:1 1:9007199254740992 2:9007199254740993 3:0e99\n")["HARD"] == 1


def test_zero_has_no_sign_and_missing_values_are_nan():
    call = Call(b"1 qid:1 1:-0 2:NULL 3:nAn\n1 qid:1 1:-0e-50\n", with_nulls=True)
    assert not np.signbit(call.values[[0, 1], 0]).any()
    assert np.isnan(call.values).tolist() == [[False, True, True], [False] * 3]
    refused = Call(b"1 qid:1 1:NULL\n2 qid:1 1:NULL 2:x\n", with_nulls=True)
    assert refused.refused
    assert refused["LINE"] == 1


@pytest.mark.parametrize(
    "line",
    [b"qid:1", b"-1 qid:1", b"1234567890 qid:1", b"1.5 qid:1", b"1", b"1 qi", b"1 qid:", b"1 qid:\x01", b"1qid:1"]
    + [
        b"1 qid:1 " + token
        for token in b"0:1 1 1: 1:x 1:- 1:. 1:1e 1:1e+ 1:1.1.1 1:1_0 11:1 2:1,5 0x1:1 :1 1::".split()
    ]
    + [b"1 qid:1 2:1 1:1", b"1 qid:1 1:1 1:1", b"1 qid:1 1:1\0", b"1 qid:1 1 :1"],
)
def test_other_lines_are_pointed_at(line):
    call = Call(b"1 qid:1 1:1\n" + line + b"\n")
    assert (call.refused, call["AT"], call["ROW"], call["LINE"]) == (True, 12, 1, 1)


def test_without_queries():
    call = Call(b"1 1:2\n0\n\n3 # 1:1\n", with_queries=False)
    assert (call.refused, call["ROW"], call["RUNS"]) == (False, 3, 0)
    assert Call(b"1 qid:1 1:2\n", with_queries=False).refused
    assert Call(b"1 1:2\n").refused
