import ast
import json
import os
from hashlib import blake2b
from io import FileIO
from pathlib import Path

import numpy as np
import pytest
from helpers.journals import OPENED, WIDTH, opened, read, records, same, write
from helpers.small_disk import small_disk as small_disk

import moerank
from moerank.evolution import Journal, Record

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture(autouse=True)
def _close_journals():
    yield
    while OPENED:
        OPENED.pop().close()


def begins(content):
    """Return where each record begins, and where the last ends."""
    return [at + 1 for at, byte in enumerate(content) if byte == ord("\n")]


def forged(content, body):
    """Return a journal with one more record, whose check sum is right by the layout that the file's docstring gives."""
    last = content[-33:]
    return content + body + b" " + blake2b(last + body, digest_size=16).hexdigest().encode() + b"\n"


def test_what_was_written_is_read(path):
    made = records()
    content = write(path, made)
    assert same(read(path), made)
    assert path.read_bytes() == content
    assert begins(content)[-1] == len(content)
    assert len(begins(content)) == 7


def test_a_record_is_in_the_file_as_soon_as_it_is_appended(path):
    journal = opened(path, every=1e9)
    for n, record in enumerate(records(), start=1):
        journal.append(record)
        assert journal.n_records == n
        assert len(begins(path.read_bytes())) == n + 1


def test_a_torn_last_record_is_cut_off_at_every_byte(path):
    made = records()
    content = write(path, made)
    for length in range(begins(content)[-2], len(content)):
        path.write_bytes(content[:length])
        assert same(read(path), made[:-1])
        assert path.read_bytes() == content[: begins(content)[-2]]
        assert write(path, made[-1:]) == content


def test_zeros_that_a_power_cut_leaves_are_cut_off(path):
    made = records()
    content = write(path, made)
    start = begins(content)[-2]
    for length in range(start, len(content) - 16):
        path.write_bytes(content[:length] + bytes(len(content) - length + 4096))
        assert same(read(path), made[:-1])
        assert path.read_bytes() == content[:start]


def test_a_torn_header_is_begun_anew(path):
    content = write(path, [])
    for length in range(len(content)):
        for zeros in (b"", bytes(len(content) - length)):
            path.write_bytes(content[:length] + zeros)
            assert read(path) == []
            assert path.read_bytes() == content


def test_every_flipped_bit_before_the_last_record_is_refused_with_its_record(path):
    made = records(3)
    content = write(path, made)
    places = begins(content)
    for at in range(places[0], places[-2]):
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)
        number = sum(place <= at for place in places)
        with pytest.raises(
            ValueError, match=rf"record {number} of journal .*run.journal is damaged: its bytes"
        ) as told:
            read(path)
        assert f"at byte {places[number - 1]} " in str(told.value)
        # The remedy that the sentence names.
        path.write_bytes(changed[: places[number - 1]])
        assert same(read(path), made[: number - 1])


def test_records_that_are_lost_or_moved_are_refused(path):
    content = write(path, records())
    a, b, c, *_ = begins(content)
    other = write(path.with_name("other"), records(seed=5))
    lost = content[:a] + content[b:]
    moved = content[:a] + content[b:c] + content[a:b] + content[c:]
    foreign = content[:b] + other[b:]  # the first records are of one size
    for changed, number in ((lost, 1), (moved, 1), (foreign, 2)):
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=rf"record {number} .* is damaged"):
            read(path)


DIGEST = "0" * 32


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ([9.0, [DIGEST], [[0, np.nan, 0]]], "it holds values that are not numbers"),
        ([np.nan, [DIGEST], [[0, 0, 0]]], "its time is nan s after 2.5 s"),
        ([np.inf, [DIGEST], [[0, 0, 0]]], "its time is inf s after 2.5 s"),
        ([1.0, [DIGEST], [[0, 0, 0]]], "its time is 1.0 s after 2.5 s"),
        ([9.0, [DIGEST], []], "it does not hold seconds, digests and values"),
        ([9.0, ["x"], [[0, 0, 0]]], "it does not hold seconds, digests and values"),
        ([9.0, [DIGEST]], "it does not hold seconds, digests and values"),
        ("x", "it does not hold seconds, digests and values"),
        ([9.0, [DIGEST], [[0, 10**400, 0]]], "it does not hold seconds, digests and values"),
    ],
)
def test_forged_records_are_refused(path, content, sentence):
    there = write(path, records())
    path.write_bytes(forged(there, json.dumps(content).encode()))
    with pytest.raises(ValueError, match=f"record 7 of journal .* is damaged: {sentence}"):
        read(path)


def test_a_line_that_is_too_long_is_refused(path, monkeypatch):
    monkeypatch.setattr("moerank.evolution.journal.LONGEST_RECORD", 2**16)
    write(path, records())
    with path.open("r+b") as file:
        file.truncate(2**40)
    with pytest.raises(ValueError, match=r"record 7 .* is damaged"):
        read(path)


def test_what_is_no_file_is_refused_without_waiting(path):
    os.mkfifo(path)
    with pytest.raises(ValueError, match="something else than a file"):
        opened(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(ValueError, match="something else than a file"):
        opened(path)


def test_two_processes_cannot_mix_their_records(path):
    first = opened(path)
    second = opened(path)
    assert second.read() is None
    first.append(records()[0])
    with pytest.raises(ValueError, match="changed by another process"):
        second.append(records()[1])
    first.append(records()[1])
    assert same(read(path), records()[:2])


def test_a_value_that_is_no_number_is_refused_before_it_is_written(path):
    journal = opened(path)
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"individual 1 are \[ *0\. +nan +0\.\]; let the problem return a finite penalty"
    ):
        journal.append(Record(1.0, [bytes(16)] * 2, np.array([[0, 0, 0], [0, np.nan, 0]])))
    assert path.read_bytes() == before


def test_the_disk_is_asked_at_most_once_in_the_given_time_and_at_the_end(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    journal = opened(path, every=1e9)
    for record in records():
        journal.append(record)
    assert len(synced) == 1  # the header
    journal.close()
    assert len(synced) == 2
    journal = opened(path.with_name("other"), every=0.0)
    for record in records():
        journal.append(record)
    assert len(synced) == 3 + len(records())


def test_a_full_disk_is_told_by_name_and_what_was_written_stays(small_disk):
    disk = small_disk("size=16k")
    path = disk.folder / "run.journal"
    journal = opened(path)
    rng = np.random.default_rng(0)
    made = [Record(0.0, [rng.bytes(16) for _ in range(20)], rng.random((20, WIDTH))) for _ in range(50)]
    with pytest.raises(OSError, match=r"cannot write .*run.journal: No space left on device; make room"):
        for record in made:
            journal.append(record)
    n_records = journal.n_records
    journal.close()
    assert n_records > 5
    disk.remount("size=1m")
    assert same(read(path), made[:n_records])
    write(path, made[n_records:])
    assert same(read(path), made)


def test_short_writes_are_completed(path, monkeypatch):
    whole = FileIO.write

    class Hesitant(FileIO):
        def write(self, content):
            return whole(self, content[:7])

    monkeypatch.setattr("moerank.evolution.journal.FileIO", Hesitant)
    write(path, records())
    monkeypatch.undo()
    assert same(read(path), records())


def test_nothing_in_the_package_can_read_a_pickle_but_the_cache_of_kernels():
    found = []
    for path in Path(moerank.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [entry.name for entry in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call):
                allowed = [word.value for word in node.keywords if word.arg == "allow_pickle"]
                names = ["allow_pickle"] if any(not isinstance(v, ast.Constant) or v.value for v in allowed) else []
            else:
                continue
            readers = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "allow_pickle"}
            found += [(path.name, name) for name in names if name.partition(".")[0] in readers]
    assert found == [("compiled.py", "pickle")]


def test_remove_leaves_nothing(path):
    journal = Journal(path, {})
    journal.remove()
    write(path, records())
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    journal.remove()
    assert list(path.parent.iterdir()) == []
    assert not journal.exists()


def test_another_configuration_is_refused_by_its_keys(path):
    before = write(path, records())
    with pytest.raises(ValueError, match=r"fold is 'missing' there and 1 here, seed is 3 there and 4 here; resume"):
        opened(path, {"problem": "toy", "seed": 4, "fold": 1, "grid": [1, 2]})
    with pytest.raises(ValueError, match=r"another configuration: variables is 60 there and 61 here"):
        opened(path, about={"variables": 61})
    assert path.read_bytes() == before


def test_a_configuration_that_cannot_be_written_is_refused_at_once(path):
    with pytest.raises(TypeError, match="not JSON serializable"):
        Journal(path, {"seed": np.int64(3)})


@pytest.mark.parametrize("key", ["journal format", "moerank", "pymoo", "numpy", "python"])
def test_other_versions_are_refused(key, path):
    header, _, rest = write(path, records()).partition(b"\n")
    header = json.loads(header)
    header["versions"][key] = "0.0"
    path.write_bytes(json.dumps(header).encode() + b"\n" + rest)
    with pytest.raises(ValueError, match=rf"other versions: {key} is '0.0' there and .* here; .* remove it"):
        opened(path)


OTHER_FILES = {
    "no json": b"no json\n",
    "list": b"[1, 2]\n",
    "pickle": b"\x80\x05\xff\n",
    "no configuration": b'{"format": "moerank journal", "versions": {}}\n',
    "wrong types": b'{"format": "moerank journal", "versions": [], "configuration": 3}\n',
    "other format": b'{"format": "other", "versions": {}, "configuration": {}}\n',
    "nested": b"[" * 200_000,
    "long number": b'{"format": ' + b"9" * 100_000 + b"}\n",
    "long line": b"{" * 3_000_000,
}


@pytest.mark.parametrize("content", OTHER_FILES.values(), ids=OTHER_FILES)
def test_other_files_are_refused_and_stay_as_they_are(content, path):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a journal of moerank"):
        opened(path)
    assert path.read_bytes() == content


def test_a_sentence_about_a_strange_header_is_short(path):
    header = json.loads(write(path, []))
    header["configuration"]["\x1b[2J" + "x" * 5000] = "y" * 100_000
    path.write_bytes(json.dumps(header).encode() + b"\n")
    with pytest.raises(ValueError, match="another configuration") as told:
        opened(path)
    assert "\x1b" not in str(told.value)
    assert len(str(told.value)) < 1000
