import pytest

from moerank.data import load_letor


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("MOERANK_CACHE", str(folder))
    monkeypatch.delenv("MOERANK_CACHE_SIZE", raising=False)
    monkeypatch.setattr("moerank.data.read.cache.SETTLED", 0.0)
    path = tmp_path / "train.txt"
    path.write_bytes(b"1 qid:1 1:0.5\n0 qid:1 1:1\n")
    load_letor(path)
    return folder


def test_the_cache_is_shown_and_cleared(command, cache, monkeypatch):
    shown = command("data", "cache").stdout
    assert shown.startswith("1 file, ")
    assert shown.endswith(f" GiB of at most 20 GiB, in {cache}\n")
    assert len(list(cache.iterdir())) == 1
    assert command("data", "cache", "--clear").stdout.startswith("removed 1 file, ")
    assert list(cache.iterdir()) == []
    monkeypatch.setenv("MOERANK_CACHE_SIZE", "0.5")
    assert command("data", "cache").stdout == f"0 files, 0 GiB of at most 0.5 GiB, in {cache}\n"


def test_no_cache(command, monkeypatch):
    monkeypatch.setenv("MOERANK_CACHE", "off")
    assert command("data", "cache", "--clear").stdout.startswith("There is no cache")
    monkeypatch.setenv("MOERANK_CACHE", "somewhere")
    monkeypatch.setenv("MOERANK_CACHE_SIZE", "much")
    done = command("data", "cache")
    assert done.exit_code == 2
    assert "MOERANK_CACHE_SIZE is a number of GiB, not 'much'" in done.stderr
