"""What a journal's first line says must be what is here; other files are refused and stay as they are."""

import json

import numpy as np
import pytest
from helpers.journals import CONFIGURATION, WIDTH, opened, records, write

from moerank.evolution import Journal


def test_the_same_configuration_is_accepted(path):
    write(path, records())
    journal = opened(path, {"grid": [1, 2], "seed": 3, "problem": "toy"})
    assert journal.read() is not None


def test_another_configuration_is_refused_by_its_keys(path):
    before = write(path, records())
    with pytest.raises(ValueError, match=r"fold is 'missing' there and 1 here, seed is 3 there and 4 here; resume"):
        opened(path, {"problem": "toy", "seed": 4, "fold": 1, "grid": [1, 2]})
    with pytest.raises(ValueError, match=r"another configuration: variables is 60 there and 61 here"):
        Journal(path, CONFIGURATION).open({"variables": 61}, WIDTH)
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
