import os
import random
import shutil

import numpy as np
import pytest

import moerank.data.read.letor
from moerank.data import load_letor, load_table
from moerank.data.read import cache as cache_module
from moerank.data.read import table as tables
from moerank.data.read.cache import cache_entries, cache_folder, clear_cache, remembered

CONTENT = b"2 qid:1 1:0.5 2:1\n0 qid:1 1:0.25\n1 qid:2 2:1e-3\n"
TEXT = "query,label,price,rating\nshoes,2,59.9,4.5\nshoes,0,120,\nhats,1,-1e-3,.5\n"


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """Believe the times of files that were just written."""
    monkeypatch.setattr(cache_module, "SETTLED", 0.0)


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
    assert data.given_names == twin.given_names
    assert data.n_missing.tolist() == twin.n_missing.tolist()


def test_the_second_load_parses_nothing(path, parsed, cache):
    first, second = load_letor(path), load_letor(path)
    assert_same(first, second)
    assert parsed == ["train.txt"]
    assert [entry.suffix for entry in cache.iterdir()] == [".arrays"]
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["train.txt"]
    base = second.X
    while not isinstance(base, np.memmap):
        base = base.base
    assert base.mode == "r"


def test_a_change_of_the_same_size_at_the_same_time_is_seen(path, parsed):
    load_letor(path)
    before = path.stat()
    path.write_bytes(CONTENT.replace(b"0.25", b"0.75"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert load_letor(path).X[1, 0] == 0.75
    assert parsed == ["train.txt"] * 2


def test_a_file_that_was_just_written_is_not_kept(path, parsed, cache, monkeypatch):
    monkeypatch.setattr(cache_module, "SETTLED", 60.0)
    assert_same(load_letor(path), load_letor(path))
    assert len(parsed) == 2
    assert not list(cache.iterdir())


@pytest.mark.parametrize("options", [{"dtype": np.float32}, {"n_features": 4}, {"missing": 0.0}])
def test_settings_are_part_of_the_key(path, parsed, options):
    load_letor(path)
    for _ in range(2):
        data = load_letor(path, **options)
    assert (data.X.dtype, data.n_features) == (options.get("dtype", np.float64), options.get("n_features", 2))
    assert len(parsed) == 2


def test_one_entry_serves_every_rule_for_missing_values(path, parsed):
    path.write_bytes(b"1 qid:1 1:NULL\n")
    for missing in (0.0, 1.0):
        assert load_letor(path, missing=missing).X.item() == missing
    assert len(parsed) == 1
    with pytest.raises(ValueError, match="line 1: the value of feature 1 is missing"):
        load_letor(path)


def test_damaged_entries_are_read_anew(path, parsed, cache):
    whole = load_letor(path)
    (entry,) = cache.iterdir()
    rng = random.Random(0)
    for file in sorted(entry.iterdir()):
        stored = file.read_bytes()
        damaged = [b"", b"junk", stored[:-1], stored[: len(stored) // 2]]
        for _ in range(30):  # in the header; the numbers themselves are believed
            at = rng.randrange(min(len(stored), 80))
            damaged.append(stored[:at] + bytes([stored[at] ^ 1 << rng.randrange(8)]) + stored[at + 1 :])
        for content in damaged:
            file.write_bytes(content)
            assert_same(load_letor(path), whole)
    file.unlink()
    parsed.clear()
    load_letor(path)
    load_letor(path)
    assert parsed == ["train.txt"]


def test_an_entry_of_another_file_is_not_believed(path, parsed, cache):
    whole = load_letor(path)
    (entry,) = cache.iterdir()
    other = path.with_name("other.txt")
    other.write_bytes(CONTENT.replace(b"0.25", b"0.75"))
    load_letor(other)
    (twin,) = set(cache.iterdir()) - {entry}
    shutil.rmtree(entry)
    twin.rename(entry)
    assert_same(load_letor(path), whole)
    assert len(parsed) == 3


@pytest.mark.parametrize(
    "forged",
    [
        {"X": np.zeros((2, 2))},
        {"X": np.zeros(6)},
        {"X": np.zeros((3, 2), np.float16)},
        {"offsets": np.array([0, 5, 3])},
        {"offsets": np.array([0, 3])},
        {"y": np.zeros(2, np.int64)},
        {"ids": np.zeros(2)},
        {"qid": np.zeros(3)},
        {"qid": np.zeros(2, np.int64)},
        {"X": np.array([[None]])},
    ],
)
def test_arrays_that_do_not_fit_together_are_not_believed(path, parsed, cache, forged):
    whole = load_letor(path)
    (entry,) = cache.iterdir()
    for name, array in forged.items():
        np.save(entry / f"{name}.npy", array, allow_pickle=True)
    assert_same(load_letor(path), whole)
    assert len(parsed) == 2


@pytest.mark.parametrize("how", ["open to others", "open to a group", "of another user"])
def test_a_folder_where_another_user_may_write_is_not_used(path, parsed, cache, monkeypatch, how):
    load_letor(path)
    if how == "of another user":
        monkeypatch.setattr("moerank.files.is_own", lambda status: False)
    else:
        cache.chmod(0o777 if how == "open to others" else 0o770)
    for _ in range(2):
        with pytest.warns(UserWarning, match=rf"another user may write in {cache}\. .* chmod go-w {cache}"):
            load_letor(path)
        clear_cache()
    assert len(parsed) == 3
    assert not list(cache.iterdir())


def test_a_folder_is_made_for_the_user_alone(path, parsed, tmp_path, monkeypatch):
    folder = tmp_path / "not there yet"
    monkeypatch.setenv("MOERANK_CACHE", str(folder))
    before = os.umask(0)
    try:
        load_letor(path)
        load_letor(path)
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(parsed) == 1


@pytest.mark.parametrize("how", ["file", "link"])
def test_what_stands_in_the_place_of_an_entry_is_replaced(path, parsed, cache, how):
    whole = load_letor(path)
    (entry,) = cache.iterdir()
    shutil.rmtree(entry)
    entry.write_bytes(b"junk") if how == "file" else entry.symlink_to(path)
    assert_same(load_letor(path), whole)
    assert_same(load_letor(path), whole)
    assert parsed == ["train.txt"] * 2


def test_a_folder_that_cannot_be_written_means_no_cache(path, parsed, monkeypatch, recwarn):
    monkeypatch.setenv("MOERANK_CACHE", str(path / "below a file"))
    assert_same(load_letor(path), load_letor(path))
    assert parsed == ["train.txt"] * 2
    assert not recwarn.list


def test_a_write_that_fails_leaves_nothing_behind(path, cache, monkeypatch):
    def full(*arguments, **options):
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "save", full)
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


def test_the_default_folder_is_the_users(path, tmp_path, monkeypatch):
    monkeypatch.delenv("MOERANK_CACHE")
    assert cache_folder().is_absolute()
    assert "moerank" in cache_folder().parts
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: f"~/.cache/{name}")  # without a home
    assert cache_folder() is None
    load_letor(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["train.txt"]


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


def test_the_cache_is_cleared_of_its_own_files_only(path, cache):
    load_letor(path)
    (cache / f".{'0' * 32}.arrays.{'1' * 16}.tmp").mkdir()  # of a process that was killed
    kept = [cache / name for name in ("notes.txt", "kernels-0123", f"{'g' * 32}.arrays")]
    for other in kept:
        other.touch()
    entries = cache_entries()
    assert clear_cache() == (2, sum(entry.n_bytes for entry in entries))
    assert sorted(cache.iterdir()) == sorted(kept)
    assert clear_cache() == (0, 0)


def test_a_file_that_changes_while_it_is_read_is_not_kept(path, cache):
    def make():
        table = moerank.data.read.letor._parse(path, None, False, np.float64, None)
        path.write_bytes(CONTENT + CONTENT.replace(b"qid:", b"qid:1"))
        return table

    assert len(remembered(path, "any", make).y) == 3
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("options", [{}, {"dtype": np.float32}, {"features": ["rating"]}])
def test_large_tables_are_kept(tmp_path, cache, monkeypatch, options):
    path = tmp_path / "train.csv"
    path.write_text(TEXT)
    options = {"label": "label", "query": "query", "missing": 7.0, **options}
    load_table(path, **options)
    assert not list(cache.iterdir())
    monkeypatch.setattr(tables, "LARGE", 0)
    once = load_table(path, **options)
    monkeypatch.setattr(tables, "read_table", lambda *_, **__: pytest.fail("the file was parsed again"))
    assert_same(load_table(path, **options), once)
    with pytest.raises(pytest.fail.Exception):
        load_table(path, **options | {"missing": None})
