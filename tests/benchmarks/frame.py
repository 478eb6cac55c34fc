"""Frame of the scripts of this folder: one thread for each library, arguments, processor time, tables.

Import it before numpy, whose threads it pins.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import time
import warnings
from pathlib import Path

from rich.console import Console

warnings.simplefilter("ignore")  # such as of constant features

DATA = Path(os.environ.get("MOERANK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def arguments(documentation, **options):
    """Return the arguments by name: --data, and the options with their defaults, whose types they have."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with MQ2008/, OHSUMED/ and others")
    for name, default in options.items():
        if default is False:
            how = {"action": "store_true"}
        elif isinstance(default, list):
            how = {"nargs": "+", "default": default}
        else:
            how = {"type": type(default), "default": default}
        parser.add_argument(f"--{name.replace('_', '-')}", **how)
    return parser.parse_args()


def least_seconds(work, repeats):
    """Return the least processor time of a function, which gets the number of the repeat, and its last result."""
    times, found = [], None
    for repeat in range(repeats):
        begin = time.process_time()
        found = work(repeat)
        times.append(time.process_time() - begin)
    return min(times), found


def show(table, width=150):
    """Print a table."""
    Console(width=width).print(table)
