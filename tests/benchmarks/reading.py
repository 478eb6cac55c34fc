"""Speed and memory of the reader of LETOR text, beside scikit-learn's reader.

    python tests/benchmarks/reading.py [--megabytes 200] [--features 136] [--digits 6] [--without-sklearn]

Writes a dense synthetic file to a temporary folder and reads it with each reader in a process of its own. Prints
megabytes of text per second of processor time, their ratio, and the peak of resident memory beyond that of the imports
and beyond the table. Never fails a build.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import frame
import numpy as np

READ = """
import json, os, resource, sys, time
import numpy as np
path, how = sys.argv[1:]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
if how == "sklearn":
    from sklearn.datasets import load_svmlight_file
    read = lambda path: load_svmlight_file(path, query_id=True)[0]
else:
    from pathlib import Path
    from moerank.data.read.letor import read_letor
    read = lambda path: read_letor(Path(path), nulls=False, dtype=how).X
    warm = path + ".warm"
    open(warm, "w").write("1 qid:1 1:0.5\\n")
    read(warm)
before = peak()
wall, processor = time.perf_counter(), time.process_time()
X = read(path)
wall, processor = time.perf_counter() - wall, time.process_time() - processor
print(json.dumps([wall, processor, peak() - before, getattr(X, "nbytes", 0)]))
"""


def write(path, megabytes, n_features, digits):
    """Write documents of about 120 to a query until the file is large enough."""
    rng = np.random.default_rng(0)
    n_bytes = query = 0
    with path.open("w") as file:
        while n_bytes < megabytes * 10**6:
            query += 1
            for row in rng.random((120, n_features)).tolist():
                values = " ".join(f"{j}:{value:.{digits}f}" for j, value in enumerate(row, 1))
                n_bytes += file.write(f"{int(5 * row[0] ** 3)} qid:{query} {values}\n")
    return n_bytes


def measured(path, how):
    command = [sys.executable, "-c", READ, str(path), how]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main():
    arguments = frame.arguments(__doc__, megabytes=200, features=136, digits=6, without_sklearn=False)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "synthetic.txt")
        n_bytes = write(path, arguments.megabytes, arguments.features, arguments.digits)
        print(f"{n_bytes / 1e6:.0f} MB, {arguments.features} features, {arguments.digits} digits")
        rates = {}
        readers = ["float64", "float32"] + ["sklearn"] * (not arguments.without_sklearn)
        for how in readers:
            runs = [measured(path, how) for _ in range(1 if how == "sklearn" else 3)]
            _, processor, peak, table = min(runs, key=lambda run: run[1])
            rates[how] = n_bytes / processor / 1e6
            beyond = f", peak {(peak - table) / 1e9:+.2f} GB beyond a table of {table / 1e9:.2f} GB" * (table > 0)
            print(f"{how}: {rates[how]:.0f} MB/s of processor time{beyond}", flush=True)
        if "sklearn" in rates:
            print(f"float64 is {rates['float64'] / rates['sklearn']:.1f} times as fast as sklearn")


if __name__ == "__main__":
    main()
