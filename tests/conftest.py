import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def letor_folder():
    """The folder of real LETOR data, or a skip where it is not there."""
    project = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("MOERANK_DATA", project.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no LETOR data at {folder}; set MOERANK_DATA to their folder")
    return folder
