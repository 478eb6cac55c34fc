"""What users can mend is one sentence on standard error."""

import os
import signal
import subprocess
import sys

import pytest

INSIDE = """
import hashlib, sys
from moerank.cli.messages import interruptible
with interruptible(["moerank", "run", "digits", "--resume"]):
    print("begun", flush=True)
    sys.stdout.write("kept")
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_ends_while_its_main_thread_is_inside_a_kernel(number):
    """The function of OpenSSL takes minutes. Like a kernel it hears no signal, and holds no lock of the interpreter."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    words = [sys.executable, "-c", INSIDE]
    with subprocess.Popen(words, env=buffered, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(number)
        try:
            assert process.wait(60) == 128 + number
        finally:
            process.kill()
        assert process.stdout.read() == "kept"
        *_, said, again = process.stderr.read().splitlines()
    assert said == "Interrupted. All finished work is saved; continue with:"
    assert again == "  moerank run digits --resume"


def test_a_search_that_keeps_what_it_has_after_an_interrupt_goes_on():
    """As that of the best subsets does; `timeout` sends its signal twice."""
    code = (
        "import os, signal, time\nfrom moerank.cli.messages import interruptible\n"
        "with interruptible(['moerank', 'run', 'digits']):\n"
        "    try:\n        signal.raise_signal(signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n        signal.raise_signal(signal.SIGINT)\n"
        "    time.sleep(1.2)\n    print('ended')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended\n", "")


@pytest.mark.parametrize("encoding", ["ascii", "ascii:surrogateescape", "latin-1", "utf-8"])
def test_signs_that_the_output_cannot_encode_become_ascii(encoding):
    code = (
        "from moerank.cli.messages import escape_what_cannot_be_written, notice, say\n"
        "from moerank.cli.tables import output\n"
        "escape_what_cannot_be_written()\n"
        "text = '\u2212.1 \u00b1 2 \u2026 \u03b1 \u00e9'\n"
        "say(text)\nnotice(text)\noutput().print(text)\n"
    )
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, timeout=60)
    expected = {"ascii": "-.1 +/- 2 ... \\u03b1 \\xe9", "latin-1": "-.1 \u00b1 2 ... \\u03b1 \u00e9"}
    name = encoding.partition(":")[0]
    line = expected.get(name, "\u2212.1 \u00b1 2 \u2026 \u03b1 \u00e9")
    assert ended.stdout.decode(name).splitlines() == [line] * 2
    assert ended.stderr.decode(name).splitlines() == [line]
