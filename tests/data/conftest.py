import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """A cache folder of the test's own: no test may see or fill the user's."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("MOERANK_CACHE", str(folder))
    return folder
