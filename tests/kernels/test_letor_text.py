import numpy as np
import pytest

from moerank.kernels.letor_text import N_STATES, Pause, State, narrow_rows, read_lines, widen_rows

TEXT = b"# c\n2 qid:1 1:0.5 3:-2e1 # x\r\n\t0 qid:1 2:7\n1 qid:22 1:1\r1 qid:3 \n"


class Call:
    """One call of the reader, with as little room as the test says."""

    def __init__(self, text, *, width=3, rows=9, runs=9, hard=9, largest=1e300, with_queries=True, with_nulls=False):
        self.text = np.frombuffer(text + b"\0", np.uint8).copy()
        self.state = np.zeros(N_STATES, np.int64)
        self.values, self.labels = np.zeros(rows * width), np.zeros(rows, np.int32)
        self.runs, self.hard = np.zeros((runs, 4), np.int64), np.zeros((hard, 5), np.int64)
        self.options = width, 10, largest, with_queries, with_nulls
        self.again()

    def again(self):
        end = len(self.text) - 1
        self.pause = Pause(
            read_lines(self.text, end, self.state, self.values, self.labels, *self.options, self.runs, self.hard)
        )

    def __getitem__(self, entry):
        return self.state[State[entry]]


def test_documents_labels_and_the_places_of_queries():
    call = Call(TEXT)
    assert call.pause is Pause.END
    assert (call["AT"], call["ROW"], call["LINE"], call["COLUMNS"], call["HARD"]) == (len(TEXT), 4, 5, 3, 0)
    assert call.labels[:4].tolist() == [2, 0, 1, 1]
    assert call.values[:12].reshape(4, 3).tolist() == [[0.5, 0, -20], [0, 7, 0], [1, 0, 0], [0, 0, 0]]
    runs = call.runs[: call["RUNS"]]
    assert [TEXT[begin:end] for begin, end, _, _ in runs] == [b"1", b"22", b"3"]
    assert runs[:, 2:].tolist() == [[0, 2], [2, 4], [3, 5]]


def test_a_pause_stands_at_the_begin_of_a_line_of_which_nothing_counts():
    lines = TEXT.splitlines(keepends=True)
    places = np.cumsum([0] + [len(line) for line in lines])
    few_rows = Call(TEXT, rows=2)
    assert (few_rows.pause, few_rows["AT"], few_rows["ROW"]) == (Pause.ROWS, places[3], 2)
    few_columns = Call(TEXT, width=2)
    assert (few_columns.pause, few_columns["AT"], few_columns["ROW"]) == (Pause.COLUMNS, places[1], 0)
    assert few_columns["WANTED"] == 3
    few_runs = Call(TEXT, runs=2)
    assert (few_runs.pause, few_runs["AT"], few_runs["RUNS"]) == (Pause.WORKSPACE, places[4], 2)
    few_runs.again()
    assert (few_runs.pause, few_runs["ROW"], few_runs["RUNS"]) == (Pause.END, 4, 1)


def test_what_is_left_to_the_caller():
    text = b"1 qid:1 1:12345678901234567890 2:1e999\n1 qid:1 1:0.00000000000000000000025 2:5e-324 3:1e-3\n"
    call = Call(text, largest=1e-4)
    hard = call.hard[: call["HARD"]]
    assert [text[begin:end] for begin, end, *_ in hard] == [b"12345678901234567890", b"1e999", b"5e-324", b"1e-3"]
    assert hard[:, 2:].tolist() == [[0, 0, 1], [0, 1, 1], [1, 1, 2], [1, 2, 2]]
    assert call.values[3] == 2.5e-22
    full = Call(text, hard=3, largest=1e-4)
    assert (full.pause, full["ROW"], full["HARD"]) == (Pause.WORKSPACE, 1, 2)


def test_zero_has_no_sign_and_missing_values_are_counted():
    call = Call(b"1 qid:1 1:-0 2:NULL 3:nAn\n1 qid:1 1:-0e-50\n", with_nulls=True)
    assert not np.signbit(call.values[[0, 3]]).any()
    assert np.isnan(call.values[1:3]).all()
    assert call["NULLS"] == 2
    refused = Call(b"1 qid:1 1:NULL\n2 qid:1 1:NULL 2:x\n", with_nulls=True)
    assert (refused.pause, refused["NULLS"], refused["LINE"]) == (Pause.REFUSED, 1, 1)


@pytest.mark.parametrize(
    "line",
    [b"", b"qid:1", b"-1 qid:1", b"1234567890 qid:1", b"1.5 qid:1", b"1", b"1 qi", b"1 qid:", b"1 qid:\x01", b"1qid:1"]
    + [
        b"1 qid:1 " + token
        for token in b"0:1 1 1: 1:x 1:- 1:. 1:1e 1:1e+ 1:1.1.1 1:1_0 11:1 2:1,5 0x1:1 :1 1::".split()
    ]
    + [b"1 qid:1 2:1 1:1", b"1 qid:1 1:1 1:1", b"1 qid:1 1:1\0", b"1 qid:1 1 :1"],
)
def test_other_lines_are_pointed_at(line):
    call = Call(b"1 qid:1 1:1\n" + line + b"\n")
    if line:
        assert (call.pause, call["AT"], call["ROW"], call["LINE"]) == (Pause.REFUSED, 12, 1, 1)
    else:
        assert call.pause is Pause.END


def test_without_queries():
    call = Call(b"1 1:2\n0\n3 # 1:1\n", with_queries=False)
    assert (call.pause, call["ROW"], call["RUNS"]) == (Pause.END, 3, 0)
    assert Call(b"1 qid:1 1:2\n", with_queries=False).pause is Pause.REFUSED
    assert Call(b"1 1:2\n").pause is Pause.REFUSED


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_are_widened_and_narrowed_in_place(dtype):
    table = np.random.default_rng(0).random((5, 3)).astype(dtype)
    values = np.full(5 * 7, 9, dtype)
    values[:15] = table.ravel()
    widen_rows(values, 5, 3, 7)
    np.testing.assert_array_equal(values.reshape(5, 7), np.pad(table, ((0, 0), (0, 4))))
    narrow_rows(values, 5, 7, 2)
    np.testing.assert_array_equal(values[:10].reshape(5, 2), table[:, :2])
