import os

import numpy as np
import pytest

import moerank.data.read.cache
import moerank.data.read.letor
from moerank.data import load_letor
from moerank.data.read.cache import cache_entries, cache_folder, clear_cache, remembered
from moerank.data.read.letor_parser import Documents

CONTENT = b"2 qid:1 1:0.5 2:1\n0 qid:1 1:0.25\n1 qid:2 2:1e-3\n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def parsed(monkeypatch):
    """The files parsed so far, in order."""
    parsed = []
    parse = moerank.data.read.letor._parse

    def counted(path, *arguments):
        parsed.append(path.name)
        return parse(path, *arguments)

    monkeypatch.setattr(moerank.data.read.letor, "_parse", counted)
    return parsed


def assert_same(data, twin):
    for field in ("X", "y", "qid", "offsets"):
        np.testing.assert_array_equal(getattr(data, field), getattr(twin, field))
        assert getattr(data, field).dtype == getattr(twin, field).dtype


def test_the_second_load_parses_nothing(path, parsed, cache):
    first, second = load_letor(path), load_letor(path)
    assert_same(first, second)
    assert parsed == ["train.txt"]
    (entry,) = cache.iterdir()
    assert {part.suffix for part in entry.iterdir()} == {".npy"}
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["train.txt"]


def test_a_change_of_the_same_size_at_the_same_time_is_seen(path, parsed):
    load_letor(path)
    before = path.stat()
    path.write_bytes(CONTENT.replace(b"0.25", b"0.75"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert load_letor(path).X[1, 0] == 0.75
    assert parsed == ["train.txt"] * 2


def test_what_the_arrays_depend_on_is_part_of_the_key(path, parsed):
    assert load_letor(path).X.dtype == np.float64
    assert load_letor(path.rename(path.with_name("train.dat"))).n_documents == 3
    load_letor(path.with_name("train.dat"), n_features=4)
    assert len(parsed) == 2  # other endings may be compressed


def test_one_entry_serves_every_rule_for_missing_values(path, parsed):
    path.write_bytes(b"1 qid:1 1:NULL\n")
    for missing in (0.0, 1.0):
        assert load_letor(path, missing=missing).X.item() == missing
    assert len(parsed) == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="line 1: the value of feature 1 is missing"):
            load_letor(path)
    assert load_letor(path, missing=1.0, n_features=3).X.tolist() == [[1.0, 0.0, 0.0]]


def test_damaged_entries_are_read_anew_and_written_again(path, parsed, cache):
    whole = load_letor(path)
    (entry,) = cache.iterdir()
    for part in sorted(entry.iterdir()):
        stored = part.read_bytes()
        for content in (b"", b"junk", stored[:-1], stored[: len(stored) // 2], stored[8:]):
            part.write_bytes(content)
            parsed.clear()
            assert_same(load_letor(path), whole)
            assert parsed == ["train.txt"]
            assert part.read_bytes() == stored
        part.unlink()
        assert_same(load_letor(path), whole)


def test_arrays_that_do_not_fit_together_are_not_believed(path, parsed, cache):
    whole = load_letor(path)
    (entry,) = cache.iterdir()
    for name, forged in (
        ("counts", np.array([3, 0, 0])),
        ("starts", np.array([0, -1])),
        ("values", np.zeros(6, np.float16)),
        ("ids", np.array([object(), object()])),
    ):
        np.save(entry / f"{name}.npy", forged, allow_pickle=True)
        assert_same(load_letor(path), whole)
    assert len(parsed) == 1 + 4


@pytest.mark.parametrize("how", ["pipe", "file", "link"])
def test_entries_are_folders(path, parsed, cache, how):
    whole = load_letor(path)
    (entry,) = cache.iterdir()
    kept = entry.rename(entry.with_name("kept"))
    if how == "pipe":
        os.mkfifo(entry)
    elif how == "file":
        entry.write_bytes(b"junk")
    else:
        entry.symlink_to(cache / "nowhere")
    assert_same(load_letor(path), whole)
    assert parsed == ["train.txt"] * 2
    assert kept.is_dir()


def test_a_folder_that_cannot_be_written_means_no_cache(path, parsed, tmp_path, monkeypatch, recwarn):
    monkeypatch.setenv("MOERANK_CACHE", str(path / "below a file"))
    assert_same(load_letor(path), load_letor(path))
    assert parsed == ["train.txt"] * 2
    assert not recwarn.list


def test_a_write_that_fails_leaves_nothing_behind(path, parsed, cache, monkeypatch):
    def full(*arguments, **options):
        raise OSError("no space left on device")

    monkeypatch.setattr("numpy.save", full)
    load_letor(path)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("off", ["off", "OFF"])
def test_off(path, parsed, monkeypatch, tmp_path, off):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOERANK_CACHE", off)
    assert cache_folder() is None
    assert_same(load_letor(path), load_letor(path))
    assert parsed == ["train.txt"] * 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["train.txt"]


def test_cache_false_neither_reads_nor_writes(path, parsed, cache):
    load_letor(path, cache=False)
    assert list(cache.iterdir()) == []
    load_letor(path)
    load_letor(path, cache=False)
    assert parsed == ["train.txt"] * 3


def test_the_default_folder_is_the_users(monkeypatch):
    monkeypatch.delenv("MOERANK_CACHE")
    assert cache_folder().is_absolute()
    assert "moerank" in cache_folder().parts


def test_a_user_without_a_home_has_no_cache(path, parsed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MOERANK_CACHE")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: f"~/.cache/{name}")
    assert cache_folder() is None
    assert_same(load_letor(path), load_letor(path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["train.txt"]


def test_what_make_raises_passes_and_is_not_kept(path, cache):
    def fail():
        raise KeyError("told so")

    with pytest.raises(KeyError, match="told so"):
        remembered(path, "any", Documents, fail)
    assert list(cache.iterdir()) == []


def test_entries_that_were_not_used_for_longest_go_first(tmp_path, parsed, cache, monkeypatch):
    paths = [tmp_path / f"{number}.txt" for number in range(4)]
    for number, path in enumerate(paths):
        path.write_bytes(b"1 qid:1 1:%d\n" % number + CONTENT.replace(b"qid:1", b"qid:3"))
    for age, path in enumerate(paths[:3]):
        known = set(cache.iterdir())
        load_letor(path)
        (entry,) = set(cache.iterdir()) - known
        os.utime(entry, (1000 + age, 1000 + age))
    size = cache_entries()[0].n_bytes
    load_letor(paths[0])  # used again
    assert [entry.used for entry in cache_entries()][:2] == [1001, 1002]
    monkeypatch.setenv("MOERANK_CACHE_SIZE", str(3.5 * size / 2**30))
    other = cache / "notes.txt"
    other.write_bytes(bytes(10 * size))  # of somebody else
    parsed.clear()
    load_letor(paths[3])
    assert len(cache_entries()) == 3
    for path in (paths[2], paths[0], paths[3]):
        load_letor(path)
    assert parsed == ["3.txt"]
    load_letor(paths[1])
    assert parsed == ["3.txt", "1.txt"]
    assert other.exists()


def test_what_is_larger_than_the_cache_is_not_kept(path, parsed, cache, monkeypatch):
    monkeypatch.setenv("MOERANK_CACHE_SIZE", "0")
    load_letor(path)
    assert list(cache.iterdir()) == []
    monkeypatch.setenv("MOERANK_CACHE_SIZE", "plenty")
    with pytest.raises(ValueError, match="MOERANK_CACHE_SIZE is a number of GiB, not 'plenty'"):
        load_letor(path)


def test_the_cache_is_cleared_of_its_own_files_only(path, parsed, cache):
    load_letor(path)
    earlier = cache / f"{'0' * 32}.npz"
    earlier.write_bytes(b"of an earlier version")
    kept = [cache / name for name in ("notes.txt", "kernels-0123", f"{'g' * 32}.arrays")]
    for other in kept:
        other.touch()
    entries = cache_entries()
    assert {entry.path.suffix for entry in entries} == {"", ".npz"}
    assert clear_cache() == (2, sum(entry.n_bytes for entry in entries))
    assert sorted(cache.iterdir()) == sorted(kept)
    assert clear_cache() == (0, 0)


def test_a_file_that_changes_while_it_is_read_is_not_kept(path, cache):
    def make():
        documents = moerank.data.read.letor._parse(path, None, False, np.float64, None)
        path.write_bytes(CONTENT + CONTENT.replace(b"qid:", b"qid:1"))
        return documents

    assert len(remembered(path, "any", Documents, make).y) == 3
    assert list(cache.iterdir()) == []
