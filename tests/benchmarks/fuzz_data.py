"""Put mutated LETOR texts through the reader in this process, and judge what comes of each by a slow parser.

    python tests/benchmarks/fuzz_data.py [--files 1000000] [--seed 0]

The texts are plain, .gz and .xz, with query ids in the lines or beside them, read in single and double precision and
in pieces of 1 byte to 4 KiB. A reader may return what the slow parser (tests/helpers/slow_letor.py) returns, to the
last bit, or raise a ValueError that names the file where that parser refuses it. Anything else is a finding, and so is
a call that takes over two seconds of processor time; exit code 1 if there is any. The first of each kind is kept in the
folder that is printed.
"""

import argparse
import gzip
import lzma
import os
import random
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz import HANG, end
from helpers.broken_letor import BINARY_ACCIDENTS, VALID, after_an_accident, broken, judged, without_queries

import moerank.data.read.letor

SHORT = b"".join(VALID.splitlines(keepends=True)[:6])
PACKED = {".gz": gzip.compress(SHORT, mtime=0), ".xz": lzma.compress(SHORT)}
UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress}


def drawn(rng):
    """Return the ending, the bytes of the file, its text (None if it cannot be decompressed), and counts beside it."""
    kind = rng.random()
    if kind < 0.9:
        content = broken(rng, SHORT)
        return ".txt", content, content, None
    if kind < 0.95:
        content = broken(rng, without_queries(SHORT, 0, rng))
        return ".libsvm", content, content, [4, 2]
    ending = rng.choice([".gz", ".xz"])
    stored = after_an_accident(PACKED[ending], rng, BINARY_ACCIDENTS)
    try:
        return ending, stored, UNPACK[ending](stored), None
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return ending, stored, None, None


def attack(folder, number, seed):
    """Read one mutated file; return what it came to, the seconds, the path and the bytes."""
    rng = random.Random(f"{seed} {number}")
    ending, stored, content, beside = drawn(rng)
    path = folder / f"broken{ending}"
    path.write_bytes(stored)
    moerank.data.read.letor.CHUNK = rng.choice([1, 7, 64, 64, 300, 4096])
    begin = time.process_time()
    try:
        missing, dtype = rng.choice([None, None, 0.25]), rng.choice([np.float64, np.float32])
        outcome = judged(path, content, missing=missing, dtype=dtype, beside=beside)
        outcome = outcome if outcome in ("read", "refused") else f"finding: {outcome}"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        outcome = f"finding: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error}"
    seconds = time.process_time() - begin
    return (f"finding: {seconds:.1f} s" if seconds > HANG else outcome), seconds, path, stored


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    kept = Path(tempfile.mkdtemp(prefix="fuzz-findings-"))
    memory = Path("/dev/shm")
    outcomes, slowest, begin = Counter(), 0.0, time.perf_counter()
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        folder = Path(name)
        (folder / "broken.libsvm.query").write_text("4\n2\n")
        (folder / "broken.txt").write_bytes(SHORT)
        for dtype in (np.float64, np.float32):  # compile
            assert judged(folder / "broken.txt", SHORT, dtype=dtype) == "read"
        for number in range(arguments.files):
            outcome, seconds, path, stored = attack(folder, number, arguments.seed)
            slowest = max(slowest, seconds)
            outcomes[outcome[:60]] += 1
            if outcome.startswith("finding") and outcomes[outcome[:60]] == 1:
                (kept / f"{number}-{path.name}").write_bytes(stored)
                print(f"{number} {path.name}: {outcome[:400]}", flush=True)
    found = sum(count for outcome, count in outcomes.items() if outcome.startswith("finding"))
    print(
        f"{arguments.files:,} with seed {arguments.seed} in {time.perf_counter() - begin:.0f} s; "
        f"{outcomes['read']:,} read, {outcomes['refused']:,} refused, {found} findings; "
        f"slowest {slowest * 1000:.0f} ms"
    )
    end(kept, found)


if __name__ == "__main__":
    main()
