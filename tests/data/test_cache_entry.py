import mmap
import random

import numpy as np
import pytest

import moerank.data.read.cache
from moerank.data.read.cache import DamagedEntryError, read_arrays, write_arrays
from moerank.data.read.letor_parser import Documents

RNG = np.random.default_rng(0)
ARRAYS = {
    "X": RNG.random((37, 11)),
    "single": RNG.random(1000).astype(np.float32),
    "empty": np.zeros((0, 3), np.int32),
    "texts": np.array(["WT04-132", "\N{LATIN SMALL LETTER E WITH ACUTE}", ""]),
    "number": np.array(7),
    "flags": np.array([True, False]),
}


@pytest.fixture(params=["read", "mapped"])
def entry(request, tmp_path, monkeypatch):
    """A file of arrays that are read, or mapped."""
    monkeypatch.setattr(moerank.data.read.cache, "MAPPED", 1 if request.param == "mapped" else 2**26)
    path = tmp_path / "name.arrays"
    with path.open("wb") as file:
        write_arrays(file, path.name, ARRAYS)
    return path


def test_arrays_come_back_to_the_bit(entry):
    arrays = read_arrays(entry)
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tobytes() == array.tobytes()


def test_arrays_outlive_their_file(entry):
    arrays = read_arrays(entry)
    entry.unlink()
    assert arrays["X"].tobytes() == ARRAYS["X"].tobytes()


def test_every_change_is_noticed(entry):
    stored = entry.read_bytes()
    rng = random.Random(0)
    n_refused = 0
    for _ in range(500):
        at = rng.randrange(len(stored))
        entry.unlink()  # what is mapped must not change
        entry.write_bytes(stored[:at] + bytes([stored[at] ^ 1 << rng.randrange(8)]) + stored[at + 1 :])
        try:
            arrays = read_arrays(entry)
        except DamagedEntryError:
            n_refused += 1
        else:  # it fell between two arrays
            assert all(arrays[name].tobytes() == array.tobytes() for name, array in ARRAYS.items())
    assert n_refused > 350
    for content in (b"", b"junk", stored[:-1], stored + b"x", stored[: len(stored) // 2], stored[:60]):
        entry.unlink()
        entry.write_bytes(content)
        with pytest.raises(DamagedEntryError):
            read_arrays(entry)
    entry.write_bytes(stored)
    with pytest.raises(DamagedEntryError):
        read_arrays(entry.rename(entry.with_name("other.arrays")))


@pytest.mark.parametrize("arrays", [{"objects": np.array([{}])}, {"dates": np.zeros(3, "M8[s]")}])
def test_what_is_no_array_of_numbers_or_texts_is_not_believed(tmp_path, monkeypatch, arrays):
    monkeypatch.setattr(moerank.data.read.cache, "_array_sum", lambda array, file=None: "")
    monkeypatch.setattr(moerank.data.read.cache, "_bytes_of", lambda array: memoryview(bytes(array.nbytes)))
    path = tmp_path / "name.arrays"
    with path.open("wb") as file:
        write_arrays(file, path.name, arrays)
    with pytest.raises(DamagedEntryError):
        read_arrays(path)


def test_documents_that_are_mapped_can_be_widened(tmp_path, monkeypatch):
    monkeypatch.setattr(moerank.data.read.cache, "MAPPED", 1)
    documents = Documents(np.float64)
    documents.values, documents.y, documents.n_features = np.arange(6.0), np.zeros(3, np.int32), 2
    documents.take_queries(["1", "2"], [0, 2])
    path = tmp_path / "name.arrays"
    with path.open("wb") as file:
        write_arrays(file, path.name, documents.as_arrays())
    mapped = Documents.from_arrays(read_arrays(path))
    assert isinstance(mapped.values.base, mmap.mmap)
    mapped.widen(3)
    assert mapped.values.tolist() == [0, 1, 0, 2, 3, 0, 4, 5, 0]
    assert path.stat().st_size > 0
    np.testing.assert_array_equal(read_arrays(path)["values"], np.arange(6.0))
